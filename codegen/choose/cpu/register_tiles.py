"""Which lanes and register tiles are tried for a nest, and which the model of a core finds best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from tcl.codegen.choose.cpu.access_costs import OperandAccess, PanelCost
from tcl.codegen.choose.cpu.core_model import SHORT_LOOP, Core, Elsewhere
from tcl.codegen.choose.cpu.costs import (
    DIVISION_CYCLES,
    ITERATION_CYCLES,
    SORTED_APART,
    STREAMS,
)
from tcl.codegen.choose.cpu.footprints import (
    Level,
    least_far_cycles,
    least_memory_cycles,
    refills,
)
from tcl.codegen.choose.cpu.operand_loads import sharing_dims
from tcl.codegen.choose.cpu.tile_cycles import nest_cycles, tile_parts
from tcl.codegen.choose.cpu.unrolled_steps import kept_inside, live_registers, window_of
from tcl.codegen.choose.cpu.variants import (
    compacted_dims,
    compaction_cycles,
    condition_share,
    dot_products,
)
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.terms import product as product_of
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.cpu.cut import bounds_asked, holding
from tcl.codegen.passes.cpu.fusion_limits import OPERANDS
from tcl.codegen.passes.cpu.skip import unguarded
from tcl.codegen.passes.fusion.groups import ALONE, PerResult
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Undecided, provably_equal
from tcl.grammar.syntax.types import FLOAT16

Tile: TypeAlias = tuple[str | None, dict[str, int]]
"""Lanes (a dim or none), and the register tile: vectors of them, points of other dimensions."""
_Rows: TypeAlias = tuple[str | None, tuple[tuple[str, ...], ...]]
"""Lanes, and the dimensions along which tiles have rows: of all tiles with one of these."""

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14)
_SHARED_ROWS = (*_ROWS, 16)
"""Where each step calls functions or divides, which rows share: elsewhere, more than 14 rows save
little, and take up to 1.2 times as long on Zen 4."""
_WHOLE_ROWS = 9, 11
"""More, of a dimension of which they are a whole part. (Rows of 15 to 24, one vector wide, took
.8 to 1.5 times as long as the others, 1.02 in the mean of 33 defs; the model says .95 or less.)"""
_SECOND_ROWS = (1, 2, 3, 4)
_VECTORS = (1, 2, 3, 4, 6)
_ONE_ROW = (8, 5, 7)
"""Vectors more, where there is one row: of the last ones, all of it ..."""
_LONG_ROWS = (7, 8, 10, 12, 14, 16, 20, 24, 28)
"""... and where the row is a list's."""
_COLUMN_BYTES = 4 * LINE
"""What each step of a reduction reads of a row from behind the second cache, at least, where the
rows of a register tile share none of it: shorter pieces are not read ahead. On Zen 4, sums under a
condition of 12 x 365 rows of 397 floats take .52 of the time with four vectors of one row instead
of one of 12, with 256 bits .72; sums and maxima of a cube along its longest side .92 and .76."""
_NEIGHBOURS: tuple[int, ...] = (2, 3, 4)
"""Points that share what they read, where nothing is reduced ..."""
_SIDE_BY_SIDE = (2, 4, 8)
"""... or that lie side by side where lanes do not, as many as there are lanes at most, ..."""
_MANY = 16
"""... and so many where there is but one operand, ..."""
_PIECE = 32
"""... in pieces of rows of at most so many bytes ..."""
_OF_MEMORY = 4
"""... or so many of what caches do not keep: a core puts few lines together at a time, and rows of
eight took twice as long as rows of four."""
_ALONG_ROWS = 4
"""Vectors of each row of results that are put together from lanes that are apart."""
_WORTH_TILE = 0.97
"""The part of a nest's time that is left, if a register tile is worth more code: on Zen 4, filling
in green between two rows takes .91 of the time with several of them, which the model takes for .956
(.95 was asked before), and rotated lanes of bits .85 ..."""
_NEARLY = 1.03
"""... and how much longer a smaller one may take than the best."""
_COUNTING_PART = 0.25
"""The part of the time of rows of one vector from which on counting them is worth saving."""
_LIVE_VALUES = 5.5
"""Cycles of arithmetic of a point from which on what it computes takes registers, too: of pairs of
birds with three results each, 2 rows take .87 of the time of 4 on a Cascade Lake, .76 on Zen 4;
from 5 on, convolutions within bounds took 1.2 times as long ..."""
_NEARLY_WHOLE = 1.025
"""... how much longer fewer rows may take then by the model ..."""
_FEW_POINTS = 4
"""... and the points of their register tile, at least."""
_WORTH = 0.98
"""As the first, if vectors of half the length are ..."""
_WORTH_APART = 0.9
"""... where their lanes are put together one by one or transposed: on Zen 4, images warped by data
and a permutation of five dimensions take 1.07 and 1.25 times as long with half vectors, of which
the model says .91 and .97."""
_SHORTER = 0.99
"""Likewise with vectors of half the length, where a core works on long ones in halves."""
_WHOLE_WORD = 4
"""Bytes."""
_ROW_VECTORS = 8
"""Vectors of a row that may all be written out."""
_CONVERTED = 12
"""Half vectors at a time of what is converted."""
_BETWEEN = 8
"""Results between two lanes that are written together."""
_OWN_SUMS = 3
"""Sums beyond which each takes registers of its own ..."""
_LOADED = 2
"""Registers more beside several sums for each operand but one that only one of them reads, as LLVM
loads all of them before it multiplies: on Zen 3, with 16 registers, products with cosines and sines
take 1.25 times as long in tiles of 2 x 3 vectors as of 2 x 2, as some sums are stored in each
step."""
_BESIDE = 2
"""... so many of each point, for what it adds up, as LLVM does points side by side: of four sums of
pairs of int8 on AVX-512, 4 points take .68 of the time of 5, of which some lie in memory."""
_SHUFFLED = 2
"""Registers that say which lanes come out of whole vectors where these are ``SORTED_APART``: with
28 sums beside, LLVM kept sums in memory."""
_LONG_COLUMN = 128
"""Steps of a reduction from which on columns count as long."""
_LANES = 2
"""Dimensions with lanes for which rows of two dimensions are tried ..."""
_PAIRED = 4
"""... and of how many dimensions with each of them: those whose rows alone take the least."""


