"""Tile sizes and loop orders worth trying."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

_ALL_ORDERS = 4
"""Up to this many dimensions every loop order is tried; above, those that move one dimension."""


def tile_sizes(extent: int) -> tuple[int, ...]:
    """Sizes worth trying for a dimension, in ascending order; the last is the extent: untiled."""
    powers = (1 << p for p in range(1, max(1, extent).bit_length()))
    parts = (-(-extent // k) for k in range(2, 9))
    return (*sorted({s for s in (*powers, *parts) if 1 < s < extent}), extent)


def loop_orders(reduction: list[bool]) -> Iterator[tuple[int, ...]]:
    """Orders worth trying, as permutations of ``range(len(reduction))``, the natural one first.

    ``reduction``: whether each dimension is reduced; where not all orders are tried, the one
    with all reductions outermost is, too.
    """
    rank = len(reduction)
    natural = tuple(range(rank))
    if rank <= _ALL_ORDERS:
        yield from itertools.permutations(natural)
        return
    moved = [natural, tuple(sorted(natural, key=lambda i: not reduction[i]))]
    for i in natural:
        others = natural[:i] + natural[i + 1 :]
        moved += [(i, *others), (*others, i)]
        moved += [(*natural[:i], i + 1, i, *natural[i + 2 :])] if i + 1 < rank else []
    yield from dict.fromkeys(moved)
