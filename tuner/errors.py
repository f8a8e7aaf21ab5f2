"""Errors of the tuning layer."""

from __future__ import annotations

from tcl.grammar.errors import TclError


class CacheError(TclError):
    """The tuning cache cannot be read or written."""


class ExecutorLostError(TclError):
    """The machines that compile and measure cannot be reached any more."""


class ModelError(TclError):
    """A learned model cannot be read, or was made for something else."""
