"""How many steps of the reductions are written out beside a register tile, and what fits.

The limit is the vector registers: a tile holds an accumulator for each of its points, and what
several points or steps read again. Steps are written out where that saves loads (a window whose
rows share elements), loop ends that the core does not foresee, or counting.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from tcl.codegen.choose.cpu.core_model import SHORT_LOOP, SPARE_REGISTERS, Core
from tcl.codegen.choose.cpu.costs import CROSSING_LOADS, OPERATION_CYCLES, STREAMS, WINDOW_LOADS
from tcl.codegen.choose.cpu.lanes_model import along_lanes
from tcl.codegen.choose.cpu.operand_loads import (
    NO_WINDOW,
    TRANSPOSED_STEPS,
    Tile,
    load_cycles,
    staged_operands,
)
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import terms
from tcl.codegen.loopir.walk import walk
from tcl.codegen.passes.cpu.register import MAX_POINTS

WRITTEN_OUT_POINTS = 48
"""Points beyond which the end of a short loop counts, unless all of it is written out: of fewer,
where no loop around it is long."""
_LONGER = 32
"""Likewise of a loop up to twice as long: kernels for many sizes have code for each length."""
_UNROLL = (4, 2)
"""Steps that are tried, so that counting takes less."""
_SHARING = (8, 4, 2)
"""Likewise, so that less is read."""
_CUT_VECTOR = 2
"""Registers more that steps which are written out need where the last vector of a row is read under
a mask: LLVM loads the whole ones of all steps first. With 13 rows of 24 floats and four steps, 18
of 26 sums lay in memory on AVX-512 beside an epilogue, which took 1.8 times as long."""
_WHOLE_POINTS = 72
"""Points up to which all of several reductions are written out."""
_LONG_CYCLES = 1000.0
"""Cycles of arithmetic from which on the end of a loop counts for nothing, and its code for too
much where it is written out. On Zen 4, the neighbours of hexagons with subscripts modulo the sizes
take .82 of the time with a loop and a fifth of the code, hashed grids .68 of the time."""
_FEW_REGISTERS = 16
"""As AVX2 has: tiles leave few of them."""
_LONG = 64
"""Steps of a reduction from which on a rest that is not written out counts for little."""


def steps_written_out(core: Core, lane: str | None, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The reductions of which so many steps, two or more, are best written out: all of the few
    short ones, if the innermost are. At the end of a loop of two or three steps the core goes the
    wrong way, and sums that no loop keeps need not begin as zeros. On Zen 3, windows of 3 x 3 and
    pools of 2 x 2 with lanes along channels take .65 to .85 of the time."""
    steps = innermost_written_out(core, lane, sizes)
    every = {d.name: d.extent for d in core.reduced}
    points = math.prod(sizes.values()) * core.fused.registers * math.prod(every.values())
    long = points > _WHOLE_POINTS or _is_long(core, points)
    if not steps or long or core.compacted or lane in every:
        return steps
    asks = any(isinstance(v, ir.Select) for v in walk(core.nest.point.value))
    if asks and not core.deciding:
        return steps  # loops ask once what each of the points written out would
    short = max(every.values()) < SHORT_LOOP and all(n == every[d] for d, n in steps.items())
    return every if short else steps


def innermost_written_out(
    core: Core, lane: str | None, sizes: Mapping[str, int]
) -> Mapping[str, int]:
    """As ``steps_written_out``, without reductions around these."""
    if window := window_of(core, lane, sizes):
        return window
    steps = unrolled_steps(core, lane, sizes)
    return {core.innermost.name: steps} if core.innermost is not None and steps > 1 else {}


