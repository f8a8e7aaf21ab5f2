"""Cycles to read the operands for one step of a reduction in a register tile.

A step is one point of the reductions, for all results of the tile: it loads the elements, or
vectors of them, that these results read there (``OperandAccess.count``). Priced are the loads, from
panels or in place, and what steps before have read already and registers keep; ``footprints`` says
which of them the first cache has lost.

In a nest that reduces nothing, a tile reads once what several of its points read (``read_cycles``),
as by windows that overlap; what lies side by side in memory where lanes do not is read in pieces of
rows, and transposed; and a place that data decides is checked once for all vectors that lie there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import PAGE, OperandAccess
from tcl.codegen.choose.cpu.core_model import SPARE_REGISTERS, Core
from tcl.codegen.choose.cpu.costs import (
    CHECK_CYCLES,
    CONFLICT_CYCLES,
    CROSSING,
    L2_BYTES_PER_CYCLE,
    OTHER_LINE_CYCLES,
    PANEL_LOAD_L1_CYCLES,
    PANEL_LOAD_L2_CYCLES,
    SELECTED_LANE_CYCLES,
    SHUFFLE_CYCLES,
    TRANSPOSED_ALONE,
    TRANSPOSED_BESIDE,
    VECTOR_LOAD_CYCLES,
)
from tcl.codegen.choose.cpu.lanes_model import LaneRead, along_lanes, in_parts
from tcl.codegen.devices.cpu import LINE

TRANSPOSED_STEPS = (8, 4)
"""Neighbours in memory that steps of a reduction read in one piece, where lanes lie apart. On Zen 4
sums of products with a transposed matrix take .57 of the time of single elements. The most of them
only for tiles of up to 32 points."""
_WHOLE_WORD = 4
"""Bytes."""
_FEW_ROWS = 4
"""Rows of one vector that have the most of these steps."""
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
    copied = zip(core.reads, along_lanes(core, lane).copied, strict=True)
    return tuple([may and core.staged(access, lane, sizes) for access, may in copied])


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
    return sum(found)


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
    count = access.count(sizes)
    if staged:
        column = access.count(tile.sizes)
        if lane in access.strides:  # beside the columns of others
            panels = (a for a, copied in zip(core.reads, tile.staged, strict=True) if copied)
            column = sum([a.count(tile.sizes) for a in panels if lane in a.strides])
        column *= core.device.vector_bits // 8 * core.steps
        # Beside a row that reads it once and again, little else wants to be in the first cache.
        first = column <= core.device.l1_bytes * (7 if core.compacted else 4) // 8
        return count * (PANEL_LOAD_L1_CYCLES if first else PANEL_LOAD_L2_CYCLES)
    near = access.count({n: s for n, s in sizes.items() if n not in far}) if far else count
    inner = core.innermost
    if lane is not None and each >= core.lanes and not access.scattered:
        each *= core.filled(lane) if core.dims[lane].extent > core.lanes else 1.0
    if across and inner is not None and 1 < tile.unrolled <= TRANSPOSED_STEPS[0]:
        written_out = {**sizes, inner.name: tile.unrolled}
        halves = core.halves(lane)
        if tile.unrolled == inner.extent or along_lanes(core, lane).counts:
            moved = access.in_tile(lane, core.lanes, written_out, core.masked) * halves
            if tile.unrolled == inner.extent or _transposes_beside(core, access, sizes, tile):
                moved *= TRANSPOSED_BESIDE
        else:  # rows are read as they are: only the shuffles are done in halves
            moved = access.in_tile(lane, core.lanes, written_out, core.masked, halves=halves)
            moved *= TRANSPOSED_ALONE
        each = min(each, moved)
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
    return found


def _transposes_beside(
    core: Core, access: OperandAccess, sizes: Mapping[str, int], tile: Tile
) -> bool:
    """Whether a few steps of a longer loop are transposed beside the arithmetic: those of one
    vector, or of two if registers hold all that is sorted and the second cache all that is read.
    On a Cascade Lake, three to six results of rows of 9 to 285 numbers take .74 to 1.02 of the time
    with two; past that cache 1.05 to 1.12, and with ten results as long as with a panel, or
    longer. Of bytes and shorts, one vector has twice as many steps in a piece if there are few
    rows: scores of three or four queries with such keys take 1.07 to 1.16 times as long with two.
    """
    count = access.count(sizes)
    held = math.prod(sizes.values()) * core.fused.registers + 2 * count * tile.unrolled
    fits = held + SPARE_REGISTERS <= core.device.vector_registers
    long = access.itemsize < _WHOLE_WORD and math.prod(sizes.values()) <= 2 * _FEW_ROWS
    near = access.whole <= core.device.l2_bytes
    return count == 1 or (count == 2 and fits and near and not long)


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
    """As ``read_share``: what the innermost reduction does not move stays in registers, if there
    is room."""
    inner = core.innermost
    if inner is None or inner.name in access.strides or access.scattered:
        return 1.0
    if inner.name != lane and not access.is_apart(lane):
        return 1.0  # as an operand in memory it takes next to nothing
    held = math.prod(sizes.values()) * core.fused.registers
    room = core.device.vector_registers - SPARE_REGISTERS - held
    steps = -(-inner.extent // core.lanes) if inner.name == lane else inner.extent
    return 1.0 / steps if access.count(sizes) <= room else 1.0


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
    return max(0, lost) * LINE / L2_BYTES_PER_CYCLE


def read_cycles(core: Core, lane: str | None, sizes: Mapping[str, int]) -> tuple[float, float]:
    """Cycles to read the operands of one register tile, and to make other types of them."""
    lanes = core.lanes if lane is not None else 1
    seen: set[tuple[str, tuple[tuple[str, int], ...], int]] = set()
    total = converted = 0.0
    checked = set()
    for access, conversion in zip(core.reads, core.conversions, strict=True):
        each = access.in_tile(lane, lanes, sizes)
        selected = access.scattered and each >= SELECTED_LANE_CYCLES * lanes
        if selected or (access.is_apart(lane) and core.results.get(lane or "", 0) > lanes):
            each *= core.filled(lane)
        if access.strides.get(lane or "") == access.itemsize:
            each *= core.halves(lane) * (CROSSING if _crosses(core, access, lane, lanes) else 1.0)
        if access.scattered:
            total += access.vectors(lane, lanes, sizes) * each
            converted += access.vectors(lane, lanes, sizes) * conversion * core.halves(lane)
            if access.checked is not None:
                checked.add(access.checked)
            continue
        strides = tuple(sorted(access.strides.items()))
        places = {(access.tensor, strides, p) for p in _places(access, lane, lanes, sizes)}
        new = places - seen
        if new and any(n > 1 and access.transposed(d, lane, lanes) for d, n in sizes.items()):
            new = places  # windows that overlap are transposed one by one
        once = len(new) / core.turns_inside(access.strides, lane, sizes)
        total += once * each
        converted += once * conversion * (core.halves(lane) if lane in access.strides else 1)
        seen |= places
    checks = sum(math.prod(sizes.get(d, 1) for d in dims) for dims in checked)
    return total + CHECK_CYCLES * checks, converted


def _crosses(core: Core, access: OperandAccess, lane: str | None, lanes: int) -> bool:
    """Whether nearly all vectors of a window lie in two cache lines each, wherever its tensor
    begins: those as long as a line, of rows or places in them that begin anywhere in lines. What is
    read once takes longer to come than to be put together."""
    apart = [access.first, *(step for dim, step in access.strides.items() if dim != lane)]
    if lanes * access.itemsize < LINE or not any(step % LINE for step in apart):
        return False
    same = (a for a in core.reads if (a.tensor, a.strides) == (access.tensor, access.strides))
    return sum(1 for _ in same) > 1


def _places(
    access: OperandAccess, lane: str | None, lanes: int, sizes: Mapping[str, int]
) -> Iterator[int]:
    """Where the elements, or vectors of them, lie that a register tile reads: bytes."""
    moving = [
        [k * access.strides[d] * (lanes if d == lane else 1) for k in range(size)]
        for d, size in sizes.items()
        if d in access.strides
    ]
    return (access.first + sum(steps) for steps in itertools.product(*moving))


def sharing_dims(core: Core, lane: str | None) -> list[str]:
    """The dimensions along which neighbouring points, or vectors of them, can read or compute the
    same, or what lies side by side. What does not change along the lanes LLVM moves out of the
    loop over them."""
    moving = [a for a in core.reads if not a.scattered]
    every = (*moving, core.target)
    windows = {(a.tensor, tuple(sorted(a.strides.items()))) for a in moving}
    overlap = len(windows) < len(moving)
    found = []
    for dim in core.nest.dims:
        if dim.name == lane:
            same = any(a.checked is not None and lane not in a.checked for a in core.reads)
        else:
            same = overlap or any(a.shares(dim.name) for a in core.reads)
            same = same or any(a.transposed(dim.name, lane, core.lanes) for a in every)
            same = same or any(dim.name not in dims for dims in core.arithmetic)
        if same and dim.extent > 1:
            found.append(dim.name)
    return found
