"""Options for sums of products whose operands are used again: tiles of both in shared memory, and
a tile of results in the registers of each thread.

A block of 256 threads is a square of 16 x 16; each thread holds up to 8 x 8 results, so that it
reads 16 numbers for 64 products. Products, batched ones, convolutions and Kronecker products differ
in their dimensions alone: those that one operand moves with are one side of the square, those of
the other operand the other side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, power_above, power_below
from tcl.codegen.choose.gpu.predicted import best_split, counts_of
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import mma_type
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.gpu.mma_shape import COLUMNS, ROWS
from tcl.codegen.passes.gpu.steps import alone
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16

SIDE = 16
"""Threads along each side."""
_HELD = ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (2, 1), (1, 1))
"""Results of a thread along the sides, the larger one along that of the vectors."""
_LARGE = (((16, 8), (16, 8)), ((8, 16), (8, 16)), ((8, 8), (8, 8)))
"""Results of a thread, likewise, and threads of a block along the sides, that along the vectors
last: threads that hold more read less of panels for each product."""
_DEPTH = 16
"""Points of the reductions that a tile has, about."""
_SMALL = 8
"""Reductions of so few points are not tiled."""
_WAVES = 1.0
"""Blocks per multiprocessor from which on larger ones are better."""


def contraction(shape: Shape, profile: GpuProfile) -> OptionsDraft | None:
    """Choices for a nest of two operands that are used again; None for others."""
    if shape.pair is None or shape.nest.sequential:
        return None
    reads = operands(shape.nest.point)
    one, other = (reads[k] for k in shape.pair)
    sides = [shape.side(one, other), shape.side(other, one)]
    target = shape.nest.point.target
    lane = next((k for k in shape.results if shape.stride(target, k) == 1), None)
    if lane in sides[0]:
        sides.reverse()  # the second side has the vectors
    cores = _on_tensor_cores(shape, sides, lane, (one, other), profile)
    if cores is not None:
        return cores
    found: list[tuple[float, OptionsDraft]] = []
    for made, program in _candidates(shape, sides, lane, (one, other), profile):
        if made not in (draft for _, draft in found):
            found.append((_seconds(shape, made, program, profile), made))
    return min(found, key=lambda each: each[0])[1] if found else None


def _candidates(
    shape: Shape,
    sides: list[list[int]],
    lane: int | None,
    pair: tuple[ir.Load, ir.Load],
    profile: GpuProfile,
) -> Iterator[tuple[OptionsDraft, ir.Program]]:
    """Blocks of 16 x 16 threads, of which the first is the largest tile that leaves work for all
    multiprocessors; then those whose threads hold more, or that are smaller. With each, the
    nest's program."""
    usual = (SIDE, SIDE)
    along = lane
    if lane is not None and not any(shape.stride(x.ref, lane) == 1 for x in pair):
        along = None  # vectors would be of nothing but results
    enough = _WAVES * profile.multiprocessors
    for held in _HELD:
        made = _tiles(shape, sides, lane, held, usual)
        fills = held == _HELD[-1] or _blocks(shape, made) >= enough
        if fills and (program := _staged(shape, made, pair, profile)) is not None:
            yield made, program
            break
    for held, threads in _LARGE:
        made = _tiles(shape, sides, along, held, threads)
        if (program := _staged(shape, made, pair, profile)) is not None:
            yield made, program


def _staged(
    shape: Shape, made: OptionsDraft, pair: tuple[ir.Load, ir.Load], profile: GpuProfile
) -> ir.Program | None:
    """Gives a draft its tiles of the reductions and its panels; the nest's program, or None if
    these do not fit."""
    assert shape.pair is not None
    _reductions(shape, made, pair)
    tiles = sum(0 < made.tile.get(k, 0) < shape.extent(k) for k in shape.reductions)
    reads = operands(shape.nest.point)
    made.stage = tuple(1 + tiles if k in shape.pair else -1 for k in range(len(reads)))
    for made.buffers in (3 if profile.async_copies else 2, 2, 1) if tiles else (1,):
        if (program := _fitting(shape, made, profile)) is not None:
            return program
    return None


def _seconds(shape: Shape, made: OptionsDraft, program: ir.Program, profile: GpuProfile) -> float:
    """What a draft comes to, with its longest reduction split as is best."""
    counts = counts_of(program, profile)
    if counts is None:
        return math.inf
    k = max(shape.reductions, key=shape.extent)
    return best_split(counts, shape.nest, k, made.tile.get(k, 1))[1]


