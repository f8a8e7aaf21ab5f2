"""Warnings that point at the user's line, through however many of our own calls it took."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable

from tcl.grammar.errors import TclWarning

_told: set[Hashable] = set()


def warn(message: str) -> None:
    """Give a ``TclWarning`` at the nearest caller that is not part of tcl."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and _ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, TclWarning, stacklevel=level)


def warn_once(about: Hashable, message: str) -> None:
    """Likewise, unless that was done ``about`` this before, in this process."""
    if first_time(about):
        warn(message)


def first_time(about: Hashable) -> bool:
    """Whether nobody was warned ``about`` this before; from now on somebody was."""
    new = about not in _told
    _told.add(about)
    return new


def _ours(module: str) -> bool:
    return module.partition(".")[0] in ("tcl", "contextlib")  # which stands between frames of ours
