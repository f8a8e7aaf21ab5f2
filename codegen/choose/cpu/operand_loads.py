"""Cycles to read the operands for one step of a reduction in a register tile.

A step is one point of the reductions, for all results of the tile: it loads the elements, or
vectors of them, that these results read there (``OperandAccess.count``). Priced are the loads, from
panels or in place; what steps before have read already and registers keep; and lines that the first
cache has lost in between. Nests that reduce nothing are priced in ``memory_reads.read_cycles``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import PAGE, OperandAccess
from tcl.codegen.choose.cpu.core_model import SPARE_REGISTERS, Core
from tcl.codegen.choose.cpu.costs import (
    CACHE_LEVEL_BYTES_PER_CYCLE,
    CONFLICT_CYCLES,
    LOST_LINE_CYCLES,
    OTHER_LINE_CYCLES,
    PANEL_LOAD_L1_CYCLES,
    PANEL_LOAD_L2_CYCLES,
    SHUFFLE_CYCLES,
    TRANSPOSED_BESIDE,
    VECTOR_LOAD_CYCLES,
)
from tcl.codegen.choose.cpu.lanes_model import LaneRead, along_lanes, in_parts
from tcl.codegen.devices.cpu import LINE

TRANSPOSED_STEPS = (8, 4)
"""Neighbours in memory that steps of a reduction read in one piece, where lanes lie apart. On Zen 4
sums of products with a transposed matrix take .57 of the time of single elements. The most of them
only for tiles of up to 32 points."""
NO_WINDOW: Mapping[str, int] = MappingProxyType({})


class Tile(NamedTuple):
    """What the parts of a register tile's points have alike, if it is cut short."""

    sizes: Mapping[str, int]
    """Of the whole one."""
    staged: tuple[bool, ...]
    """Per operand."""
    unrolled: int
    """Steps of the innermost reduction that are written out."""
    window: Mapping[str, int] = NO_WINDOW
    """The reductions, with their extents, that are written out so that registers keep what several
    of their steps read ..."""
    every: bool = False
    """... of every operand, and not only of those that are read in vectors."""


def staged_operands(core: Core, lane: str | None, sizes: Mapping[str, int]) -> tuple[bool, ...]:
    """Per operand, whether it is read from a panel."""
    return tuple([core.staged(access, lane, sizes) for access in core.reads])


def load_cycles(
    core: Core, lane: str | None, sizes: Mapping[str, int], tile: Tile, shares: Sequence[float]
) -> float:
    """Cycles to read such shares of the operands for one step of a register tile."""
    along = along_lanes(core, lane)
    reads = zip(along.reads, tile.staged, shares, strict=True)
    found = [_load(core, read, lane, sizes, tile, staged) * share for read, staged, share in reads]
    for places, elements in along.alike:
        part = _different(core, places, elements, sizes, tile.unrolled)
        for k in places:
            found[k] *= part
    return max(sum(found), _lost_rows(core, lane, sizes, tile))


def _different(
    core: Core, places: Sequence[int], elements: int, sizes: Mapping[str, int], unrolled: int
) -> float:
    """The part of some operands' elements in steps that are written out which are no elements of
    another one, or of a step before."""
    access, inner = [core.reads[k] for k in places], core.innermost
    steps = unrolled if inner is not None and inner.name in access[0].moved else 1
    there = elements * math.prod(sizes.get(d, 1) for d in access[0].strides)
    return min(1.0, there / (max(1, steps) * sum(a.count(sizes) for a in access)))