@dataclass(frozen=True, slots=True)
class TileChoice:
    """The way of working on a nest that takes the fewest cycles."""

    core: Core
    lane: str | None
    sizes: dict[str, int]
    """The register tile."""
    cycles: float

    @property
    def has_lanes_of_results(self) -> bool:
        """Whether each lane is another result."""
        return self.lane is not None and not self.core.nest.dim(self.lane).reduction

    def unit(self, dim: str) -> int:
        """Points of a dimension in a register tile."""
        return self.sizes.get(dim, 1) * (self.core.lanes if dim == self.lane else 1)

    def extra_copy_share(self, chunks: Mapping[str, int]) -> float:
        """What is copied besides for so many chunks per dimension, as a part of all work."""
        total, core = 0.0, self.core
        for access in core.reads:
            if self.lane not in access.strides:
                continue
            copies = math.prod(n for dim, n in chunks.items() if dim not in access.strides)
            if copies > 1 and core.worth_staging(access, self.lane, self.sizes):
                total += PanelCost(access, self.lane, core.device).more(copies)
        return total / max(self.cycles, 1.0)


def fastest(
    program: ir.Program, nest: ir.Nest, device: CpuProfile, fused: PerResult = ALONE
) -> TileChoice:
    """The best way to work on a nest: with dot products, where the device has any, or through
    lists of its points, where it has a condition, if that takes less; without conditions of bounds,
    where these hold in most register tiles. The last answers are kept: who divides a nest into
    chunks asks what its loops are chosen by, and so do candidates of a search."""
    with suppress(Undecided):  # whether it is one of the last, where sizes are formulas
        return searched(program, nest, device, fused)
    return searched.__wrapped__(program, nest, device, fused)


@lru_cache(maxsize=16)
def searched(
    program: ir.Program, nest: ir.Nest, device: CpuProfile, fused: PerResult
) -> TileChoice:
    """As ``fastest``."""
    whole = replace(nest, dims=program.nest(nest.name).dims)
    if bounds := bounds_asked(whole, (nest.point,)):
        found = _fastest_within(program, nest, device, fused, bounds)
        if found.core.held(found.lane, found.sizes):
            return found
    return _fastest_within(program, nest, device, fused, ())


_SLOWEST = 2.5
"""Times as long as the best way by the model, from which on another one is not worth timing."""
_OF_LANES = 4
"""Ways with the same lanes that may be worth it."""


@lru_cache(maxsize=4)
def other_ways(
    program: ir.Program, nest: ir.Nest, device: CpuProfile, fused: PerResult
) -> list[TileChoice]:
    """Other ways than ``fastest``, for who can time them: those that take the fewest cycles, first
    one for each dimension that lanes may have, in whole vectors and in halves where these may pay.
    The model cannot tell well which of them is faster: see
    ``benchmarks.alternatives``. The last answers are kept, as who asks for one asks for more."""
    best = fastest(program, nest, device, fused)
    cores = [best.core]
    if best.core.device != device:  # it is in halves
        cores.append(Core.read(program, best.core.nest, device, fused))
    elif device.halves_vectors or _may_gain_by_halves(best):
        cores.append(best.core.in_halves())
    groups = []
    for core in cores:
        lanes: list[str | None] = [best.lane]
        if core.reduces:  # dot products always have lanes
            lanes = [*_lanes(core), *([None] if core.products is None else [])]
        for lane in lanes:
            tiles = ((lane, tile) for tile in _tiles_to_time(core, lane, best.sizes))
            groups.append(_few_cheapest(core, tiles, _OF_LANES, _SLOWEST * best.cycles))
    turns = (filter(None, turn) for turn in itertools.zip_longest(*groups))
    found = itertools.chain.from_iterable(sorted(turn, key=_cycles) for turn in turns)
    same = best.lane, best.core.lanes, best.sizes
    return [way for way in found if (way.lane, way.core.lanes, way.sizes) != same]


