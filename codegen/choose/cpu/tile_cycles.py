"""Cycles that a nest takes with these lanes and this register tile: what the search for a tile
compares.

A nest is done in whole tiles and in tiles that are cut short at the ends of dimensions. Each takes
its steps (``_step_cycles``): arithmetic and loads beside each other, then stores and the ends of
loops. What memory adds, where the core waits for it, comes from ``footprints``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.core_model import SHORT_LOOP, Core
from tcl.codegen.choose.cpu.costs import (
    APART_SHARE,
    BROADCAST_CYCLES,
    CALL_CONSTANTS,
    CALL_CYCLES,
    CALL_LATENCY_CYCLES,
    CALL_REGISTERS,
    CALLS_ALONE,
    COUNTING_CYCLES,
    CROSSING_BESIDE,
    DIVIDED_SHARE,
    EXTREME_HALVING_CYCLES,
    LOOP_END_CYCLES,
    MISPREDICTED_CYCLES,
    OPERATION_CYCLES,
    RELOADED_CYCLES,
    ROWS_CROSSING_CYCLES,
    SCALAR_LOAD_CYCLES,
    SERIAL_SHARE,
    SHUFFLE_CYCLES,
    SPILL_CYCLES,
    STORE_LOADS,
    STREAMS,
    VECTOR_LOAD_CYCLES,
    WHOLE_CALL,
)
from tcl.codegen.choose.cpu.footprints import (
    cached_bytes,
    far_row_cycles,
    memory_cycles,
    surely_cached,
    with_refills,
)
from tcl.codegen.choose.cpu.lanes_model import along_lanes
from tcl.codegen.choose.cpu.operand_loads import (
    Tile,
    load_cycles,
    pushed_out_cycles,
    read_cycles,
    read_share,
    staged_operands,
)
from tcl.codegen.choose.cpu.operation_costs import beside_each_other
from tcl.codegen.choose.cpu.repeated_values import repeated_cycles
from tcl.codegen.choose.cpu.unrolled_steps import (
    WRITTEN_OUT_POINTS,
    all_steps_fit,
    counted_steps,
    innermost_written_out,
    points_along,
    reloaded_operands,
    steps_written_out,
    window_of,
    window_of_steps,
)
from tcl.codegen.choose.cpu.variants import Seldom
from tcl.codegen.devices.cpu import LINE

_DEPTH = 256
"""Steps after which partial results are stored, as a rule."""
_LOOKAHEAD = 256
"""Operations that the core looks ahead: it waits for memory in a shorter register tile while it
works on the one before."""
_AHEAD = 128
"""Steps of a register tile from which on memory is read ahead along its rows."""
_ALONE = 0.5
"""How much longer memory takes for a single row where the processor does not read ahead ..."""
_BESIDE = 0.5
"""... and, where it does, for several rows side by side. On Zen 4, maxima and products of rows of
4 KB one by one take .5 to .6 of the time of 3 to 8 side by side, .6 to .8 with two threads; sums of
16 KB .75 to 1."""
_ROUNDED = 1.0 - 1e-9
"""For sums that are added up in another order."""


class TileParts(NamedTuple):
    """What a nest is done in with a register tile."""

    parts: Sequence[tuple[Mapping[str, int], float, float, float, float]]
    """Points of each part, how often it is done, the cycles of the arithmetic of a step, those of
    its share of the stores, and the least that all of its first steps take."""
    left: float
    """That of all parts."""
    least: float
    """Cycles that the nest takes at least."""


def tile_parts(core: Core, lane: str | None, sizes: Mapping[str, int]) -> TileParts:
    """What a nest is done in with a register tile: whole tiles, and those that are cut
    short."""
    outer = 1.0
    units = along_lanes(core, lane).units
    for name, count in units.items():
        if name not in sizes:
            outer *= sum([n * share for n, share in _chunks(core, lane, name, count)])
    # How many parts there are of each kind: first those with no dimension cut short.
    times = outer * (core.share if core.compacted else core.reached(lane, sizes))
    times *= core.taken(lane, sizes)
    found: list[tuple[Mapping[str, int], float]] = [(sizes, times)]
    for name, size in sizes.items():
        kinds = dict[int, float]()
        for count, share in _chunks(core, lane, name, units[name]):
            full, rest = divmod(count, size)
            for points, each in ((size, full), (rest, 1)):
                if points and each:
                    kinds[points] = kinds.get(points, 0.0) + each * share
        if kinds.keys() != {size} or kinds[size] != 1.0:
            found = [
                (cut if points == size else {**cut, name: points}, times * each)
                for cut, times in found
                for points, each in kinds.items()
            ]
    parts, left, steps = [], 0.0, _steps(core, lane, sizes)
    for cut, times in found:
        work, stored = _work_and_stores(core, lane, cut)
        if core.reduces:
            stored /= max(1, min(steps // _vectors_along(core, lane, cut), _DEPTH))
        least = times * (max(work, core.latency) + stored)
        parts.append((cut, times, work, stored, least))
        left += least
    return TileParts(parts, left, core.before + left * _ROUNDED)


def _chunks(core: Core, lane: str | None, dim: str, units: int) -> Sequence[tuple[int, float]]:
    """The points or vectors of a dimension in a chunk, and how many such chunks there are for each
    that is whole: the last one may have fewer, of which lanes may fill a smaller part."""
    if dim not in core.cut:
        return ((units, 1.0),)
    whole, rest = core.cut[dim]
    points = core.dims[dim].extent
    each = points / (whole * points + rest)
    last = -(-rest // core.lanes) if dim == lane else rest
    return ((units, whole * each), (last, each))


def _work_and_stores(core: Core, lane: str | None, sizes: Mapping[str, int]) -> tuple[float, float]:
    """Cycles of the arithmetic of one step of a register tile, and of its stores. What is left of a
    tile at the ends of dimensions is often another tile."""
    known, key = along_lanes(core, lane).priced, tuple(sizes.items())
    if key not in known:
        known[key] = _work(core, lane, sizes), _store_cycles(core, lane, sizes)
    return known[key]


def nest_cycles(
    core: Core,
    lane: str | None,
    sizes: Mapping[str, int],
    most: float = math.inf,
    parts: TileParts | None = None,
) -> float:
    """What the nest takes, register tiles that are cut short included; infinite as soon as it
    is clear that this is more than ``most``. ``parts``: if they are known."""
    parts = parts or tile_parts(core, lane, sizes)
    if parts.least > most:
        return math.inf
    total, left, steps = core.before, parts.left, _steps(core, lane, sizes)
    staged = staged_operands(core, lane, sizes)
    waits = list(_waits(core, lane, sizes, steps, staged))
    least = sum(waits)
    if total + (left + least) * _ROUNDED > most:
        return math.inf
    tile = _tile_of(core, lane, sizes, staged)
    for cut, times, work, stored, waited in parts.parts:
        total += times * _step_cycles(core, lane, cut, tile, steps, work, stored)
        left -= waited
        if total + (left + least) * _ROUNDED > most:
            return math.inf
    total = sum(waits, total)
    total = total if total > most else with_refills(core, lane, sizes, total)
    if core.seldom is not None and lane not in core.seldom[0].dims:
        total += _not_chosen_cycles(core, *core.seldom, lane, sizes)
    if core.elsewhere is None or total > most:
        return total
    held = core.held(lane, sizes)
    return held * total + (1.0 - held) * nest_cycles(core.elsewhere.core, lane, sizes)


def _not_chosen_cycles(
    core: Core, few: Seldom, others: Core, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """What a nest without a reduction takes at the points at which a branch leaves out what is
    seldom computed, and for branches that were not foreseen."""
    points = math.prod(along_lanes(core, lane).units.values())
    branches = points / core.turns_inside(few.dims, lane, sizes)
    missed = MISPREDICTED_CYCLES * few.share * branches
    return missed + (1.0 - few.share) * nest_cycles(others, lane, sizes)


def _steps(core: Core, lane: str | None, sizes: Mapping[str, int]) -> int:
    """The points of the reductions, or vectors of them, that a register tile goes through."""
    along = lane is not None and core.dims[lane].reduction
    every = -(-core.steps // core.lanes) if along else core.steps
    return math.ceil(every * core.share * core.taken(lane, sizes))


def _vectors_along(core: Core, lane: str | None, sizes: Mapping[str, int]) -> int:
    """Those of a reduction that are one step of a register tile."""
    return sizes.get(lane, 1) if lane is not None and core.dims[lane].reduction else 1


def _waits(
    core: Core, lane: str | None, sizes: Mapping[str, int], steps: int, staged: Sequence[bool]
) -> Iterator[float]:
    """What memory and copies add to the steps of all register tiles."""
    # Vectors along a reduction are steps of it, too.
    along = lane is not None and core.dims[lane].reduction
    apart = math.prod(size for name, size in sizes.items() if name != lane or not along)
    waits = steps < _AHEAD and steps * apart > _LOOKAHEAD
    one_by_one = _reads_rows_one_by_one(core)
    placed = zip(core.reads, staged, along_lanes(core, lane).in_rows, strict=True)
    for access, copied, in_rows in placed:
        # Words that are put together come from panels, and what rows of lists read again.
        again = (access.is_made or bool(core.compacted)) and copied
        kept = access.whole < cached_bytes(core.device)
        in_place = in_rows and not copied
        far = access.whole > surely_cached(core.device)
        if one_by_one and far and not copied:
            rows = access.count({n: s for n, s in sizes.items() if n != lane or not along})
            if rows > 1 or (lane in access.strides and not along):
                yield memory_cycles(core, access) * _BESIDE
            continue
        ahead = waits and along and in_place and kept and _in_one_piece(core, access)
        waited = waits and not ahead
        # Where the processor does not do so, prefetches ask for what the last cache keeps.
        asked = kept and not (along or access.scattered or core.device.reads_ahead)
        if waited and not (again or asked):
            yield memory_cycles(core, access, kept)
        if in_place and not waited:
            lanes = 1 if along else core.lanes
            rows = access.count({n: s for n, s in sizes.items() if n != lane or not along})
            yield far_row_cycles(core, access, rows * lanes)
        followed = kept or core.device.reads_ahead
        if along and not (followed and _in_one_piece(core, access)):
            # Memory is faster if several rows are read side by side, and so are short pieces
            # of rows; of a long row in a cache the core reads ahead.
            rows = access.count({n: s for n, s in sizes.items() if n != lane})
            yield memory_cycles(core, access) * _ALONE / min(rows, STREAMS)
        if copied:
            each = access.copying(lane, core.device.l2_bytes)
            yield math.prod(core.dims[name].extent for name in access.strides) * each


def _tile_of(
    core: Core, lane: str | None, sizes: Mapping[str, int], staged: tuple[bool, ...]
) -> Tile:
    window, inner = window_of(core, lane, sizes), core.innermost
    if inner is None:
        return Tile(sizes, staged, 1)
    if window:
        return Tile(sizes, staged, window.get(inner.name, 1), window)
    fit = all_steps_fit(core, inner, lane, sizes)
    unrolled = counted_steps(core, inner, lane, sizes, fit)
    # The smaller or larger of two overwrites what was read: to keep that is a copy.
    if not fit or unrolled < inner.extent or core.extreme:
        return Tile(sizes, staged, unrolled, window_of_steps(core, inner, lane, sizes, unrolled))
    return Tile(sizes, staged, unrolled, {inner.name: inner.extent}, every=True)


def _work(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles of the arithmetic of one step of a register tile."""
    along = along_lanes(core, lane)
    repeated = _repeated(core, lane, sizes)
    if core.deciding and _decides(core, lane, sizes):
        return _sum(core, lane, sizes, along.decided) - repeated
    work = _sum(core, lane, sizes, along.work) - repeated
    for access, cycles in along.widened:
        each = cycles * points_along(sizes, access.strides)
        if core.widened_before(access, lane, sizes):
            work -= each
        elif lane not in access.strides:
            work += each / 2  # three instructions: into all lanes, longer, and shifted
    if along.added:
        work = beside_each_other(work, _sum(core, lane, sizes, along.added))
    if along.divided:
        divided = _sum(core, lane, sizes, along.divided)
        work += divided - (1.0 - DIVIDED_SHARE) * min(work, divided)
    if along.called:
        called = _sum(core, lane, sizes, along.called)
        beside, alone = CALLS_ALONE
        if called > beside * work:  # else the rest runs where halves would wait
            share = min(1.0, (called / max(work, called) - beside) / (alone - beside))
            work -= share * (1.0 - WHOLE_CALL / 2) * _sum(core, lane, sizes, along.gaining)
    return work