def _load(
    core: Core,
    read: LaneRead,
    lane: str | None,
    sizes: Mapping[str, int],
    tile: Tile,
    staged: bool,
) -> float:
    """Cycles to read all elements of an operand in a step, from a panel if it is ``staged``."""
    access, each, far, across = read
    whole = tile.sizes
    count = access.count(sizes)
    if staged:
        column = access.count(whole) * core.device.vector_bits // 8 * core.steps
        # Beside a row that reads it once and again, little else wants to be in the first cache.
        first = column <= core.device.l1_bytes * (7 if core.compacted else 4) // 8
        return count * (PANEL_LOAD_L1_CYCLES if first else PANEL_LOAD_L2_CYCLES)
    near = access.count({n: s for n, s in sizes.items() if n not in far}) if far else count
    inner = core.innermost
    if across and inner is not None and 1 < tile.unrolled <= TRANSPOSED_STEPS[0]:
        written_out = {**sizes, inner.name: tile.unrolled}
        moved = access.in_tile(lane, core.lanes, written_out, core.masked)
        if moved < each:
            # In a loop that was measured of one vector of them only.
            beside = tile.unrolled == inner.extent or count == 1
            part = TRANSPOSED_BESIDE if beside else 1.0
            each = min(each, moved * part * core.halves(lane))
    between = along_lanes(core, lane).between
    if inner is not None and lane is not None and 1 < between <= tile.unrolled:
        steps = (access.strides.get(inner.name, 0) * between, access.strides.get(lane, 0))
        if steps == (access.itemsize * between,) * 2:
            # These steps read the same vectors, and sort them.
            together = VECTOR_LOAD_CYCLES + SHUFFLE_CYCLES * (between - 1)
            each = min(each, in_parts(core, together, lane))
    found = count * each + OTHER_LINE_CYCLES * (count - near)
    # Lines of as many pages may lie in the same place of the first cache.
    ways = core.device.l1_bytes // PAGE - 2
    found += CONFLICT_CYCLES * max(0, count // near - ways)
    if lane is not None and lane in access.strides:
        # Vectors side by side share cache lines, those of different rows do not.
        found += OTHER_LINE_CYCLES * (count - access.count({lane: sizes.get(lane, 1)}))
    elif _loses(core, access, lane, whole):
        found += LOST_LINE_CYCLES
    else:
        found += _torn_line_cycles(core, access, lane, sizes)
    return found


def _lost_rows(core: Core, lane: str | None, sizes: Mapping[str, int], tile: Tile) -> float:
    """Cycles in which rows of a product, with the lanes along them, come from the second cache
    for each register tile that reads them again, as the first one does not hold those of one
    tile."""
    rows = along_lanes(core, lane).rows
    if not rows:
        return 0.0
    apart = {d: n for d, n in tile.sizes.items() if d != lane}
    if sum([a.count(apart) * length for a, length in rows]) <= core.device.l1_bytes:
        return 0.0
    vectors = sum([a.count(sizes) for a, _ in rows])
    return vectors * core.device.vector_bits // 8 / CACHE_LEVEL_BYTES_PER_CYCLE[0]


def _loses(core: Core, access: OperandAccess, lane: str | None, whole: Mapping[str, int]) -> bool:
    """Whether each step reads from another page, and there are so many of them that the first
    cache has lost their lines when the next register tile reads the values beside."""
    inner = core.innermost
    if inner is None or abs(access.strides.get(inner.name, 0)) < PAGE:
        return False
    near = inner.extent * LINE <= core.device.l1_bytes // 2
    return not near and core.again(access, lane, whole) > 1


def _torn_line_cycles(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """Cycles in which a step's lines come from behind the first cache more than once, as it has
    lost them by the time that other results need the rest of them: with the elements of a column
    144 bytes apart, a product of tensors of rank 4 and 3 took 2.4 times as long on Cascade Lake."""
    near = {d.name for d in core.nest.dims if 0 < abs(access.strides.get(d.name, 0)) < LINE}
    reduced = {d.name: d.extent for d in core.nest.dims if d.reduction}
    names = list(core.results)
    beside = [k for k, d in enumerate(names) if d in near and core.results[d] > sizes.get(d, 1)]
    if lane is None or not beside or near & reduced.keys():
        return 0.0  # steps read whole lines
    until = {**reduced, **sizes, **{d: core.results[d] for d in names[beside[0] + 1 :]}}
    touched = access.lines(until) * LINE
    torn = access.lines(sizes) - access.count(sizes) * access.itemsize / LINE
    if touched <= core.device.l1_bytes or torn < 1:
        return 0.0
    level = int(touched > core.device.l2_bytes // 2)
    return torn * LINE / CACHE_LEVEL_BYTES_PER_CYCLE[level]


def read_share(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int], tile: Tile
) -> float:
    """The part of an operand's elements in a step that no step before it has read already."""
    if not tile.window or not (tile.every or lane is None or lane in access.strides):
        return _held_share(core, access, lane, sizes)
    steps = math.prod(tile.window.values())
    return access.count_shared(lane, sizes, tile.window) / (steps * access.count(sizes))


def _held_share(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """As ``read_share``, where the innermost reduction goes along rows: what it does not move
    stays in registers, if there is room."""
    inner = core.innermost
    if inner is None or inner.name != lane or lane in access.strides or access.scattered:
        return 1.0
    held = math.prod(sizes.values()) * core.fused.registers
    room = core.device.vector_registers - SPARE_REGISTERS - held
    steps = -(-inner.extent // core.lanes)
    return 1.0 / steps if access.count(sizes) <= room else 1.0


def lost_column_cycles(
    core: Core, lane: str | None, sizes: Mapping[str, int], tile: Tile, shares: Sequence[float]
) -> float:
    """Cycles in which columns of a product, with the lanes across them, come from the second cache
    for each register tile that goes through them again, as the first one does not hold those of
    one tile: for doubles on Cascade Lake, 3 rows of 6 vectors take 1.2 times as long as 6 of 4. Of
    tiles that are cut short there are few."""
    if sizes != tile.sizes:
        return 0.0
    each, lost = core.device.vector_bits // 8, 0.0
    for access, column, share in zip(
        core.reads, along_lanes(core, lane).columns, shares, strict=True
    ):
        if column and access.count(sizes) * each * core.steps > core.device.l1_bytes:
            lost += access.count(sizes) * share * each / CACHE_LEVEL_BYTES_PER_CYCLE[0]
    return lost


def pushed_out_cycles(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """Cycles to read lines again whose rest the next steps read, as more rows than the first
    cache has ways lie in the same place of it. On Zen 4, 14 rows of 4 KB take 1.3 to 1.8 times
    as long as 8."""
    rows = {d: n * (core.lanes if d == lane else 1) for d, n in sizes.items()}
    rows = {d: n for d, n in rows.items() if n > 1 and d in access.strides}
    places = PAGE // math.gcd(PAGE, *(access.strides[d] for d in rows))
    lost = math.prod(rows.values()) - places * (core.device.l1_bytes // PAGE)
    return max(0, lost) * LINE / CACHE_LEVEL_BYTES_PER_CYCLE[0]
