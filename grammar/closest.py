"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 64
"""Characters of a name that are compared with others as short: the time grows with their square."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The one of these names that is most like ``name``, whose case counts least; None if none
    is like it."""
    return next(iter(alike(name, known, 1)), None)


def alike(name: str, known: Iterable[str], most: int) -> list[str]:
    """Likewise, up to so many, the one most like it first."""
    names = [n for n in known if len(n) <= _LONGEST]
    folded = name[:_LONGEST].casefold()
    same = [n for n in names if n.casefold() == folded]
    return same[:most] or difflib.get_close_matches(name[:_LONGEST], names, n=most)