def unrolled_steps(
    core: Core, lane: str | None, sizes: Mapping[str, int], fit: bool | None = None
) -> int:
    """How many steps of the innermost reduction are best written out; ``fit``: whether all do,
    where that is known."""
    inner = core.innermost
    if inner is None or inner.name in core.compacted:
        return 1
    between = along_lanes(core, lane).between
    if 1 < between < min(inner.extent, SHORT_LOOP):
        return between
    if all_steps_fit(core, inner, lane, sizes) if fit is None else fit:
        return inner.extent
    if _ends_early(core, inner):
        return 1
    if steps := _transposed_steps(core, inner, lane, sizes):
        return steps
    if steps := _sharing_steps(core, inner, lane, sizes):
        return steps
    # Beside dot products that are added by other instructions, counting is no cost of a step, but
    # on Zen 3 products of bytes take .8 of the time with four steps written out.
    if not along_lanes(core, lane).counts and core.products is None:
        return 1
    spare = SPARE_REGISTERS + (_CUT_VECTOR if _cuts_vector(core, lane, sizes) else 0)
    if live_registers(core, lane, sizes) + spare > core.device.vector_registers:
        return 1
    tile = Tile(sizes, staged_operands(core, lane, sizes), 1)
    loads = load_cycles(core, lane, sizes, tile, [1.0] * len(core.reads))
    if loads > core.each * math.prod(sizes.values()):
        return 1  # counting runs beside them
    point = core.nest.point
    points = math.prod(sizes.values()) * len(terms(point.op, point.value))
    for steps in _UNROLL:
        whole = inner.extent % steps == 0 or inner.extent >= _LONG
        if inner.extent >= SHORT_LOOP * 2 and whole and points * steps <= MAX_POINTS:
            return steps
    return 1


def _ends_early(core: Core, inner: ir.Dim) -> bool:
    """Whether a loop ends where a condition does after so few points that one more or less counts:
    it goes through as many as are written out. On Zen 4, sums over pairs of 19 atoms take .88 of
    the time point by point, compared with 4 points that are read in one piece."""
    dims, share = core.within
    return inner.name in dims and inner.extent * share < _LONG


def _cuts_vector(core: Core, lane: str | None, sizes: Mapping[str, int]) -> bool:
    """Whether a register tile has all vectors of a row, the last of which has fewer points."""
    vectors = sizes.get(lane or "", 1)
    extent = core.results.get(lane or "", 1)
    return vectors > 1 and (vectors - 1) * core.lanes < extent < vectors * core.lanes


def _transposed_steps(core: Core, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Steps that are best written out as their elements are neighbours in memory, and lanes are
    not: these are read in pieces of rows, and transposed. 0 if there are none. A rest that is no
    piece costs less than single elements: on Cascade Lake, places of maxima of rows of 9 to 37
    floats take .5 of the time, softmax of 17 to 50 takes .7 to .85."""
    if inner.extent < SHORT_LOOP or not any(read.across for read in along_lanes(core, lane).reads):
        return 0
    vectors = [
        access.count(sizes)
        for access in core.reads
        if access.transposed(inner.name, lane, core.lanes) and not core.staged(access, lane, sizes)
    ]
    if not vectors:
        return 0
    points = math.prod(sizes.values())
    room = core.device.vector_registers - SPARE_REGISTERS - points * core.fused.registers
    for steps in TRANSPOSED_STEPS:
        short = points * steps <= _LONGER or steps == TRANSPOSED_STEPS[-1]
        whole = inner.extent % steps == 0 or inner.extent >= 2 * steps
        if short and whole and steps <= core.lanes and steps * sum(vectors) <= room:
            return steps
    return 0


def _sharing_steps(core: Core, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Steps that are best written out as loads take longer than the arithmetic, and most of what
    one reads the step before has read for other rows, as of a filter along time of several
    channels: see ``window_of_steps``. 0 if there are none."""
    stepping = along_lanes(core, lane).stepping
    if not stepping or not any(n > 1 and d in stepping for d, n in sizes.items()):
        return 0
    points = math.prod(sizes.values())
    tile = Tile(sizes, staged_operands(core, lane, sizes), 1)
    if load_cycles(core, lane, sizes, tile, [1.0] * len(core.reads)) <= core.each * points:
        return 0
    for steps in _SHARING:
        fits = points * steps <= MAX_POINTS and inner.extent >= 2 * steps
        if fits and window_of_steps(core, inner, lane, sizes, steps):
            return steps
    return 0


def counted_steps(
    core: Core, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int], fit: bool
) -> int:
    """``unrolled_steps``, as far as the model prices it: where loop ends or counting take time."""
    if inner.extent < SHORT_LOOP:
        # The loops around it run on, if they are long.
        long = any(d.extent >= SHORT_LOOP for d in core.reduced)
        whole = long and inner.extent * math.prod(sizes.values()) <= WRITTEN_OUT_POINTS
        return inner.extent if whole else unrolled_steps(core, lane, sizes, fit)
    if along_lanes(core, lane).counts:
        return unrolled_steps(core, lane, sizes, fit)
    if _ends_early(core, inner):
        return 1
    steps = 0 if core.called else _transposed_steps(core, inner, lane, sizes)
    if 0 < steps * math.prod(sizes.values()) <= _LONGER:
        return steps  # functions need the units that transpose; large tiles are worth a panel
    return _sharing_steps(core, inner, lane, sizes) or 1


