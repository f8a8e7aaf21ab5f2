"""Places that quotients and remainders of indices by constants decide, such as ``x / 8 + x % 8``:
at any point they are known without data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_ROWS = 4
"""Rows at most: a pixel shuffle takes lanes out of two planes in turns."""


def short_rows(places: Sequence[int], size: int, lanes: int) -> list[tuple[int, int]] | None:
    """The first byte and the elements of each of a few short rows that have all places; None if
    there are no such rows. ``size``: the bytes of an element."""
    several = sorted(set(places))
    if any((x - several[0]) % size for x in several):
        return None
    if several[-1] - several[0] < 2 * lanes * size:
        return [(several[0], (several[-1] - several[0]) // size + 1)]
    groups = [[several[0]]]
    for before, x in pairwise(several):
        if x - before > size:
            groups.append([])
        groups[-1].append(x)
    return [(g[0], len(g)) for g in groups] if len(groups) <= _ROWS and lanes > _ROWS else None
