"""What kernels ask of memory, and what a warp's request takes: sectors of global memory, wavefronts
of shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum

import numpy as np

from tcl.codegen.common.warps import SLAB, SLAB_TURN
from tcl.codegen.counters.places import Linear, Place
from tcl.codegen.devices import banks
from tcl.common.dataclass import dataclass

SECTOR = 32
"""Bytes."""


def sectors(offsets: banks.Offsets, active: banks.Active, size: int) -> banks.Counts:
    """The sectors that each warp asks for, where each thread accesses ``size`` bytes, at most a
    sector: those that several threads ask for count once."""
    first = offsets // SECTOR
    last = (offsets + (size - 1)) // SECTOR
    both = first if (first == last).all() else np.concatenate((first, last), axis=1)
    there = active if both is first else np.concatenate((active, active), axis=1)
    return _different(np.where(there, both, banks.NOWHERE))


LINE = 128
"""Bytes that the first cache hands over at once."""


def lines(offsets: banks.Offsets, active: banks.Active, size: int) -> banks.Counts:
    """The lines that the first cache hands over for each warp's request of ``size`` bytes a thread:
    as many threads go together as may ask for a whole line, so 8 where each asks for 16 bytes, even
    if all ask for the same (the counters of an H100: 4 wavefronts for such a request)."""
    parts = max(1, size * banks.WARP // LINE)
    values = np.where(active, offsets // LINE, banks.NOWHERE).reshape(len(offsets) * parts, -1)
    summed: banks.Counts = _different(values).reshape(len(offsets), parts).sum(axis=1)
    return summed


def _different(values: banks.Offsets) -> banks.Counts:
    """How many different values a row has, ``NOWHERE`` aside."""
    ordered = np.sort(values, axis=1)
    new = ordered < banks.NOWHERE
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    counted: banks.Counts = new.sum(axis=1)
    return counted


class Memory(Enum):
    GLOBAL_READ = "global reads"
    GLOBAL_WRITE = "global writes"
    GLOBAL_COPY = "global copies"
    """What asynchronous copies read, past the first cache."""
    SHARED_READ = "shared reads"
    SHARED_WRITE = "shared writes"
    SHARED_COPY = "shared copies"
    """What they write."""
    MATRIX_READ = "matrix reads"
    """``ldmatrix``."""

    def __init__(self, what: str) -> None:
        self.is_global = what.startswith("global")
        """Whether sectors are asked for, else wavefronts."""


@dataclass(frozen=True, slots=True)
class Box:
    """The elements that an access goes through."""

    of_block: tuple[int, ...]
    """Along each axis of the tensor, those of one block."""
    of_all: tuple[int, ...]
    """Those of all blocks."""
    grid: frozenset[str]
    """The variables of blocks on which it depends."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    kind: Memory
    tensor: str
    """Empty for what threads exchange."""
    size: int
    """Bytes that a thread accesses at once."""
    place: Place
    offset: Linear
    """Bytes from the tensor's first element, or from the beginning of a panel's buffer. Where data
    decides, what it depends on is taken to lead to places far apart."""
    outside: Place
    """The place before the loops that are written out: what is asked for there is on its way at
    once."""
    box: Box | None = None
    """The elements; None in shared memory."""
    ahead: int = 1
    """How many iterations of the loop around it are on their way."""
    early: bool | None = None
    """Of what fills a panel, or is begun together with a first tile: whether a block does something
    else until it is there."""
    phase: int = 0
    """Which of the block's statements it belongs to: one after the other, by number."""
    matrices: int = 0
    swizzle: int = 0
    """That of the tensor's layout."""
    slabs: bool = False
    """Likewise."""
    different: float = 1.0
    """The share of a thread's accesses that compilers leave: where loops that are written out read
    an element again, it is in a register."""
    fills: bool = False
    """Whether it fills a panel."""


@dataclass(frozen=True, slots=True)
class Traffic:
    requests: int = 0
    """Of warps: one for each access of the code that any of its threads makes."""
    units: int = 0
    """Sectors of global memory, or wavefronts of shared memory."""
    bytes: int = 0
    """That threads asked for."""
    lines: int = 0
    """Those that reads of global memory ask for: what the first cache hands over, about, or the
    second one where copies pass the first."""
    exact: bool = True
    """Whether no data decided what was asked for; else it is the most there can be."""

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.units + other.units,
            self.bytes + other.bytes,
            self.lines + other.lines,
            self.exact and other.exact,
        )

    def left(self, share: float) -> Traffic:
        requests, units, moved = (round(n * share) for n in (self.requests, self.units, self.bytes))
        return Traffic(requests, units, moved, round(self.lines * share), self.exact)

    @property
    def each(self) -> float:
        """Units a request."""
        return self.units / max(1, self.requests)


def traffic_of(access: Access) -> Traffic:
    """What one access of the code comes to, over all blocks and iterations, as the source has
    it."""
    place, size = access.place, access.size
    requests = units = moved = handed = 0
    modulus = SECTOR if access.kind.is_global else banks.WORD
    if access.swizzle:
        modulus = math.prod(banks.swizzling(access.swizzle))
    if access.slabs:
        modulus = SLAB_TURN // SLAB * access.swizzle
    for counts, offsets, active in place.classes(access.offset, modulus):
        if access.swizzle:
            offsets = (banks.in_slabs if access.slabs else banks.swizzled)(offsets, access.swizzle)
        if access.kind is Memory.MATRIX_READ:
            each = banks.matrix_wavefronts(offsets, active, access.matrices)
        elif access.kind.is_global:
            each = sectors(offsets, active, size)
        else:
            each = banks.wavefronts(offsets, active, size)
        if access.kind in (Memory.GLOBAL_READ, Memory.GLOBAL_COPY):
            handed += int((counts * lines(offsets, active, size)).sum())
        requests += int(counts.sum())
        units += int((counts * each).sum())
        own = active.sum(axis=1)
        if access.kind is Memory.MATRIX_READ:
            own = own * 0 + 8 * access.matrices
        moved += int((counts * own).sum()) * size
    return Traffic(requests, units, moved, handed, place.exact)


def by_kind(accesses: Iterable[Access]) -> dict[Memory, Traffic]:
    """The sums over the accesses of each kind, as the source has them."""
    found = dict.fromkeys(Memory, Traffic())
    for access in accesses:
        found[access.kind] += traffic_of(access)
    return found