def all_steps_fit(core: Core, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int]) -> bool:
    """Whether all of a few steps are best written out. What several of them read, as in a
    window that moves along a row, is then read once and kept, if there is room for it."""
    points = math.prod(sizes.values())
    most = MAX_POINTS if inner.extent < SHORT_LOOP else _LONGER
    if inner.extent > 2 * SHORT_LOOP or inner.extent * points > most or inner.name == lane:
        return False
    if _is_long(core, inner.extent * points):
        return False
    held = _held(core, lane, sizes)
    spare = _spare(core)
    few = core.device.vector_registers <= _FEW_REGISTERS
    if few and inner.extent < SHORT_LOOP and core.alone <= OPERATION_CYCLES:
        # The end of the loop costs more than reading ahead saves. On Zen 3, with 15 registers,
        # convolutions of 3 x 3 take .82 to .98 of the time. With 32, nothing was measured.
        spare -= 1
    if points + sum(held) + spare > core.device.vector_registers:
        return False
    kept, steps = points * core.fused.registers, {inner.name: inner.extent}
    for access, alone in zip(core.reads, held, strict=True):
        shared = access.count_shared(lane, sizes, steps)
        kept += shared if shared < access.count(sizes) * inner.extent else alone
    return kept + spare <= core.device.vector_registers


def _is_long(core: Core, points: int) -> bool:
    """Whether the end of a loop is nothing beside so many points, which are much code. Functions
    are left out: of indices they are computed at compile time where steps are written out."""
    return not core.called and points * core.each > _LONG_CYCLES


def _spare(core: Core) -> int:
    """Registers that are needed besides where all steps are written out: what is done to operands
    before they are multiplied takes one for its result."""
    return SPARE_REGISTERS + (core.alone > OPERATION_CYCLES)