def _repeated(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles of the arithmetic of a register tile that several of its points need once."""
    if not core.repeated or lane is None:
        return 0.0
    return core.halves(lane) * repeated_cycles(core.repeated, sizes, lane, core.lanes)


def _decides(core: Core, lane: str | None, sizes: Mapping[str, int]) -> bool:
    """Whether the dimensions of conditions are written out in a register tile. In a reduction, LLVM
    knows the place of a tile along a dimension that has but one, and of the rest beside it."""
    if not core.reduces:
        return core.deciding.items() <= sizes.items()
    # Without lanes, of all reductions the price is too low: tables of three dimensions took 1.23
    # times as long as with lanes on Zen 3.
    steps = (innermost_written_out if lane is None else steps_written_out)(core, lane, sizes)
    return lane not in core.deciding and all(
        steps.get(d) == n if core.dims[d].reduction else 2 * sizes.get(d, 1) > n
        for d, n in core.deciding.items()
    )


def _sum(
    core: Core,
    lane: str | None,
    sizes: Mapping[str, int],
    work: Sequence[tuple[frozenset[str], float]],
) -> float:
    """Cycles of such ``AlongLanes.work`` for one step of a register tile."""
    if core.reduces:
        return sum([each * points_along(sizes, dims) for dims, each in work])
    return sum(
        [each * points_along(sizes, d) / core.turns_inside(d, lane, sizes) for d, each in work]
    )


def _step_cycles(
    core: Core,
    lane: str | None,
    sizes: Mapping[str, int],
    tile: Tile,
    steps: int,
    work: float,
    stored: float,
) -> float:
    """One of so many steps of a register tile, with so much arithmetic, and its share of what is
    ``stored`` and of the ends of loops."""
    shares = [read_share(core, a, lane, sizes, tile) for a in core.reads]
    # What is brought into all lanes is part of the arithmetic, where memory is near.
    spread = sum(
        [
            a.count(sizes) * share
            for a, share in zip(core.reads, shares, strict=True)
            if lane not in a.strides
        ]
    )
    busy = _beside_each_other(core, lane, sizes, tile, shares, spread, work)
    if not core.reduces:
        waits = _crossing_cycles(core, lane, sizes) - CROSSING_BESIDE * busy
        return busy + stored + max(0.0, waits)
    along = lane is not None and core.dims[lane].reduction
    if core.called:
        sums = 0 if along else math.prod(sizes.values()) * core.fused.registers
        spilled = _spill_cycles(core, _called_points(core, sizes), sums)
        busy += spilled if along else spilled * core.halves(lane)
    if along:
        busy += COUNTING_CYCLES if core.extreme else 0.0
    steps = max(1, steps // _vectors_along(core, lane, sizes))
    around = _loop_end_cycles(core, lane, sizes, tile, steps)
    inner = core.innermost
    long = inner is not None and inner.extent >= SHORT_LOOP and not core.compacted
    if long and along_lanes(core, lane).busy:
        busy += BROADCAST_CYCLES * spread
        busy += COUNTING_CYCLES / tile.unrolled if along_lanes(core, lane).counts else 0.0
    if inner is not None and tile.unrolled == core.steps:  # all are written out
        stored += RELOADED_CYCLES * reloaded_operands(core, lane, sizes) / steps
    return max(busy, core.latency) + around + stored


def _loop_end_cycles(
    core: Core, lane: str | None, sizes: Mapping[str, int], tile: Tile, steps: int
) -> float:
    """A step's share of the ends of loops that the core did not foresee: of short ones, of those
    through lists, and of those that end elsewhere each time, as where a condition ends them."""
    inner = core.innermost
    if inner is not None and inner.extent < SHORT_LOOP:
        many = inner.extent * math.prod(sizes.values()) > WRITTEN_OUT_POINTS
        if many or not core.compacted:
            turns = inner.extent // tile.unrolled if not tile.window else 1
            ends = tile.unrolled < inner.extent and (turns > 2 or many)
            return LOOP_END_CYCLES / inner.extent if ends else 0.0
    dims, share = core.within
    if inner is not None and inner.name in dims and len(dims) > 1 and inner.name != lane:
        return LOOP_END_CYCLES / max(1.0, inner.extent * share)
    return LOOP_END_CYCLES / steps if core.compacted else 0.0  # nobody foresees that of a list


def _beside_each_other(
    core: Core,
    lane: str | None,
    sizes: Mapping[str, int],
    tile: Tile,
    shares: Sequence[float],
    spread: float,
    work: float,
) -> float:
    """Cycles of a step's arithmetic and loads: the longer of both, and a part of the shorter. Of
    the operands such ``shares`` are read; ``spread`` elements are brought into all lanes."""
    lanes = core.lanes if lane is not None else 1
    if core.reduces:
        loads = load_cycles(core, lane, sizes, tile, shares)
    else:
        loads, converted = read_cycles(core, lane, sizes)
        work += converted
    busy = max(work, loads) + SERIAL_SHARE * min(work, loads - spread * SCALAR_LOAD_CYCLES)
    # To put together lanes that are read one by one takes the units of the arithmetic.
    one_by_one = [
        each * access.count(sizes) * share
        for (access, each, _, across), share, staged in zip(
            along_lanes(core, lane).reads, shares, tile.staged, strict=True
        )
        if access.is_apart(lane) and each >= lanes and not staged
        if not (across and tile.unrolled > 1)
    ]
    busy += APART_SHARE * min(work, sum(one_by_one))
    for access, crowded, staged in zip(
        core.reads, along_lanes(core, lane).crowded, tile.staged, strict=True
    ):
        if crowded and not staged:
            busy += pushed_out_cycles(core, access, lane, sizes) / tile.unrolled
    return busy


def _called_points(core: Core, sizes: Mapping[str, int]) -> int:
    """Points of a tile that differ in what they call functions of."""
    calls = (dims for dims, cycles in core.arithmetic.items() if cycles >= CALL_CYCLES)
    return max((points_along(sizes, dims) for dims in calls), default=1)


def _spill_cycles(core: Core, points: int, sums: int = 0) -> float:
    """Cycles of registers that do not fit where so many points of a tile call a function each,
    beside so many ``sums``."""
    needed = CALL_CONSTANTS + CALL_REGISTERS * points + sums
    return SPILL_CYCLES * max(0, needed - core.device.vector_registers)


def _store_cycles(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles to store the results of a register tile, and for what comes before: lanes that are
    added up, and calls in epilogues, with the registers that these keep in memory."""
    lanes, each = core.lanes if lane is not None else 1, along_lanes(core, lane).stored
    if each is None:
        each = _stored_vector(core, lane, sizes)
    stored = core.target.count(sizes) * STORE_LOADS * each
    results = float(math.prod(sizes.values()))
    calls = core.fused.calls * CALL_CYCLES
    if core.reduces and lane is not None and core.dims[lane].reduction:
        # The vectors of a row are added up first, beside the next row, then the lanes of
        # their sum.
        vectors = sizes.get(lane, 1)
        results = results / vectors
        halvings = 2.0 * core.fused.sums * lanes.bit_length()
        stored += results * (halvings + OPERATION_CYCLES * (vectors - 1))
        if core.called:
            stored += CALL_LATENCY_CYCLES  # the sums wait for the last one, which rows share
        if core.extreme:
            # Each waits for the one before, and the next rows' loads wait behind them.
            stored += EXTREME_HALVING_CYCLES * (lanes.bit_length() - 1)
        if math.prod(core.results.values()) >= lanes:
            calls /= lanes  # by a pass over results
    elif core.fused.calls:
        stored += _spill_cycles(core, math.prod(sizes.values()))
    if core.reduces:
        stored += results * calls
    return stored


def _stored_vector(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles to store a vector of the results of a register tile, as loads of a vector in order."""
    lanes = core.lanes if lane is not None else 1
    each = core.target.in_tile(lane, lanes, sizes, core.masked, stored=True)
    between = core.target.between(lane, sizes)
    shuffled = core.device.has("avx512vbmi") and core.target.itemsize < 4  # by one instruction
    if between > 1 and shuffled and not core.reduces:
        each = min(each, between * (VECTOR_LOAD_CYCLES + SHUFFLE_CYCLES))
    if core.reduces and core.target.is_apart(lane):
        # Halves take as many shuffles each, of which two run at once: on Zen 4, convolutions of
        # 3 x 3 take .7 to .82 of the time with 16 filters, compared with halves along rows.
        each += (core.halves(lane) - 1) * min(each, math.log2(lanes)) / 2
    return each


def _crossing_cycles(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles more to store the rows of a register tile in turns, of vectors as long as a line: half
    of them where rows begin on lines if the first one does."""
    target = core.target
    rows = {d: n for d, n in sizes.items() if d != lane and n > 1 and d in target.strides}
    in_order = target.strides.get(lane or "") == target.itemsize
    if not rows or not in_order or core.halved or core.lanes * target.itemsize < LINE:
        return 0.0
    on_lines = all(target.strides[d] % LINE == 0 for d in rows)
    return ROWS_CROSSING_CYCLES * target.count(rows) * (0.5 if on_lines else 1.0)


def _reads_rows_one_by_one(core: Core) -> bool:
    """Whether memory is fastest if reductions go through one row after the other: where the
    processor reads ahead by itself, and each result has rows of its own of all operands from
    memory, each in one piece."""
    if not (core.reduced and core.device.reads_ahead):
        return False
    placed = zip(core.reads, core.shared, strict=True)
    return not any(
        shared or a.scattered or a.selecting or not _in_one_piece(core, a)
        for a, shared in placed
        if a.whole > surely_cached(core.device)
    )


def _in_one_piece(core: Core, access: OperandAccess) -> bool:
    """Whether all that the reductions read of an operand for one result is one row."""
    step = access.itemsize
    for dim in sorted(core.reduced, key=lambda d: access.strides.get(d.name, 0)):
        if access.strides.get(dim.name, 0) != step:
            return False
        step *= dim.extent
    return True
