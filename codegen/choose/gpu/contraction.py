"""Options for sums of products whose operands are used again: tiles of both in shared memory, and
a tile of results in the registers of each thread.

Products, batched ones and Kronecker products differ in their dimensions alone: those that one
operand moves with are one side of a block, those of the other operand the other side. Which sizes
these have is ranked by what their kernels ask of the device: all by a short count of what binds
most of them, the best few by ``codegen/counters/``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tcl.codegen.choose.gpu.nest_shape import (
    OptionsDraft,
    Shape,
    blocks_of,
    power_above,
    power_below,
)
from tcl.codegen.choose.gpu.predicted import best_split, counts_of
from tcl.codegen.choose.gpu.short_count import DEPTH, RESIDENT, ShortCount
from tcl.codegen.choose.gpu.windows import Window
from tcl.codegen.common.warps import WARPGROUP, WARPGROUP_DEPTH
from tcl.codegen.counters.counts import KernelCounts
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import mma_type
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.gpu.mma_shape import COLUMNS, ROWS
from tcl.codegen.passes.gpu.steps import alone
from tcl.codegen.passes.gpu.transposed import LEAST, axis_of_vectors
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16

_HELD = (
    *((16, 8), (8, 16), (8, 8), (8, 4), (4, 8), (4, 4)),
    *((4, 2), (2, 4), (2, 2), (2, 1), (1, 2), (1, 1)),
)
"""Results of a thread along the sides, those along the vectors first: threads that hold more read
less of panels for each product."""
_THREADS = ((8, 16), (16, 8), (16, 16), (8, 8), (4, 16), (4, 8), (8, 4))
"""Threads of a block along the sides, those along the vectors last."""
_COMPUTED = (32, 4), (32, 2), (16, 2)
"""The former of a thread and the latter of a block, so that a factor which is computed is so by few
threads."""
_WITH_PARTS = (256, 128)
"""Threads of a block whose warps share the sums: so many parts as come to that. The first alone
where a panel is transposed: warps that read different rows of it meet in the same banks."""
_COUNTED = 3
"""Choices that are worth counting in full."""
_SAME, _SAME_ON_CORES = 1.005, 1.001
"""Choices whose times differ by less are alike, as integer instructions are counted about: the
first one by the short count is made. The second: where tensor cores decide."""
_HALF_DEPTH = 8
"""Points of the reductions that a tile has, about, where panels are transposed: a thread holds its
part of the next ones."""
_BUFFERS, _MOST_BUFFERS = 3, 6
"""Buffers of panels that asynchronous copies fill; the most where tiles are small."""
_IN_FLIGHT = 40 << 10
"""Bytes on their way to a multiprocessor that keep memory busy, where it has several blocks."""
_SMALL = 8
"""Reductions of so few points are not tiled."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Choices, and what their kernel asks for."""

    draft: OptionsDraft
    counts: KernelCounts | None


def contraction(shape: Shape, profile: GpuProfile) -> Counted | None:
    """Choices for a nest of two operands that are used again; None for others."""
    if shape.pair is None or shape.nest.sequential:
        return None
    one, other = shape.factors
    sides = [shape.side(one, other), shape.side(other, one)]
    target = shape.nest.point.target
    lane = next((k for k in shape.results if shape.stride(target, k) == 1), None)
    if lane in sides[0]:
        sides.reverse()  # the second side has the vectors
    found: list[tuple[float, Counted]] = []
    for made, program in _candidates(shape, sides, lane, profile):
        counted = Counted(made, counts_of(program, profile))
        found.append((_seconds(shape, counted), counted))
    least = min((seconds for seconds, _ in found), default=0.0)
    same = _SAME_ON_CORES if any(x.draft.mma for _, x in found) else _SAME
    return next((counted for seconds, counted in found if seconds <= same * least), None)


def _candidates(
    shape: Shape, sides: list[list[int]], lane: int | None, profile: GpuProfile
) -> Iterator[tuple[OptionsDraft, ir.Program]]:
    """The choices that are worth counting, each with the nest's program."""
    on_cores = list(_on_tensor_cores(shape, sides, lane, profile))
    if on_cores:
        yield from on_cores
        return
    window = Window.of(shape)
    counted = 0
    for made in window.drafts(lane, profile) if window is not None else ():
        if (program := _fitting(shape, made, range(made.buffers, 0, -1), profile)) is not None:
            counted += 1
            yield made, program
    ranked, most = ([], 0) if counted else _ranked(shape, sides, lane, profile)
    # Counts do not tell that products wait for registers: those of transposed panels wait less,
    # and less again with more results along the vectors (.94 of the time, on an H100).
    transposed = [made for made in ranked[:most] if _transposes(shape, made)]
    transposed.sort(key=lambda made: made.register.get(made.lanes[0], 1), reverse=True)
    for made in transposed or ranked:
        if (program := _staged(shape, made, profile)) is not None:
            counted += 1
            yield made, program
        if counted == most:
            return


