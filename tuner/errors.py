"""Errors of the tuning layer."""

from __future__ import annotations

from tcl.grammar.errors import TclError


class CacheError(TclError):
    """The tuning cache cannot be read or written."""


class ExecutorLostError(TclError):
    """The machines that compile and measure cannot be reached any more."""
