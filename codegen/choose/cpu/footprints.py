"""Which cache operands come from when a nest uses them again.

The terms are those of the literature on loop tiling:

- the *footprint* of some loops is what their points touch, in whole cache lines;
- the *reuse distance* of a line is the footprint of what runs between two uses of it: of one
  iteration of the innermost loop around both, which *carries* the reuse;
- the line comes from the nearest cache that holds as much as its reuse distance (Mattson et al.,
  "Evaluation techniques for storage hierarchies", 1970).

``refills`` says for each loop around a register tile how many bytes come to the first cache again
and from which level; ``with_refills`` how long a nest takes with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.costs import (
    CACHE_BYTES_PER_CYCLE,
    L2_BYTES_PER_CYCLE,
    L3_BYTES_PER_CYCLE,
    MEMORY_BYTES_PER_CYCLE,
    SERIAL_SHARE,
)
from tcl.codegen.devices.cpu import LINE, CpuProfile

_OWN_L2 = 7 / 8
"""The part of the second cache that operands and results have."""
READ_AHEAD = 4 * LINE
"""Bytes of a row from which on processors read ahead."""
_HIDDEN = 1 / 4
"""The part of the time that a core waits for elements in the order of memory, from behind the
second cache ..."""
_HIDING = 11
"""... with so many accumulators, less one."""
_BEHIND = 2.0
"""How much longer rows of memory take beside products, divided by how many are read side by side:
set on Zen 4, with 2 to 8 rows."""
_KEPT = 8
"""Times the second cache: results from which on writing them past the caches was measured to pay
even if they are read next."""
_KEPT_BY_L3 = 16 << 20
"""Bytes of results that the last cache, if it is that large, is taken to keep."""


def cached_bytes(device: CpuProfile) -> int:
    """Bytes that caches keep, where that was measured, or are taken to keep."""
    if device.memory is not None:
        return device.memory.cached_bytes
    return max(_KEPT * device.l2_bytes, min(device.l3_bytes, _KEPT_BY_L3))


def surely_cached(device: CpuProfile) -> int:
    """Bytes that the last cache keeps beside what else is read."""
    return cached_bytes(device) * 2 // 3


def memory_rate(device: CpuProfile) -> float:
    """Bytes per cycle that a core reads in order from memory."""
    return MEMORY_BYTES_PER_CYCLE if device.memory is None else device.memory.bytes_per_cycle


class Level(IntEnum):
    """Where a line is, the nearest first."""

    L1 = 0
    L2 = 1
    L3 = 2
    MEMORY = 3

    @staticmethod
    def at(device: CpuProfile, distance: float) -> Level:
        """The nearest one that has a line after a reuse distance of so many bytes."""
        if distance <= device.l1_bytes:
            return Level.L1
        if distance <= device.l2_bytes * _OWN_L2:
            return Level.L2
        return Level.L3 if distance <= cached_bytes(device) else Level.MEMORY

    def rate(self, device: CpuProfile) -> float:
        """Bytes per cycle that come from there to the first cache."""
        if self <= Level.L2:
            return L2_BYTES_PER_CYCLE
        return L3_BYTES_PER_CYCLE if self is Level.L3 else memory_rate(device)


def footprint(accesses: Iterable[OperandAccess], points: Mapping[str, int]) -> int:
    """Bytes of the lines that accesses touch in so many points along dimensions."""
    return LINE * sum([access.lines(points) for access in accesses])


class Refill(NamedTuple):
    """What comes to the first cache again for one loop, of accesses that move alike."""

    level: Level
    """Where from."""
    bytes: float
    exposed: float
    """The part of the time in which the core waits for it, where it comes from behind the second
    cache: nothing for vectors in the order of memory, in which processors read ahead, a part where
    single elements are read in order, all of it elsewhere."""


def with_refills(core: Core, lane: str | None, sizes: Mapping[str, int], cycles: float) -> float:
    """What a nest takes with its refills, which takes so many ``cycles`` without: the second cache
    hands over lines beside the core's work; for those behind it the core waits in part."""
    beside = waited = 0.0
    for level, bytes_, exposed in refills(core, lane, sizes):
        each = bytes_ / level.rate(core.device)
        if level is Level.L2:
            beside += each
        else:
            waited += exposed * each
    share = core.share if core.compacted else core.reached(lane, sizes)
    share *= core.taken(lane, sizes)
    beside *= 1.0 + SERIAL_SHARE  # the first cache is read while it is filled
    return max(cycles, share * beside) + share * waited


