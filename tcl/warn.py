"""Warnings that point at the user's line, through however many of our own calls it took."""

from __future__ import annotations

import sys
import warnings

from tcl.grammar.errors import TclWarning


def warn(message: str) -> None:
    """Give a ``TclWarning`` at the nearest caller that is not part of tcl."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and _ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, TclWarning, stacklevel=level)


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "tcl"
