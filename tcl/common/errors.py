"""All errors and warnings but those that point into a text (``tcl.grammar.syntax.errors``)."""

from __future__ import annotations

from tcl.common.tracebacks import for_ipython


class TclError(RuntimeError):
    """Base of every error that tcl raises on purpose. A ``RuntimeError``, which is what programs
    catch that call operators of frameworks."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows, which asks for it by this name: the user's lines, and what they
        called."""
        return for_ipython(self)


class ArgumentError(TclError):
    """An argument of a call does not fit: count, rank, size, element type, device or overlap."""


class UnknownNameError(ArgumentError, ValueError):
    """A name that is none of those that there can be, in an argument or an environment variable.
    A ``ValueError`` as well, which is what programs catch that pass on what their users wrote."""


class VariableError(ArgumentError, ValueError):
    """An environment variable that should be a number, and is none that makes sense."""


class TclWarning(UserWarning):
    """Something legal that is probably not meant."""


class OptionsError(TclError):
    """Mapping options that cannot be applied to this definition, these sizes or this device."""


class UnknownPresetError(OptionsError, ValueError):
    """A preset that there is not. A ``ValueError`` as well, as for every name that is none of those
    that there can be (``UnknownNameError``)."""


class NoNestError(OptionsError):
    """An option that was asked for in all nests of a definition, none of which can have it."""

    @property
    def option(self) -> str:
        """Its name, with which the sentence begins."""
        return str(self).partition(":")[0]


class CompileError(TclError):
    """A kernel could not be built."""


class CacheError(TclError):
    """The tuning cache cannot be read or written."""


class ExecutorLostError(TclError):
    """The machines that compile and measure cannot be reached any more."""


class ModelError(TclError):
    """A learned model cannot be read, or was made for something else."""
