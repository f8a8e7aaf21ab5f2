"""All errors and warnings but those that point into a text (``tcl.grammar.syntax.errors``)."""

from __future__ import annotations

from tcl.common.tracebacks import for_ipython


class TclError(RuntimeError):
    """Base class of every error that tcl raises on purpose. It is a ``RuntimeError``, because
    programs that call operators of frameworks catch that."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows, which asks for it by this name: the user's lines, and what they
        called."""
        return for_ipython(self)


class ArgumentError(TclError):
    """An argument of a call does not fit: number, rank, size, element type, device or overlap."""


class UnknownNameError(ArgumentError, ValueError):
    """An unknown name in an argument or an environment variable. It is also a ``ValueError``,
    because programs that pass on their users' input catch that."""


class VariableError(ArgumentError, ValueError):
    """An environment variable whose value is not a valid number."""


class TclWarning(UserWarning):
    """Something is legal but probably a mistake."""


class OptionsError(TclError):
    """Mapping options cannot be applied to this def, these sizes or this device."""


class UnknownPresetError(OptionsError, ValueError):
    """An unknown preset. It is also a ``ValueError``, like ``UnknownNameError``."""


class NoNestError(OptionsError):
    """An option was requested for all nests of a def, and no nest can have it."""

    @property
    def option(self) -> str:
        """Its name, with which the sentence begins."""
        return str(self).partition(":")[0]


class CompileError(TclError):
    """A kernel could not be compiled."""


class CacheError(TclError):
    """The tuning cache cannot be read or written."""


class ExecutorLostError(TclError):
    """The machines that compile and measure can no longer be reached."""


class ModelError(TclError):
    """A learned model cannot be read, or was made for another purpose."""