def _tiles_to_time(
    core: Core, lane: str | None, chosen: dict[str, int]
) -> Iterator[dict[str, int]]:
    """The register tiles of ``other_ways``."""
    rows = [d.name for d in reversed(_moving(core)) if not d.reduction and d.name != lane]
    if core.reduces:
        pairs = itertools.combinations(rows, 2) if len(rows) <= _PAIRED else ()
        for dims in (*((d,) for d in rows), *pairs) or ((),):
            yield from tiles_of(core, lane, dims)
        return
    most = {d.name: d.extent for d in core.nest.dims}
    if lane is not None:
        most[lane] = -(-most[lane] // core.lanes)
    tiles = [{}, chosen, *({d: n} for d in (lane, *rows[:1]) if d for n in (2, 4, 8))]
    if lane is not None and rows:
        tiles += [{rows[0]: n, lane: 2} for n in (2, 4)]
    for tile in tiles:
        if all(n <= most[d] for d, n in tile.items()):
            yield tile


def _core(
    program: ir.Program,
    nest: ir.Nest,
    device: CpuProfile,
    fused: PerResult,
    bounds: tuple[Bound, ...],
) -> Core:
    """A nest on one core where some bounds hold, which knows what it is elsewhere."""
    every = Core.read(program, nest, device, fused)
    if not bounds:
        return every
    inside = replace(nest, point=holding(nest, nest.point, bounds))
    elsewhere = Elsewhere(program.nest(nest.name), bounds, every)
    return replace(Core.read(program, inside, device, fused), elsewhere=elsewhere)


def _fastest_within(
    program: ir.Program,
    nest: ir.Nest,
    device: CpuProfile,
    fused: PerResult,
    bounds: tuple[Bound, ...],
) -> TileChoice:
    """As ``fastest``; in most register tiles these bounds have to hold, if there are any."""
    plain = _core(program, nest, device, fused, bounds)
    cores, nest = [plain], plain.nest
    for products in dot_products(program, nest, device) if fused.sums == 1 else ():
        core = plain.in_words(products)
        if _lanes(core):
            cores.append(core)
    if (wide := plain.with_lanes_of_operands()) is not None:
        cores.append(wide)
    if fused.sums == 1 and (compacted := compacted_dims(program, nest)):
        cores.append(_through_lists(program, nest, device, fused, compacted))
    found = _best(plain)
    for core in cores[1:]:
        found = _least([found, _best(core, found.cycles)])
    halves = device.halves_vectors
    if not halves and not _may_gain_by_halves(found):
        return found
    core = plain.in_halves()
    if compacted := found.core.compacted:
        core = _through_lists(program, nest, core.device, fused, compacted)
    if nest.reduces:
        # They may fill rows of results better, where no data selects operands: on Zen 4, whole ones
        # take .97 to 1.4 times as long there; elsewhere, halves do, by up to 1.3.
        partly = [d for d in _lanes(core) if _shorter_may_pay(core, nest.dim(d), plain.lanes)]
        most, known = _SHORTER * found.cycles, dict[_Rows, list[TileChoice]]()
        tried = partly and not any(a.scattered for a in core.reads)
        if tried and _best(core, most, partly, known).cycles < most:
            # Others may take less still, and are no better then.
            shorter = _best(core, most, known=known)
            if shorter.has_lanes_of_results and shorter.cycles < most:
                return shorter
    elif halves and core.target.itemsize < _WHOLE_WORD and _between_lanes(core, found.lane):
        # What lies between lanes is put together by shuffles of all elements of a vector. On Zen 4,
        # half vectors take .54 to .98 of the time for pixels of 8 and 16 bits, for floats 1.04.
        cycles = nest_cycles(core, found.lane, found.sizes)
        return TileChoice(core, found.lane, found.sizes, cycles)
    elif halves and found.lane and _narrows_pairs(core, found.lane) and not found.sizes:
        vectors = -(-nest.dim(found.lane).extent // core.lanes)
        pieces = -(-vectors // _CONVERTED)
        sizes = {found.lane: -(-vectors // pieces)}
        return TileChoice(core, found.lane, sizes, nest_cycles(core, found.lane, sizes))
    elif found.lane is not None:  # whose lanes are results
        # They may fill short rows better; where one vector would do for a row, fewer of them lie
        # in two lines: on Zen 4, rows of 5 doubles take .8 of the time.
        shorter = _cheapest(core, [(found.lane, _neighbours(core, found.lane))])
        masked = core.lanes < nest.dim(found.lane).extent < plain.lanes
        worth = 1.0 if masked else _WORTH
        if _has_lanes_apart(core, found.lane):
            worth = _WORTH_APART
        if shorter.cycles <= worth * found.cycles:
            return shorter
    return found


def _may_gain_by_halves(choice: TileChoice) -> bool:
    """Whether vectors of half the length may be faster on a core that works on whole ones: where
    lanes are results of rows that are longer than a vector, and nothing is reduced."""
    core, lane = choice.core, choice.lane
    rows = lane is not None and not core.reduces and core.nest.dim(lane).extent > core.lanes
    return rows and core.device.tries_halves


def _narrows_pairs(core: Core, lane: str) -> bool:
    """Whether vectors of results in float16 come from two or more of it, and no function is called,
    nor anything divided: whole vectors take twice as long to be made wider as two halves, and a
    little less to be made narrow. On Zen 4, eight half vectors take .94 to .78 of the time, of one
    operand 1.06, and with a root and quotients of each row 1.08."""
    reads = zip(operands(core.nest.point), core.reads, strict=True)
    wider = [a for load, a in reads if (load.type, a.strides.get(lane)) == (FLOAT16, 2)]
    return (
        core.nest.point.type == FLOAT16 and len(wider) > 1 and not (core.called or core.divisions)
    )


def _has_lanes_apart(core: Core, lane: str | None) -> bool:
    """Whether each lane of some vector is read or written by itself, or transposed."""
    return any(a.cycles(lane, core.lanes) >= core.lanes for a in (*core.reads, core.target))


def _through_lists(
    program: ir.Program,
    nest: ir.Nest,
    device: CpuProfile,
    fused: PerResult,
    compacted: frozenset[str],
) -> Core:
    """A nest that goes through the compacted indices of its points along these dimensions."""
    bare = Core.read(program, replace(nest, point=unguarded(nest.point)), device, fused)
    share = condition_share(nest)
    before = compaction_cycles(program.nest(nest.name), nest, device)
    bare = replace(bare, bounds=(), whole=None, within=(frozenset(), 1.0))  # the lists have them
    return replace(bare, compacted=compacted, share=share, before=before)


def _shorter_may_pay(core: Core, dim: ir.Dim, lanes: int) -> bool:
    """Whether vectors of half the length, which the core has, may take less along a dimension:
    they fill its rows better, or elements that lie apart and are not copied are put together for
    fewer lanes; or they count where comparisons hold."""
    if dim.reduction:
        return False
    if core.compared:
        return True
    apart = (a for a in core.reads if a.strides.get(dim.name, 0) not in (0, a.itemsize))
    return dim.extent % lanes > 0 or not all(core.worth_staging(a, dim.name, {}) for a in apart)


def _moving(core: Core) -> list[ir.Dim]:
    """The dimensions that a register tile may have points of."""
    return [d for d in core.nest.dims if d.extent > 1 and d.name not in core.compacted]


def _lanes(core: Core) -> list[str]:
    """Those along which lanes are tried."""
    return [d.name for d in _moving(core) if core.lanes > 1 and _may_have_lanes(core, d)]


def _best(
    core: Core,
    most: float = math.inf,
    among: Collection[str] | None = None,
    known: dict[_Rows, list[TileChoice]] | None = None,
) -> TileChoice:
    """Lanes (a dim or none) and the register tile that take the fewest cycles, if these are at
    most so many; else another one that takes more. ``among``: the dims that are tried. ``known``:
    what searches among fewer dims have found."""
    known = {} if known is None else known
    lanes = _lanes(core)
    # The last ones first, whose points tend to lie closer to each other.
    results = [d.name for d in reversed(_moving(core)) if not d.reduction]
    if not core.nest.reduces:
        tiles = [(x, _between_lanes(core, x)) for x in (None, *lanes)]
        if core.deciding:  # all of which may be known
            tiles += [(x, dict(core.deciding)) for x in lanes if x not in core.deciding]
        first = _cheapest(core, tiles)
        # Lanes that are apart may only pay beside each other, where they are transposed.
        near = first.lane is not None and not _has_lanes_apart(core, first.lane)
        beside = (first.lane,) if near else (None, *lanes)
        return _row_after_row(core, _cheapest(core, ((x, _neighbours(core, x)) for x in beside)))
    # Rows of one dimension first; then rows of two, for the most promising lanes and dimensions:
    # pairs of all would be as many as the square of the dimensions.
    singles: dict[str | None, dict[str, TileChoice]] = {}
    found: list[TileChoice] = []
    tried = [d for d in lanes if d in among] if among is not None else [*lanes, None]
    for lane in tried if core.products is None else lanes:
        rows: dict[str, tuple[str, ...]] = {d: (d,) for d in results if d != lane} or {"": ()}
        # Lanes beyond the last of these are not looked at again, nor all rows but the promising.
        enough = len(found) == _LANES
        last = found[-1].cycles if enough else math.inf
        singles[lane] = {}
        for d, row in rows.items():
            [made] = _cheapest_in_rows(core, (lane, (row,)), last, known)
            singles[lane][d] = made
            if len(rows) <= _PAIRED:  # all are promising, whatever the others take
                last = min(last, made.cycles)
        found = sorted((*found, _least(singles[lane].values())), key=_cycles)[:_LANES]
    lanes = [d for d in lanes if d in singles and _shares_only_in_pairs(core, d)]
    for lane in dict.fromkeys([*(choice.lane for choice in found), *lanes]):
        alone = singles[lane]
        promising = sorted(alone, key=lambda d: alone[d].cycles)[:_PAIRED]
        pairs = tuple(itertools.combinations([d for d in alone if d in promising], 2))
        found += _cheapest_in_rows(core, (lane, pairs), min(most, _least(found).cycles), known)
    return _with_fewer_points(core, _least(found))


def _with_fewer_points(core: Core, found: TileChoice) -> TileChoice:
    """The fewest rows of a register tile that take nearly as little, where each point computes so
    much that its values take registers, too, where rows share a few neighbours, or where results go
    past the caches; or no longer than the caches take, where results are sums of a few neighbours
    and wait for these: one row after the other is read in order. On Zen 4, where a core's share of
    the last cache keeps up, a 3 x 3 pool takes .87 of the time with 12 rows."""
    lives = core.alone >= _LIVE_VALUES and not core.called
    waits = _waits_for_neighbours(core, found)
    waits = waits if waits >= found.cycles else 0.0  # else the core does
    fewer = lives or waits or _stores_far(core, found) or _is_filter(core, found)
    if not fewer or core.products is not None or core.compacted:
        return found
    choices = [
        [n for n in _ROWS if n < size and d != found.lane] + [size]
        for d, size in found.sizes.items()
    ]
    parts = (dict(zip(found.sizes, each, strict=True)) for each in itertools.product(*choices))
    least = 1 if waits else _FEW_POINTS
    enough = (tile for tile in parts if math.prod(tile.values()) >= least)
    for tile in sorted(enough, key=lambda tile: math.prod(tile.values())):
        kept = {d: n for d, n in tile.items() if n > 1 or d == found.lane}
        cycles = nest_cycles(core, found.lane, kept)
        if cycles <= max(_NEARLY_WHOLE * found.cycles, waits):
            return TileChoice(core, found.lane, kept, cycles)
    return found


def _row_after_row(core: Core, found: TileChoice) -> TileChoice:
    """A register tile of one row, where nothing is reduced, vectors are as long as lines, and long
    rows come and go behind the second cache no slower so: rows that have no neighbours in common.
    On Zen 4, 1023 x 1025 floats less an outer product take .6 of the time of three rows."""
    target, lane = core.target, found.lane or ""
    lines = target.strides.get(lane) == target.itemsize and core.lanes * target.itemsize >= LINE
    neighbours = len({a.tensor for a in core.reads}) < len(core.reads)
    if not lines or neighbours or core.results.get(lane, 1) < SHORT_LOOP * core.lanes:
        return found
    row = {lane: found.sizes[lane]} if lane in found.sizes else {}
    cycles = nest_cycles(core, lane, row)
    waits = _waits_for_neighbours(core, found)
    return TileChoice(core, lane, row, cycles) if cycles <= waits else found


def of_whole_lines(core: Core, lane: str, vectors: int) -> int:
    """So many vectors of a row, or more, of which pieces of rows are pairs of lines, where numbers
    of few bytes come in long columns of short pieces from behind the first cache, and a register
    tile of them takes no longer. On a Cascade Lake, products of a vector with weights of a byte in
    groups take .75 to .92 of the time so, compared with two vectors."""
    rows = [a for a in core.reads if a.strides.get(lane) == a.itemsize < _WHOLE_WORD]
    far = [a.itemsize for a in rows if a.elements * a.itemsize > core.device.l1_bytes]
    if core.steps < _LONG_COLUMN or not far:
        return vectors
    more = 2 * LINE // (min(far) * core.lanes)
    if more <= vectors or {lane: more} not in tiles_of(core, lane, ()):
        return vectors
    longer, shorter = (nest_cycles(core, lane, {lane: n}) for n in (more, vectors))
    return more if longer <= _NEARLY_WHOLE * shorter else vectors


def _is_filter(core: Core, found: TileChoice) -> bool:
    """Whether each result takes a few neighbours, of which registers keep what rows share: with
    many rows LLVM keeps some of it in memory. On a Cascade Lake, filters of 7 rows take .88 to .9
    of the time with 4 rows, compared with 13, and of 3 x 3 .93 with 8, compared with 14."""
    few = core.steps <= 2 * SHORT_LOOP and found.has_lanes_of_results
    return few and bool(window_of(core, found.lane, found.sizes))


def _stores_far(core: Core, found: TileChoice) -> bool:
    """Whether results of a few steps each are stored behind the second cache, in vectors along
    their rows: memory takes fewer rows side by side better. On Cascade Lake, distances of 20000
    points from 32 take .85 to .9 of the time with 2 rows, compared with 8."""
    target, lane = core.target, found.lane or ""
    in_order = found.has_lanes_of_results and target.strides.get(lane) == target.itemsize
    far = target.elements * target.itemsize > core.device.l2_bytes
    return in_order and far and core.steps <= 2 * SHORT_LOOP


def _waits_for_neighbours(core: Core, found: TileChoice) -> float:
    """Cycles in which operands and results come from behind the second cache at least, where each
    result takes a few neighbours in rows with the lanes along them, and no operand of that size is
    read again for others; else 0."""
    if core.steps > 2 * SHORT_LOOP or not found.has_lanes_of_results:
        return 0.0
    if any(a.scattered for a in core.reads):
        return 0.0  # to find what data select takes longer
    far = [a for a in core.reads if a.elements * a.itemsize > core.device.l1_bytes // 2]
    rows = all(a.strides.get(found.lane or "") == a.itemsize for a in far)
    once = rows and all(core.results.keys() <= a.strides.keys() for a in far)
    return least_far_cycles(core) if once else 0.0


def _shares_only_in_pairs(core: Core, lane: str) -> bool:
    """Whether rows of one dimension alone tell little of such lanes: all operands are read in
    vectors, of which one for each row."""
    reads = [a.strides.get(lane) == a.itemsize for a in core.reads]
    return core.nest.dim(lane).reduction and len(reads) > 1 and all(reads)


def _neighbours(core: Core, lane: str | None) -> dict[str, int]:
    """The register tile of a nest without a reduction: the smallest of those whose points share
    most, or none where that saves little."""
    extents = {d.name: d.extent for d in core.nest.dims}
    if lane is not None:
        extents[lane] = -(-extents[lane] // core.lanes)
    between = _between_lanes(core, lane)
    if between:
        return _pairs_between(core, lane, between)
    whole = nest_cycles(core, lane, {})
    found: list[tuple[float, dict[str, int]]] = []
    if core.deciding and lane not in core.deciding:
        found.append((nest_cycles(core, lane, core.deciding), dict(core.deciding)))
    shared = []
    for dim in sharing_dims(core, lane):
        choices, most = _NEIGHBOURS, extents[dim]
        apart = [a for a in (*core.reads, core.target) if a.transposed(dim, lane, core.lanes)]
        if apart:
            most = min(most, core.lanes, _PIECE // min(a.itemsize for a in apart))
            if core.target in apart and least_memory_cycles(core):
                most = min(most, _OF_MEMORY)
            alone = len(core.reads) == 1 and core.device.vector_registers > _MANY
            choices = (*_SIDE_BY_SIDE, _MANY) if alone else _SIDE_BY_SIDE
        elif dim != lane and most > 1:
            shared.append(dim)
        tiles = ({dim: size} for size in choices if size <= most)
        found += ((nest_cycles(core, lane, tile), tile) for tile in tiles)
    for pair in itertools.combinations(shared[-_PAIRED:], 2):
        tile = dict.fromkeys(pair, 2)
        found.append((nest_cycles(core, lane, tile), tile))
    pieces = [] if lane is None else _periods(core, lane, extents[lane])
    if lane is not None and 1 < extents[lane] <= _ROW_VECTORS:
        pieces.append(extents[lane])  # what is one for all rows is computed before them
    rows = [
        {**tile, lane: n} for n in pieces for tile in ({}, *(tile for _, tile in found)) if lane
    ]
    found += ((nest_cycles(core, lane, row), row) for row in rows)
    least = min((cycles for cycles, _ in found), default=whole)
    if least > whole * _WORTH_TILE or _hides_tiles(core, lane, whole):
        return _short_rows(core, lane, whole)
    enough = (tile for cycles, tile in found if cycles <= least * _NEARLY)
    return _along_rows(core, lane, min(enough, key=lambda tile: math.prod(tile.values())))


def _pairs_between(core: Core, lane: str | None, between: dict[str, int]) -> dict[str, int]:
    """The register tile of what lies between lanes, with two points of a dimension that share what
    they read if that pays. On a Cascade Lake, pixels of an image of twice the size take .7 of the
    time in pairs of rows, which read the same two rows."""
    alone = nest_cycles(core, lane, between)
    dims = [d for d in sharing_dims(core, lane) if d not in between and d != lane]
    pairs = ((nest_cycles(core, lane, pair), pair) for pair in ({**between, d: 2} for d in dims))
    cycles, pair = min(pairs, key=lambda each: each[0], default=(alone, between))
    return pair if cycles <= _WORTH_TILE * alone else between


def _short_rows(core: Core, lane: str | None, cycles: float) -> dict[str, int]:
    """The register tile of a nest whose points share nothing, in so many cycles: two rows of one
    vector each, where these take little longer than counting; else none."""
    rows = [d for d in core.nest.dims if d.name != lane and d.extent > 1]
    if lane is None or not rows or core.nest.dim(lane).extent > core.lanes:
        return {}
    if core.short_loop(lane) is not None:
        return {}  # all of it is written out
    least = max(cycles, least_memory_cycles(core))
    counting = ITERATION_CYCLES * math.prod(d.extent for d in rows)
    return {rows[-1].name: 2} if counting > _COUNTING_PART * least else {}


def _periods(core: Core, lane: str, most: int) -> list[int]:
    """Vectors of a row after which lanes lie as before, where one is not enough: the fewest."""
    pieces = range(2, min(most, _ROW_VECTORS) + 1)
    found = (n for n in pieces if any(a.has_period(lane, core.lanes, n) for a in core.reads))
    return list(itertools.islice(found, 1))


def _hides_tiles(core: Core, lane: str | None, cycles: float) -> bool:
    """Whether memory takes longer than a nest without a register tile, and neither gathers lanes
    from as many lines nor uses lines again that the second cache has lost."""
    return (
        cycles <= least_memory_cycles(core)
        and not _has_lanes_apart(core, lane)
        and all(refill.level <= Level.L2 for refill in refills(core, lane, {}))
    )


def _along_rows(core: Core, lane: str | None, tile: dict[str, int]) -> dict[str, int]:
    """The register tile with several vectors of each row of results, where these rows are put
    together from lanes that are apart: a store that lies in two lines waits for both, and the next
    one of the row needs one of them again. On a Cascade Lake, transposing 4 MB takes .3 to .7 of
    the time with four vectors of 8 rows, compared with one of 8 or 16, and .8 to 1.0 where rows
    begin on lines."""
    rows = [d for d in tile if any(a.transposed(d, lane, core.lanes) for a in core.reads)]
    if lane is None or len(rows) != 1 or core.called:
        return tile
    if core.target.strides.get(lane) != core.target.itemsize:
        return tile
    vectors = min(_ALONG_ROWS, -(-core.nest.dim(lane).extent // core.lanes))
    return {**tile, lane: vectors} if vectors > tile.get(lane, 1) else tile


def _between_lanes(core: Core, lane: str | None) -> dict[str, int]:
    """A register tile of what lies between two lanes of the results, as the channels of pixels: it
    is written in one piece then. Empty if there is none, or too much."""
    strides, itemsize = core.target.strides, core.target.itemsize
    apart = strides.get(lane or "", 0)
    inside = {
        d.name: d.extent
        for d in core.nest.dims
        if d.extent > 1 and 0 < strides.get(d.name, 0) < apart
    }
    points = math.prod(inside.values())
    return inside if 1 < points <= _BETWEEN and points * itemsize == apart else {}


def _cheapest_in_rows(
    core: Core, rows: _Rows, most: float, known: dict[_Rows, list[TileChoice]]
) -> list[TileChoice]:
    """As ``_cheapest``, if there is any tile with such rows. What is ``known`` was asked for with
    no smaller bound."""
    if rows not in known:
        lane, dims = rows
        tiles = [(lane, tile) for each in dims for tile in tiles_of(core, lane, each)]
        known[rows] = [_cheapest(core, tiles, most)] if tiles else []
    return known[rows]


def _cheapest(core: Core, tiles: Iterable[Tile], most: float = math.inf) -> TileChoice:
    """The tile that takes the least; the first one, with infinite cycles, where all take more than
    ``most``."""
    first, *_ = tiles = [*tiles]
    found = _few_cheapest(core, tiles, 1, most, in_order=True)
    return found[0] if found else TileChoice(core, *first, math.inf)


def _few_cheapest(
    core: Core, tiles: Iterable[Tile], few: int, most: float, *, in_order: bool = False
) -> list[TileChoice]:
    """So many tiles that take the fewest cycles, of those that take at most ``most``. Those that
    promise most are looked at first, and of equal ones come first, unless ``in_order``."""
    known = [(tile_parts(core, *tile), place, tile) for place, tile in enumerate(tiles)]
    found: list[tuple[float, int, TileChoice]] = []
    for parts, place, (lane, tile) in sorted(known, key=lambda each: each[0].least):
        if parts.least > most:
            break
        made = TileChoice(core, lane, tile, nest_cycles(core, lane, tile, most, parts))
        if made.cycles <= most:
            found.append((_cycles(made), place * in_order, made))
            found = sorted(found, key=itemgetter(0, 1))[:few]
        if len(found) == few:
            most = min(most, found[-1][2].cycles + _EQUAL)
    return [made for _, _, made in found]


_EQUAL = 0.01
"""Cycles that tiles differ by at most that count as the same."""


def _least(choices: Iterable[TileChoice]) -> TileChoice:
    return min(choices, key=_cycles)


def _cycles(choice: TileChoice) -> float:
    """Of tiles that take the same, the order of additions decides nothing: the first one is it."""
    return round(choice.cycles, 2)


def _may_have_lanes(core: Core, dim: ir.Dim) -> bool:
    """Whether some access goes through memory from front to back along the dimension, or
    through a panel that could, or, in a reduction, takes vectors of it out of whole ones, or
    results are written with what lies between them."""
    in_order = any(
        a.strides.get(dim.name) == a.itemsize or dim.name in a.wrapped
        for a in (*core.reads, core.target)
    )
    if core.products is not None and dim.name not in core.products.lanes:
        return False
    if dim.reduction:
        # Results that fill less than half a vector leave more lanes empty than is lost apart.
        few = all(2 * n <= core.lanes for n in core.results.values()) and dim.extent >= core.lanes
        return in_order or few or any(_is_sorted(a, dim.name) for a in core.reads)
    copied = any(a.stageable and dim.name in a.strides for a in core.reads)
    selected = core.nest.reduces and any(
        a.selects_for_all(dim.name, core.lanes) for a in core.reads
    )
    return in_order or copied or selected or _fills_between_lanes(core, dim.name)


def _fills_between_lanes(core: Core, lane: str) -> bool:
    """Whether results are written together with all that lies between two lanes, and no operand is
    read lane by lane: those of which the next steps are neighbours are transposed."""
    inner = core.innermost.name if core.innermost is not None else ""
    return bool(_between_lanes(core, lane)) and all(
        a.cycles(lane, core.lanes) < core.lanes or a.transposed(inner, lane, core.lanes)
        for a in core.reads
    )


def _is_sorted(access: OperandAccess, lane: str) -> bool:
    """Whether lanes are a few apart, so that they come out of whole vectors."""
    return 2 <= access.strides.get(lane, 0) / access.itemsize <= SORTED_APART


def tiles_of(core: Core, lane: str | None, rows: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Register tiles with rows along all of these dimensions; of one dimension, a single row too,
    of none only that."""
    extents = {d.name: d.extent for d in core.nest.dims}
    registers = core.device.vector_registers
    apart = core.products is None and _is_computed_apart(core.nest.point)
    loaded = _LOADED * max(0, _own_operands(core) - 1) if core.fused.sums > 1 else 0
    vectors = (1,) if lane is None else (*_VECTORS, *(_LONG_ROWS if core.compacted else _ONE_ROW))
    along = lane is not None and core.nest.dim(lane).reduction
    far = [a for a in core.reads if along and a.whole > core.device.l2_bytes]
    torn = [] if along or lane is None else _columns_from_afar(core, lane)
    more = core.products.extra_registers if core.products is not None else 0
    if lane is not None and any(_is_sorted(a, lane) for a in core.reads):
        more += _SHUFFLED
    shapes = [
        (tile, math.prod(tile.values()))
        for tile in _shapes(rows, _SHARED_ROWS if _shares_much(core) else _ROWS, extents)
        if all([access.count(tile) <= STREAMS for access in far])
    ]
    for v in vectors:
        row = 1 if lane is None else -(-extents[lane] // core.lanes)
        if v > max(1, row) or (v in _ONE_ROW[1:] and v != row and not core.compacted):
            continue
        for tile, size in shapes:
            if tile and v not in _VECTORS:
                continue
            short = any(v * core.lanes * a.itemsize < _COLUMN_BYTES for a in torn)
            if short and size > 1 and all(a.count(tile) == size for a in torn):
                continue
            points = size * v
            whole = {**tile, lane: v} if lane is not None else tile
            others = 1 + (v if tile or not core.compacted else 1)
            if core.fused.sums > 1:
                others = OPERANDS + loaded + max(0, core.fused.sums - _OWN_SUMS) * _BESIDE * points
            held = points * core.fused.registers + others + more + kept_inside(core, lane, whole)
            held += apart and 1 < v < points
            # Of one point there is a tile, whatever it takes.
            if points == 1 or (
                held <= registers and live_registers(core, lane, whole) <= registers
            ):
                yield whole


def _columns_from_afar(core: Core, lane: str) -> list[OperandAccess]:
    """The operands from behind the second cache of which each step of a reduction reads a piece of
    another row, as long as the lanes of a register tile."""
    return [
        a
        for a in core.reads
        if a.strides.get(lane) == a.itemsize >= core.target.itemsize
        and a.whole > core.device.l2_bytes
        and not a.is_window(core.dims)
        and any(abs(a.strides.get(d.name, 0)) >= LINE for d in core.reduced)
    ]


def _is_computed_apart(point: ir.Point) -> bool:
    """Whether what is added up takes a register, as it is no product of two operands, nor one of
    them, and the next vectors need these again: of squares of differences on Zen 3, LLVM moved 12
    sums from register to register beside 3 vectors, and kept one in memory, in 1.7 times the time
    of 6 x 2."""
    _, value = guard(point.op, point.value)
    both = product_of(value)
    parts = (value,) if both is None else (both.left, both.right)
    return any(not isinstance(x.operand if isinstance(x, ir.Cast) else x, ir.Load) for x in parts)


def _own_operands(core: Core) -> int:
    """Operands that only one of several sums reads."""
    points = [{load.ref for load in operands(p)} for p in (core.nest.point, *core.fused.points)]
    return sum(sum(ref in refs for refs in points) == 1 for refs in points for ref in refs)


def _shares_much(core: Core) -> bool:
    """Whether points share a call, a division, or what takes as long as one, in each step."""
    work = [*core.arithmetic.items(), *((d.dims, DIVISION_CYCLES) for d in core.divisions)]
    shared = (each for dims, each in work if not core.results.keys() <= dims)
    return core.called or any(each >= DIVISION_CYCLES for each in shared)


def _shapes(
    rows: tuple[str, ...], most: Sequence[int], extents: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Points of dimensions, of the first of them so many."""
    whole = {d: [n for n in _WHOLE_ROWS if provably_equal(extents[d] % n, 0)] for d in rows}
    sizes = {d: [n for n in (*most, *whole[d]) if n <= extents[d]] for d in rows}
    if len(rows) == 1:
        yield from ({d: size} if size > 1 else {} for d, own in sizes.items() for size in own)
    elif rows:
        for one, other in (rows, rows[::-1]):
            some = [n for n in _SECOND_ROWS[1:] if n <= extents[other]]
            for many, few in itertools.product(sizes[one][1:], some):
                if one == rows[0] or many > _SECOND_ROWS[-1]:  # else it came the other way round
                    yield {one: many, other: few}
    else:
        yield {}
