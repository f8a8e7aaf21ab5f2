"""Warnings that point at the user's line, through however many of our own calls it took."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable

from tcl.common.errors import TclWarning, is_ours

_told: set[Hashable] = set()


def warn(message: str) -> None:
    """Give a ``TclWarning`` at the nearest caller that is not part of tcl."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back and is_ours(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, TclWarning, stacklevel=level)


def warn_once(about: Hashable, message: str) -> None:
    """Likewise, unless that was done ``about`` this before, in this process."""
    if not was_told(about):
        warn_user(message, about)


def was_told(about: Hashable) -> bool:
    """Whether somebody was warned ``about`` this before."""
    return about in _told


def warn_user(message: str, *about: Hashable, told: set[Hashable] | None = None) -> None:
    """Warn, and note ``about`` what in ``told``, or for ``was_told``.

    Nothing is noted where a filter makes an error of the warning: a call that is made once more
    has to fail once more, not do in silence what it refused to do.
    """
    noted = _told if told is None else told
    noted.update(about)  # before, as what shows a warning may call us
    try:
        warn(message)
    except BaseException:
        noted.difference_update(about)
        raise
