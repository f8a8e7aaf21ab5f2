"""Errors of everything between a checked definition and a running kernel."""

from __future__ import annotations

from tcl.grammar.errors import ArgumentError as ArgumentError  # also raised by range inference
from tcl.grammar.errors import TclError


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
