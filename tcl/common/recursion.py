"""Room for passes that recurse over expressions.

The language allows expressions a few hundred levels deep; a caller that is deep itself may leave
less of Python's recursion limit than walking them takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_ENOUGH = 3000
"""Frames for the deepest expression. Since Python 3.11 they take no C stack."""


def with_room(function: Callable[[], T]) -> T:
    """``function()``, tried again under a higher recursion limit if it needs one."""
    try:
        return function()
    except RecursionError:
        # Never lowered again: another thread may be depending on it by then.
        sys.setrecursionlimit(sys.getrecursionlimit() + _ENOUGH)
        return function()