def _tiles(
    shape: Shape,
    sides: list[list[int]],
    lane: int | None,
    held: tuple[int, int],
    block: tuple[int, int],
) -> OptionsDraft:
    """The points of a block along both sides. ``block``: its threads along these."""
    made = OptionsDraft.empty(len(shape.nest.dims))
    for k in shape.results:
        made.chunk[k] = 1
    for side, registers, threads in zip(sides, held[::-1], block, strict=True):
        order = sorted(side, key=lambda k: shape.stride(shape.nest.point.target, k) or 1 << 60)
        for k in order:
            extent, width = shape.extent(k), 1
            if k == lane:
                width = min(shape.vector(k), registers)
                made.lanes = (k, width) if width > 1 else made.lanes
            registers //= width
            own = min(threads, power_above(-(-extent // width)))
            kept = min(registers, power_above(-(-extent // (width * own))))
            made.threads[k], made.register[k] = own, kept
            made.chunk[k] = width * own * kept
            threads //= own
            registers //= kept
    return made


def _blocks(shape: Shape, made: OptionsDraft) -> int:
    return math.prod(-(-shape.extent(k) // made.chunk[k]) for k in shape.results)


def _reductions(shape: Shape, made: OptionsDraft, pair: tuple[ir.Load, ir.Load]) -> None:
    """Tiles of the reductions, those first along which operands lie in order."""
    depth, steps = 1, 4
    inner = sorted(
        shape.reductions,
        key=lambda k: (
            shape.extent(k) > _SMALL,
            not any(shape.stride(load.ref, k) == 1 for load in pair),
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
        size = max(4, power_below(max(1, _DEPTH // depth))) if depth < _DEPTH else 1
        if depth >= _DEPTH:
            size = 1
        made.tile[k] = size
        if size >= steps > 1:
            made.register[k], steps = steps, 1
        depth *= min(size, extent)


_WARPS = (((2, 2), (4, 8)), ((2, 2), (2, 4)), ((2, 2), (1, 2)))
"""Warps along rows and columns, and results of each along these, in units of what one instruction
adds to."""
_TENSOR_DEPTH = 32


def _on_tensor_cores(
    shape: Shape,
    sides: list[list[int]],
    lane: int | None,
    pair: tuple[ir.Load, ir.Load],
    profile: GpuProfile,
) -> OptionsDraft | None:
    """Choices for 16-bit factors; None where tensor cores cannot be fed."""
    value = shape.nest.point.value
    if profile.capability < (8, 0) or mma_type(value) not in (FLOAT16, BFLOAT16):
        return None
    depths = [k for k in shape.reductions if all(shape.moves(x, k) for x in pair)]
    if not all(sides) or not depths or lane is None or lane not in sides[1]:
        return None
    rows = max(sides[0], key=shape.extent)
    depth = max(depths, key=shape.extent)
    if shape.extent(rows) < ROWS or shape.extent(lane) < COLUMNS or shape.extent(depth) < 16:
        return None
    for warps, held in _WARPS:
        made = OptionsDraft.empty(len(shape.nest.dims))
        made.chunk = dict.fromkeys(shape.results, 1)
        made.threads = {rows: 8 * warps[0], lane: 4 * warps[1]}
        made.register = {rows: 2 * held[0], lane: held[1], depth: 16}
        made.lanes, made.mma = (lane, 2), (rows, lane, depth)
        made.chunk[rows] = ROWS * warps[0] * held[0]
        made.chunk[lane] = COLUMNS * warps[1] * held[1]
        if _blocks(shape, made) >= _WAVES * profile.multiprocessors:
            break
    for k in shape.reductions:
        if k != depth and shape.extent(k) > 1:
            made.tile[k] = 1
    made.tile[depth] = _TENSOR_DEPTH if shape.extent(depth) > _TENSOR_DEPTH else 0
    tiles = sum(0 < made.tile.get(k, 0) < shape.extent(k) for k in shape.reductions)
    reads = operands(shape.nest.point)
    made.stage = tuple(1 + tiles if load in pair else -1 for load in reads)
    made.buffers = 4 if tiles else 1
    return None if _fitting(shape, made, profile) is None else made


def _fitting(shape: Shape, made: OptionsDraft, profile: GpuProfile) -> ir.Program | None:
    """The nest with these options; None if panels do not fit into shared memory, or do not lie so
    that tensor cores can read them."""
    return alone(shape.program, shape.nest, made.options(), profile)


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
    made = _tiles(shape, [rest, list(common)], common[-1], held, threads)
    if any(made.chunk[k] < shape.extent(k) for k in rest):
        return None
    for k in rest:
        made.chunk[k] = 0
    if shape.pair is None:
        return made
    reads = operands(shape.nest.point)
    pair = reads[shape.pair[0]], reads[shape.pair[1]]
    return made if _staged(shape, made, pair, profile) is not None else None