def reloaded_operands(core: Core, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Of a reduction that is written out wholly, what is loaded before the loop around a register
    tile, as that changes none of it, beyond what registers hold: it is stored there, and loaded
    again in each tile. As memory lies, the loop goes along a row of results."""
    points = {d: sizes.get(d, 1) * (core.lanes if d == lane else 1) for d in core.results}
    around = [d for d, extent in core.results.items() if extent > points[d]]
    if not around:
        return 0
    held = math.prod(sizes.values()) * core.fused.registers + _spare(core)
    steps = {d.name: d.extent for d in core.reduced}
    before = [a.count_shared(lane, sizes, steps) for a in core.reads if around[-1] not in a.moving]
    return max(0, held + sum(before) - core.device.vector_registers)


def window_of(core: Core, lane: str | None, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """One or both of the last two reductions, with their extents, if these are written out so
    that what several points of a register tile read is read once, as by the rows of a window
    that moves across rows; nothing where that saves little."""
    best, least = NO_WINDOW, WINDOW_LOADS
    along = along_lanes(core, lane)
    if not along.windows:
        return best
    points = math.prod(sizes.values())
    counts = [a.count(sizes) for a in along.vectors]
    loads = sum([c * n for c, n in zip(along.vector_cycles, counts, strict=True)])
    if loads * CROSSING_LOADS < core.each * points:
        return best  # the arithmetic hides them
    room = core.device.vector_registers - SPARE_REGISTERS - points * core.fused.registers
    one_row = {**sizes, _outermost(core, lane, sizes): 1}  # what the next one does not share
    rows = {d: n for d, n in sizes.items() if d != lane}
    most = STREAMS - math.prod(rows.values())  # which are written
    every = sum(counts)
    for window in along.windows:
        steps = math.prod(window.values())
        if points * steps * along.between > MAX_POINTS or any(
            a.count_shared(None, rows, {d: n for d, n in window.items() if d in far}) > most
            for a, far in along.far
        ):
            continue
        share = sum([a.count_shared(lane, sizes, window) for a in along.vectors])
        if share < least * every * steps and room >= sum(
            [a.count_shared(lane, one_row, window) for a in along.vectors]
        ):
            best, least = window, share / (every * steps)
    return best


def window_of_steps(
    core: Core, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int], steps: int
) -> Mapping[str, int]:
    """So many ``steps`` of a long reduction that are written out, as ``window_of``: if each reads
    vectors again that the step before has read for other rows of the tile, as of a signal times
    another some places later, and registers keep them. On Zen 4, such averages of 64 floats take
    .90 of the time in tiles of 4 lags by 4 vectors, which fit, as in 5 by 4, and .57 to .90 of
    other lengths."""
    if steps <= 1 or inner.name == lane or any(a.scattered for a in core.reads):
        return NO_WINDOW
    room = core.device.vector_registers - live_registers(core, lane, sizes) - SPARE_REGISTERS
    window, kept = {inner.name: 2}, 0
    for access in along_lanes(core, lane).vectors:
        if inner.name in access.strides:
            kept += 2 * access.count(sizes) - access.count_shared(lane, sizes, window)
    return {inner.name: steps} if 0 < kept <= room else NO_WINDOW


def live_registers(core: Core, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Registers in use: accumulators, and what is held of the operands of a value that they add
    up."""
    held = _held(core, lane, sizes)
    most = max([sum([held[k] for k in added]) for added in core.added])
    return math.prod(sizes.values()) + most


def _held(core: Core, lane: str | None, sizes: Mapping[str, int]) -> list[int]:
    """Registers of each operand in a step: what it has inside of the outermost unrolled loop over
    results that uses it again. With 16 registers, LLVM put one of 12 sums in memory where two rows
    of 3 vectors are multiplied by two numbers each, which it holds, too: on Zen 4, one row and four
    numbers take .65 of the time."""
    rows = [d for d in core.results if d != lane and sizes.get(d, 1) > 1]
    loops = [*rows, *([lane] if lane is not None else [])]
    found = []
    for a in core.reads:
        inside: dict[str, int] = {}
        for k, dim in enumerate(loops):
            if inside or dim not in (a.moving if k else a.strides):
                inside[dim] = sizes.get(dim, 1)
        found.append(a.count(inside))
    return found


def kept_inside(core: Core, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Registers of the vectors of ``AlongLanes.inside``."""
    inside = along_lanes(core, lane).inside
    return max([points_along(sizes, dims) for dims in inside]) if inside else 0


def _outermost(core: Core, lane: str | None, sizes: Mapping[str, int]) -> str:
    """The outermost unrolled loop over results, of which that over lanes is the last: operands
    that move along it take one register, others as many as it uses again."""
    for dim in core.results:
        if dim != lane and sizes.get(dim, 1) > 1:
            return dim
    return lane or ""


def points_along(sizes: Mapping[str, int], dims: Collection[str]) -> int:
    """Of a register tile, along some of its dimensions."""
    found = 1
    for dim, size in sizes.items():
        if dim in dims:
            found *= size
    return found