def _ranked(
    shape: Shape, sides: list[list[int]], lane: int | None, profile: GpuProfile
) -> tuple[list[OptionsDraft], int]:
    """All choices, that which takes the least by a short count first. Where a multiprocessor gets
    one block anyway, that may have all of its registers. Second: how many are to be counted."""
    in_order = lane is None or any(shape.stride(x.ref, lane) == 1 for x in shape.factors)
    sides = [_in_order(shape, side) for side in sides]
    count = ShortCount.of(shape, sides, DEPTH if in_order else _HALF_DEPTH, profile)
    drafts = list(_drafts(shape, sides, lane, in_order, count, profile))
    found = _best_of_each(drafts, count, alone=False)
    if found and blocks_of(shape, found[0]) <= profile.multiprocessors:
        more = _best_of_each(drafts, count, alone=True)
        first = found[:1] if found[0] not in more[:_COUNTED] else []
        return [*more[:_COUNTED], *first, *more[_COUNTED:]], _COUNTED + len(first)
    return found, _COUNTED


def _drafts(
    shape: Shape,
    sides: list[list[int]],
    lane: int | None,
    in_order: bool,
    count: ShortCount,
    profile: GpuProfile,
) -> Iterator[list[OptionsDraft]]:
    """All of them, those together whose threads hold as many results. ``in_order``: an operand has
    vectors along the lanes, too."""
    tried = set[tuple[object, ...]]()
    computed = ((_COMPUTED[0], _COMPUTED[1:]),) if count.computed else ()
    for held, blocks in (*((held, _THREADS) for held in _HELD), *computed):
        found = list[OptionsDraft]()
        for threads in blocks:
            made = _tiles(shape, sides, lane, held, threads)
            if not in_order and not _transposes(shape, made):
                # Vectors would be of nothing but results.
                made = _tiles(shape, sides, None, held, threads)
            key = (made.lanes, *made.threads.items(), *made.register.items())
            if key not in tried:
                tried.add(key)
                found += [made, *_with_parts(shape, made, profile)]
        yield found


def _best_of_each(
    drafts: Iterable[list[OptionsDraft]], count: ShortCount, *, alone: bool
) -> list[OptionsDraft]:
    """The best of each list, the best of these first. ``alone``: as in ``ShortCount.seconds``."""
    found = list[tuple[float, int, OptionsDraft]]()
    for some in drafts:
        timed = [(count.seconds(made, alone), k, made) for k, made in enumerate(some)]
        best = min(timed, key=lambda each: each[:2], default=None)
        if best is not None and best[0] < math.inf:
            found.append(best)
    return [made for _, _, made in sorted(found, key=lambda each: each[:2])]


