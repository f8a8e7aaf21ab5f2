"""What a warp's request of shared memory takes: the one rule of conflicts.

Shared memory hands over a word of each bank in a wavefront. Requests of 4 bytes a thread and less
go as one; those of 8 as two, of 16 as four, a half or a quarter of the warp each, or as half of
that where the threads of all pairs of neighbours (or of neighbours but one) ask for the same
(measured on an H100 by others: 4 and 2 wavefronts for 16 bytes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.common.warps import SLAB, SLAB_TURN
from tcl.codegen.common.warps import VECTOR as VECTOR
from tcl.codegen.common.warps import WARP as WARP

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""N numbers."""
Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""N x 32: bytes, of the threads of N warps."""
Active: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
"""Of the same shape: the threads that take part."""

BANKS, WORD = 32, 4
NOWHERE = np.int64(1) << 60
"""What lies nowhere."""


def swizzling(row: int) -> tuple[int, int]:
    """For rows of so many bytes, a power of two of at least ``VECTOR``: after how many bytes
    vectors change places in another way, and how many ways there are."""
    return max(row, BANKS * WORD), min(BANKS * WORD, row) // VECTOR


def in_slabs(offsets: Offsets, row: int) -> Offsets:
    """Where bytes of 8 rows of so many bytes lie if the first ``SLAB`` bytes of all rows lie before
    all second ones, and vectors change places in these: as warpgroups read panels."""
    line, at = offsets // row, offsets % row
    return swizzled(at // SLAB * SLAB_TURN + line * SLAB + at % SLAB, SLAB)


def swizzled(offsets: Offsets, row: int) -> Offsets:
    """Where bytes lie if vectors of 16 bytes change places, so that vectors that lie below each
    other are in different banks: by an exclusive or with the number of their line, as in the
    swizzling modes of the PTX ISA. What lies in one vector stays together, and what lies in one
    line of all banks."""
    line, ways = swizzling(row)
    found: Offsets = offsets ^ offsets // line % ways * VECTOR
    return found


def wavefronts(offsets: Offsets, active: Active, size: int) -> Counts:
    """The wavefronts of each warp's request of ``size`` bytes a thread."""
    if size <= WORD:
        return _busiest_bank(offsets, active, size)
    if size == 2 * WORD:
        return _in_pairs(offsets, active, size)
    return _in_parts(_in_pairs, offsets, active, size, 2)


def _in_pairs(offsets: Offsets, active: Active, size: int) -> Counts:
    """All threads at once where those of all pairs ask for the same, else one half after the
    other."""
    paired = _pairs(offsets, active)
    if paired.all():
        return _busiest_bank(offsets, active, size)
    halves = _in_parts(_busiest_bank, offsets, active, size, 2)
    if not paired.any():
        return halves
    found: Counts = np.where(paired, _busiest_bank(offsets, active, size), halves)
    return found


def matrix_wavefronts(offsets: Offsets, active: Active, matrices: int) -> Counts:
    """Those of ``ldmatrix``: the 8 rows of a matrix, 16 bytes each, come together."""
    rows = 8 * matrices
    return _in_parts(_busiest_bank, offsets[:, :rows], active[:, :rows], 16, matrices)


def _in_parts(
    count: Callable[[Offsets, Active, int], Counts],
    offsets: Offsets,
    active: Active,
    size: int,
    parts: int,
) -> Counts:
    """The threads one part after the other."""
    shape = len(offsets) * parts, -1
    each = count(offsets.reshape(shape), active.reshape(shape), size)
    summed: Counts = each.reshape(len(offsets), parts).sum(axis=1)
    return summed


def _pairs(offsets: Offsets, active: Active) -> Active:
    """Where all pairs of threads ask for the same: neighbours, or those two apart. A thread that
    does not take part goes with any other."""
    found = np.zeros(len(offsets), bool)
    for apart in (1, 2):
        shape = len(offsets), -1, 2, apart
        own, there = offsets.reshape(shape), active.reshape(shape)
        same = (own[:, :, 0] == own[:, :, 1]) | ~(there[:, :, 0] & there[:, :, 1])
        found |= np.logical_and.reduce(same, axis=(1, 2))
    return found


def _busiest_bank(offsets: Offsets, active: Active, size: int) -> Counts:
    """The most different words that a bank has to hand over."""
    count = len(offsets)
    first = np.where(active, offsets // WORD, NOWHERE)
    words = np.add.outer(np.arange(-(-size // WORD)), first)  # words x N x threads
    words = words.transpose(1, 0, 2).reshape(count, -1)
    words.sort(axis=1)
    new = words < NOWHERE
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    slots = (words % BANKS + np.arange(0, count * BANKS, BANKS)[:, None])[new]
    per_bank = np.bincount(slots, minlength=count * BANKS).reshape(count, BANKS)
    most: Counts = np.maximum.reduce(per_bank, axis=1)
    return most
