"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 64
"""Characters that are compared: the time grows with their square."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The one of these names that is most like ``name``, whose case counts least; None if none
    is like it."""
    names = list(known)
    folded = name[:_LONGEST].casefold()
    same = [n for n in names if n.casefold() == folded]
    near = same or difflib.get_close_matches(name[:_LONGEST], names, n=1)
    return near[0] if near else None