def refills(core: Core, lane: str | None, sizes: Mapping[str, int]) -> Iterator[Refill]:
    """What each loop around a register tile uses again after a distance that the first cache does
    not hold, the innermost loop first."""
    loops = _loops(core, lane, sizes)
    streams = _streams(core, lane, sizes)
    points = {dim: min(width, core.dims[dim].extent) for dim, width, _, _ in loops}
    outside = math.prod([turns for _, _, turns, _ in loops])
    inside = [stream.footprint(points) for stream in streams]
    for dim, _, turns, farthest in loops:
        if turns == 1:
            continue
        outside //= turns
        level = min(farthest, Level.at(core.device, sum(inside)))
        points[dim] = core.dims[dim].extent
        whole = [
            stream.footprint(points) if dim in stream.access.strides else once
            for stream, once in zip(streams, inside, strict=True)
        ]
        if level > Level.L1:
            for stream, once, every in zip(streams, inside, whole, strict=True):
                if once * turns > every:
                    yield Refill(level, (once * turns - every) * outside, stream.exposed)
        inside = whole


def _loops(
    core: Core, lane: str | None, sizes: Mapping[str, int]
) -> list[tuple[str, int, int, Level]]:
    """The loops around a register tile, the innermost first: dimension, points of an iteration,
    iterations, and the farthest level that the next one finds lines in, as reductions are cut so
    that the second cache keeps a column."""
    names, rows = list(core.dims), list[str]()
    if core.reduces:
        results = [d for d in names if not core.dims[d].reduction]
        columns = columns_of(core, lane, sizes)
        if columns and not stay_near(core, columns):
            rows = [d for d in results if d != lane and (d in sizes or d in core.compacted)]
            results = [*(d for d in results if d not in (lane, *rows)), str(lane), *rows]
        names = [*results, *(d for d in names if core.dims[d].reduction)]
    widths = {d: sizes.get(d, 1) * (core.lanes if d == lane else 1) for d in names}
    return [
        (d, n, -(-core.dims[d].extent // n), Level.L2 if d in rows else Level.MEMORY)
        for d, n in reversed(widths.items())
    ]


def columns_of(core: Core, lane: str | None, sizes: Mapping[str, int]) -> list[OperandAccess]:
    """The operands of which all rows of results take one column of register tiles before the next
    one: those with the lanes, if they are worth panels. None where that would tear the rows of an
    operand which has the lanes and moves along these rows, too."""
    rows = {d for d in core.results if d != lane and (d in sizes or d in core.compacted)}
    if lane is None or core.dims[lane].reduction or not rows:
        return []
    vectors = [a for a in core.reads if lane in a.strides]
    if any(rows <= a.strides.keys() for a in vectors):
        return []
    return [a for a in vectors if core.worth_staging(a, lane, sizes)]


def stay_near(core: Core, columns: Iterable[OperandAccess]) -> bool:
    """Whether the first cache has all columns of these operands: loops go as memory lies then."""
    elements = sum([a.elements for a in columns])
    return elements * core.target.itemsize <= core.device.l1_bytes // 2


class _Stream(NamedTuple):
    """Accesses that move alike, as those of a stencil, of which some read what others have read."""

    access: OperandAccess
    gaps: tuple[int, ...]
    """Bytes from each of them to the next one in memory."""
    panel: bool
    """It is read from a panel, element by element."""
    wider: int
    """Times that elements are larger where they are read: panels and images are converted."""
    exposed: float
    """As of ``Refill``."""

    def footprint(self, points: Mapping[str, int]) -> int:
        """Bytes of so many points along dimensions."""
        strides, itemsize = self.access.strides, self.access.itemsize
        if self.panel:
            return itemsize * self.wider * math.prod([points[d] for d in strides])
        one = self.access.lines(points) * LINE * self.wider
        if not self.gaps:
            return one
        span = itemsize + sum([abs(step) * (points[d] - 1) for d, step in strides.items()])
        return one + one * sum([min(gap, span) for gap in self.gaps]) // span


def _streams(core: Core, lane: str | None, sizes: Mapping[str, int]) -> list[_Stream]:
    """Those of a nest's operands and results whose places no data decide."""
    inside = {d: n * (core.lanes if d == lane else 1) for d, n in sizes.items()}
    inside |= {d.name: d.extent for d in core.reduced}
    if lane is not None and not core.reduces:
        inside[lane] = core.dims[lane].extent
    found = []
    for access, gaps in core.streams:
        panel = core.reduces and access is not core.target and core.staged(access, lane, sizes)
        type_ = core.nest.point.type
        wider = type_.compute.itemsize // type_.itemsize if panel or access.overlapping else 1
        row = access.itemsize
        for dim, count in sorted(inside.items(), key=lambda each: access.strides.get(each[0], 0)):
            row *= count if access.strides.get(dim) == row else 1
        exposed = 1.0
        if panel or row >= READ_AHEAD:
            few = max(1.0, _HIDING - math.prod(sizes.values()))  # others hide less of it
            exposed = 0.0 if lane in access.strides else min(1.0, _HIDDEN * few)
        found.append(_Stream(access, gaps, panel, wider, exposed))
    return found


def least_memory_cycles(core: Core) -> float:
    """Cycles that memory takes at least, if caches do not keep the tensors of the nest."""
    whole, touched = _whole_and_touched(core)
    return touched / memory_rate(core.device) if whole > cached_bytes(core.device) else 0.0


def least_far_cycles(core: Core) -> float:
    """Cycles in which what a nest reads and writes comes from behind the second cache at least, if
    that does not keep its tensors."""
    whole, touched = _whole_and_touched(core)
    if whole <= 2 * core.device.l2_bytes:
        return 0.0
    return touched / Level.at(core.device, whole).rate(core.device)


def _whole_and_touched(core: Core) -> tuple[int, int]:
    """Bytes of all tensors that the nest reads and writes, and of what it touches of them: a nest
    may be one of many chunks."""
    whole, touched = dict[str, int](), dict[str, int]()
    for access in (*core.reads, core.target):
        of, whole[access.tensor] = access.tensor, access.whole
        touched[of] = min(access.whole, max(touched.get(of, 0), access.elements * access.itemsize))
    return sum(whole.values()), sum(touched.values())


def memory_cycles(core: Core, access: OperandAccess, kept: bool = False) -> float:
    """Cycles in which an operand that nothing reads twice comes from memory, or from the last cache
    if that has ``kept`` it."""
    touched = core.touched(access)
    if access.is_window(core.dims) or access.whole * touched <= core.device.l2_bytes:
        return 0.0
    rate = CACHE_BYTES_PER_CYCLE if kept else memory_rate(core.device)
    return access.elements * access.itemsize * touched / rate


def far_row_cycles(core: Core, access: OperandAccess, rows: int) -> float:
    """Cycles in which rows with the lanes along them come from memory, so many side by side, while
    the core multiplies: the fewer there are, the less is on its way."""
    if access.whole <= surely_cached(core.device):
        return 0.0
    return memory_cycles(core, access) * (1.0 + _BEHIND / rows)