def _with_parts(shape: Shape, made: OptionsDraft, profile: GpuProfile) -> Iterator[OptionsDraft]:
    """The same tiles with warps that share each sum, where blocks alone leave a multiprocessor
    little to do."""
    threads = math.prod(made.threads.values())
    k = max(shape.reductions, key=shape.extent)
    few = blocks_of(shape, made) <= RESIDENT * profile.multiprocessors
    sizes = _WITH_PARTS[:1] if _transposes(shape, made) else _WITH_PARTS
    for parts in (most // threads for most in sizes if few and threads % WARP == 0):
        if 1 < parts <= shape.extent(k) // DEPTH:
            yield replace(made, threads={**made.threads, k: parts})


def _staged(shape: Shape, made: OptionsDraft, profile: GpuProfile) -> ir.Program | None:
    """Gives a draft its tiles of the reductions and its panels; the nest's program, or None if
    these do not fit."""
    _reductions(shape, made)
    tiles = _stage(shape, made)
    ahead = 2
    if profile.async_copies and not _transposes(shape, made):
        ahead = _BUFFERS
        if (blocks := blocks_of(shape, made) // profile.multiprocessors) >= RESIDENT:
            at_once = blocks * _tile_bytes(shape, made)
            ahead = min(_MOST_BUFFERS, max(ahead, 1 + -(-_IN_FLIGHT // at_once)))
    return _fitting(shape, made, (ahead, _BUFFERS, 2, 1) if tiles else (1,), profile)


def _stage(shape: Shape, made: OptionsDraft) -> int:
    """Gives a draft panels of both factors, inside of the loops over tiles of the reductions: how
    many of these there are."""
    tiles = sum(0 < made.tile.get(k, 0) < shape.extent(k) for k in shape.reductions)
    reads = operands(shape.nest.point)
    made.stage = tuple(1 + tiles if x in shape.factors else -1 for x in reads)
    return tiles


def _tile_bytes(shape: Shape, made: OptionsDraft) -> int:
    """Bytes of the tiles that a block multiplies at once."""
    inside = {}
    for k, dim in enumerate(shape.nest.dims):
        inside[k] = min(made.chunk.get(k) or made.tile.get(k) or dim.extent, dim.extent)
    sizes = (math.prod([n for k, n in inside.items() if shape.moves(x, k)]) for x in shape.factors)
    return sum(sizes) * shape.largest


def _seconds(shape: Shape, counted: Counted) -> float:
    """What a draft comes to, with its longest reduction split as is best."""
    if counted.counts is None:
        return math.inf
    if shape.is_split:
        return predict(counted.counts).rank
    k = max(shape.reductions, key=shape.extent)
    return best_split(counted.counts, shape.nest, k, counted.draft.tile.get(k, 1))[1]


def _in_order(shape: Shape, side: Sequence[int]) -> list[int]:
    """A side, the dimensions first along which results lie in order."""
    target = shape.nest.point.target
    return sorted(side, key=lambda k: shape.stride(target, k) or 1 << 60)


def _tiles(
    shape: Shape,
    sides: list[list[int]],
    lane: int | None,
    held: tuple[int, int],
    block: tuple[int, int],
) -> OptionsDraft:
    """The points of a block along both sides, each in order. ``block``: its threads along these."""
    made = OptionsDraft.empty(len(shape.nest.dims))
    made.chunk = dict.fromkeys(shape.results, 1)
    vector = 1 if lane is None else shape.widest(lane)
    for side, registers, threads in zip(sides, held[::-1], block, strict=True):
        for k in side:
            extent, width = shape.extent(k), 1
            if k == lane:
                width = min(vector, registers)
                made.lanes = (k, width) if width > 1 else made.lanes
            registers //= width
            own = min(threads, power_above(-(-extent // width)))
            kept = min(registers, power_above(-(-extent // (width * own))))
            made.threads[k], made.register[k] = own, kept
            made.chunk[k] = width * own * kept
            threads //= own
            registers //= kept
    return made


def _reductions(shape: Shape, made: OptionsDraft) -> None:
    """Tiles of the reductions, those first along which operands lie in order."""
    depth, steps, deep = 1, 4, DEPTH
    if _transposes(shape, made):  # each point is read on its own, and held on its way
        steps, deep = 1, _HALF_DEPTH
    inner = sorted(
        shape.reductions,
        key=lambda k: (
            shape.extent(k) > _SMALL,
            not any(shape.stride(load.ref, k) == 1 for load in shape.factors),
            -k,
        ),
    )
    for k in inner:
        extent = shape.extent(k)
        if extent <= _SMALL:
            depth *= extent
            if extent <= steps:
                made.register[k], steps = extent, steps // max(1, extent)
            continue
        size = max(4, power_below(max(1, deep // depth))) if depth < deep else 1
        size *= made.threads.get(k, 1)
        made.tile[k] = size
        if size >= steps > 1:
            made.register[k], steps = steps, 1
        depth *= min(size, extent)


def _transposes(shape: Shape, made: OptionsDraft) -> bool:
    """Whether the panel of an operand is transposed."""
    if shape.reads_in_order:
        return False
    dims = shape.nest.dims
    kept = {
        dims[k].name
        for k in shape.results
        if made.register.get(k, 1) % LEAST == 0 or (k, LEAST) == made.lanes
    }
    held = made.lanes[1] * math.prod(made.register.get(k, 1) for k in shape.results)
    axes = (axis_of_vectors(shape.program, shape.nest, x.ref, kept, held) for x in shape.factors)
    return any(axis is not None for axis in axes)


_WARPS = (((2, 4), (4, 8)), ((2, 2), (4, 8)), ((2, 2), (2, 4)), ((2, 2), (1, 2)))
"""Warps along rows and columns, and results of each along these, in units of what one instruction
adds to."""
_WARPGROUPS = ((2, 32), (2, 16), (1, 32), (1, 16), (1, 8))
"""Warpgroups along rows, of 64 each, and registers along columns, for 8 of them each: larger blocks
read less of panels for each product."""
_WARPGROUP_BUFFERS = (6, 5, 4, 3)
_TENSOR_DEPTHS = (64, 32)
_LEAST_BLOCKS = 0.5
"""Of the multiprocessors, that larger blocks leave with something to do."""


def _on_tensor_cores(
    shape: Shape, sides: list[list[int]], lane: int | None, profile: GpuProfile
) -> Iterator[tuple[OptionsDraft, ir.Program]]:
    """Choices for 16-bit factors; none where tensor cores cannot be fed."""
    value = shape.nest.point.value
    if profile.capability < (8, 0) or mma_type(value) not in (FLOAT16, BFLOAT16):
        return
    depths = [k for k in shape.reductions if all(shape.moves(x, k) for x in shape.factors)]
    if not all(sides) or not depths or lane is None or lane not in sides[1]:
        return
    rows = max(sides[0], key=shape.extent)
    depth = max(depths, key=shape.extent)
    if shape.extent(rows) < ROWS or shape.extent(lane) < COLUMNS or shape.extent(depth) < 16:
        return
    if profile.capability == (9, 0):
        yield from _by_warpgroups(shape, (rows, lane, depth), profile)
    tried = 0
    for k, (warps, held) in enumerate(_WARPS):
        made = OptionsDraft.empty(len(shape.nest.dims))
        made.chunk = dict.fromkeys(shape.results, 1)
        made.threads = {rows: 8 * warps[0], lane: 4 * warps[1]}
        made.register = {rows: 2 * held[0], lane: held[1], depth: 16}
        made.lanes, made.mma = (lane, 2), (rows, lane, depth)
        made.chunk[rows] = ROWS * warps[0] * held[0]
        made.chunk[lane] = COLUMNS * warps[1] * held[1]
        last = k == len(_WARPS) - 1
        if not last and blocks_of(shape, made) < _LEAST_BLOCKS * profile.multiprocessors:
            continue
        for deep in _TENSOR_DEPTHS:
            if deep > shape.extent(depth) and deep != _TENSOR_DEPTHS[-1]:
                continue
            own = replace(made, tile={k: 1 for k in shape.reductions if shape.extent(k) > 1})
            own.tile[depth] = deep if shape.extent(depth) > deep else 0
            buffers = (4, 3, 2) if _stage(shape, own) else (1,)
            if (program := _fitting(shape, own, buffers, profile)) is not None:
                tried += 1
                yield own, program
        if tried >= _COUNTED:
            return


def _by_warpgroups(
    shape: Shape, mma: tuple[int, int, int], profile: GpuProfile
) -> Iterator[tuple[OptionsDraft, ir.Program]]:
    """Likewise for warpgroups: blocks of several sizes, the largest first that leave all
    multiprocessors with something to do."""
    rows, lane, depth = mma
    tried = 0
    for groups, held in _WARPGROUPS:
        made = OptionsDraft.empty(len(shape.nest.dims))
        made.chunk = dict.fromkeys(shape.results, 1)
        made.chunk |= {rows: WARPGROUP // 2 * groups, lane: COLUMNS * held}
        made.threads, made.lanes, made.mma = {rows: 32 * groups, lane: 4}, (lane, 2), mma
        made.register = {rows: 2, lane: held, depth: WARPGROUP_DEPTH}
        made.tile = {k: 1 for k in shape.reductions if shape.extent(k) > 1}
        made.tile[depth] = WARPGROUP_DEPTH if shape.extent(depth) > WARPGROUP_DEPTH else 0
        if blocks_of(shape, made) < _LEAST_BLOCKS * profile.multiprocessors:
            continue
        buffers = _WARPGROUP_BUFFERS if _stage(shape, made) else (1,)
        if (program := _fitting(shape, made, buffers, profile)) is not None:
            tried += 1
            yield made, program
        if tried >= _COUNTED:
            return


def _fitting(
    shape: Shape, made: OptionsDraft, buffers: Iterable[int], profile: GpuProfile
) -> ir.Program | None:
    """The nest with these options, and so many ``buffers`` as the first with which panels fit into
    shared memory, and lie so that tensor cores can read them; None if there is no such number."""
    for made.buffers in buffers:
        if (program := alone(shape.program, shape.nest, made.options(), profile)) is not None:
            return program
    return None


def covering(
    shape: Shape,
    common: Sequence[int],
    held: tuple[int, int],
    threads: tuple[int, int],
    profile: GpuProfile,
) -> OptionsDraft | None:
    """Choices for a nest that shares its blocks with others: a block takes some points of the
    results that these have in ``common``, the last of which has the vectors, and all of the others;
    None if it does not. ``held``, ``threads``: as in ``_tiles``."""
    rest = [k for k in shape.results if k not in common]
    sides = [_in_order(shape, side) for side in (rest, common)]
    made = _tiles(shape, sides, common[-1], held, threads)
    if any(made.chunk[k] < shape.extent(k) for k in rest):
        return None
    for k in rest:
        made.chunk[k] = 0
    if shape.pair is None:
        return made
    return made if _staged(shape, made, profile) is not None else None
