"""Options for a nest that nobody has tuned, from extents, strides and the device.

A small model of a core chooses lanes and register tile together. Tiles and panels follow from
them and the caches.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from tcl.codegen.choose.cpu.access_costs import LARGEST, PAGE, OperandAccess
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.costs import CALL_CYCLES, STREAMS
from tcl.codegen.choose.cpu.footprints import (
    cached_bytes,
    columns_of,
    footprint,
    stay_near,
    surely_cached,
)
from tcl.codegen.choose.cpu.operation_costs import arithmetic_cycles
from tcl.codegen.choose.cpu.register_tiles import (
    TileChoice,
    fastest,
    of_whole_lines,
    other_ways,
    tiles_of,
)
from tcl.codegen.choose.cpu.tile_cycles import nest_cycles
from tcl.codegen.choose.cpu.unrolled_steps import steps_written_out
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import dims_of_values, operands, replaced
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.cpu.cut import cut_wholly
from tcl.codegen.passes.cpu.dot import depths
from tcl.codegen.passes.cpu.fusion_limits import OPERANDS
from tcl.codegen.passes.cpu.shared_values import computed_before, same_dims, with_lanes_last
from tcl.codegen.passes.cpu.skip import unguarded
from tcl.codegen.passes.cpu.stage import made_of, natural_level
from tcl.codegen.passes.fusion.groups import ALONE, PerResult, long_calls
from tcl.common.dataclass import replace
from tcl.common.errors import OptionsError

_NONE_PLANNED: Mapping[str, ir.Nest] = MappingProxyType({})
_WORTH_TILING = 32
"""Points of a dimension from which on tiles of it are tried."""
_WORTH_ORDER = 0.95
"""The part of a nest's time that is left, if another order of its loops is."""
_DEEP = 256
"""Points of a reduction after which it costs little to store partial results and to read them."""
_LONG_ROW = PAGE // 2
"""Bytes of a row of results, at least, for rows to be done one after the other."""
_LONG_PIECE = 10
"""Vectors of a piece of rows, where registers hold what is kept for all results of it ..."""
_SHORT_PIECE = 4
"""... or where functions, which need some of these, are called, or lanes lie apart in memory."""
_PAGES = 64
"""Pages of 4 KB that the first TLB knows, from Haswell on ("Intel 64 and IA-32 Architectures
Optimization Reference Manual", cache and TLB parameters); Zen has as many or some more."""
_WIDE = 4
"""Columns of register tiles from which on reading images again counts for little."""
_NEAR_STEPS = 8
"""Points of a reduction that a part of it in the first cache has at least: with fewer, partial
results take longer than what is near saves."""


def heuristic(
    program: ir.Program,
    nest: ir.Nest,
    device: CpuProfile,
    fused: PerResult = ALONE,
    planned: Mapping[str, ir.Nest] = _NONE_PLANNED,
    other: int = 0,
) -> NestOptions:
    """Choices for an untiled nest; they can always be applied. ``planned``: nests before it in its
    chunks, by name, with their loops. ``other``: with the lanes and register tile of that one of
    ``other_ways``, counted from 1; ``OptionsError`` if there are fewer."""
    if nest.sequential or nest.points == 0:
        return PLAIN
    program, nest, asked = *_with_kept_values(program, nest, planned), nest
    if fused.computed:  # epilogues read operands, too, and points next to each other the same ones
        (first, *others), point = fused.computed, nest.point
        lets = (*point.lets, replace(first, value=point.value), *others)
        result = ir.Variable(first.name, point.value.type)
        nest = replace(nest, point=replace(point, lets=lets, value=result))
    plain = nest.point.type.is_float and nest.point.type.compute == nest.point.type
    if plain and cut_wholly(nest):
        nest = replace(nest, point=unguarded(nest.point))  # but at the ends of loops
    found, shared = _fastest_in_order(program, nest, device, fused)
    if other:
        if len(ways := other_ways(program, nest, device, fused)) < other:
            raise OptionsError(f"nest {nest.name} has no more ways than {len(ways)}")
        found, shared = ways[other - 1], ()
    core, lane, sizes = found.core, found.lane, found.sizes
    alone = sizes.keys() == {lane} and not core.compacted  # each tile goes through the lists again
    if lane is not None and alone and not nest.dim(lane).reduction:
        sizes = {lane: _vectors(core, lane, sizes[lane])}
    steps = steps_written_out(core, lane, sizes)
    if nest.point != core.nest.point and not core.compacted:
        # LLVM looks at conditions once before a loop, and at each of the points written out.
        steps = {d: n for d, n in steps.items() if n == nest.dim(d).extent}
    written_out = {**sizes, **steps}
    if not sizes and (short := core.short_loop(lane)) is not None:
        written_out[short.name] = short.extent
    register = tuple(written_out.get(d.name, 0) for d in nest.dims)
    vectorize = (-1, 1)
    if lane is not None:
        position = next(k for k, d in enumerate(nest.dims) if d.name == lane)
        # Wide vectors of few numbers cost more than narrow ones: masks, and lines of the cache.
        vectorize = (position, min(core.lanes, 1 << (nest.dims[position].extent - 1).bit_length()))
    if not nest.reduces:
        return replace(
            PLAIN,
            vectorize=vectorize,
            register=register,
            inner_order=shared
            or _transposed_order(core, lane, sizes)
            or _put_together_once(core, lane),
        )
    if fused.points and _share_no_pass(program, nest, found, fused):
        return heuristic(program, asked, device, PerResult(calls=fused.calls), planned)
    tile, order, inner = _blocking(core, lane, sizes)
    copied = _panels(core, lane, sizes, tile, order)
    if not (copied or _parts_of_columns(core, lane, sizes, tile)):
        tile = order = inner = ()  # panels one after the other were their only purpose
    stage = _of_operands(asked, core.nest, copied)
    dot = tuple(core.group(d.name) if core.group(d.name) > 1 else 0 for d in nest.dims)
    return replace(
        PLAIN,
        tile=tuple(size * core.group(d.name) for d, size in zip(nest.dims, tile, strict=False)),
        dot=dot if any(dot) else (),
        order=order,
        inner_order=inner,
        vectorize=vectorize,
        register=register,
        stage=stage,
        skip=bool(core.compacted),
    )


def _share_no_pass(program: ir.Program, nest: ir.Nest, found: TileChoice, fused: PerResult) -> bool:
    """Whether sums that one pass could make, best so as ``found``, take less one by one: where
    each has panels of its own, or instructions that add up several products at once. On Zen 4, two
    products of bytes take .29 of the time so."""
    core = found.core
    if found.lane is None:
        return True  # nests share no pass without lanes
    if {(p.op, p.type) for p in (nest.point, *fused.points)} != {("+", nest.point.type)}:
        return False
    if nest.point.type.is_float:
        return any(core.staged(access, found.lane, found.sizes) for access in core.reads)
    if not all(depths(replace(nest, point=p), core.device) for p in (nest.point, *fused.points)):
        return False
    alone = fastest(program, nest, core.device, PerResult(calls=fused.calls))
    return alone.cycles * (1 + len(fused.points)) < found.cycles


def _fastest_in_order(
    program: ir.Program, nest: ir.Nest, device: CpuProfile, fused: PerResult
) -> tuple[TileChoice, tuple[int, ...]]:
    """As ``fastest``, and the order of loops, () if that is the dimensions': where nothing is
    reduced, functions of values that only some dimensions decide may be called before the loops
    over the others."""
    best, order = fastest(program, nest, device, fused), tuple[int, ...]()
    moving = {d.name for d in nest.dims if d.extent > 1}
    costs = {} if nest.reduces else arithmetic_cycles(nest)
    called = dict.fromkeys(dims & moving for dims, each in costs.items() if each >= CALL_CYCLES)
    for dims in called:
        before = [d.name in dims for d in nest.dims if d.name in moving]
        if not dims or before == sorted(before, reverse=True):
            continue
        places = sorted(range(len(nest.dims)), key=lambda k: nest.dims[k].name not in dims)
        ordered = replace(nest, dims=tuple(nest.dims[k] for k in places))
        found = fastest(program, ordered, device, fused)
        if found.cycles < _WORTH_ORDER * best.cycles and _keeps_lines(found, dims):
            best, order = found, tuple(places)
    return best, order


def _keeps_lines(found: TileChoice, outside: Collection[str]) -> bool:
    """Whether the second cache holds what a nest touches, and the first one the lines that the
    loops over all but some dimensions come to, of which the next points have the rest."""
    core = found.core
    accesses = (*core.reads, core.target)
    touched = {d.name: d.extent for d in core.nest.dims if d.name not in outside}
    lines = footprint(accesses, {**touched, **{d: found.unit(d) for d in outside}})
    whole = sum(a.elements * a.itemsize for a in accesses)
    return lines <= core.device.l1_bytes // 2 and whole <= core.device.l2_bytes


def panels_within(
    program: ir.Program, nest: ir.Nest, device: CpuProfile, loops: NestOptions
) -> tuple[int, ...]:
    """Which operands of a nest are copied, and where, that has the loops of another one: none where
    lanes lie side by side in all of them, as what has panels of its own shares no pass."""
    position, lanes = loops.vectorize or (-1, 1)
    if not nest.reduces or lanes == 1 or any(loops.dot or ()):
        return ()
    lane = nest.dims[position].name
    tile = zip(nest.dims, loops.register or (), strict=False)
    sizes = {d.name: size for d, size in tile if size and not d.reduction}
    core = Core.read(program, nest, device)
    if not any(core.staged(access, lane, sizes) for access in core.reads):
        return ()
    copied = _panels(core, lane, sizes, loops.tile or (), loops.order or ())
    return _of_operands(nest, core.nest, copied)


def _of_operands(nest: ir.Nest, priced: ir.Nest, levels: tuple[int, ...]) -> tuple[int, ...]:
    """For the operands of a nest, the levels of those that are also what was ``priced``."""
    known = dict(zip(operands(priced.point), levels, strict=False))
    return tuple(known.get(load, -1) for load in operands(nest.point)) if levels else ()


def _with_kept_values(
    program: ir.Program, nest: ir.Nest, planned: Mapping[str, ir.Nest]
) -> tuple[ir.Program, ir.Nest]:
    """The nest as it reads what one before it in its chunks computes, and keeps for it: lanes share
    calls among more results elsewhere. What is an instruction takes as long as to read it."""
    tensors, point = list(program.tensors), nest.point
    for k, (value, maker) in enumerate(computed_before(program, program.nest(nest.name))):
        if not long_calls(value):
            continue
        named = dims_of_values([value])
        own = {its: name for name, its in same_dims(maker, program.nest(nest.name)).items()}
        ordered = with_lanes_last(planned.get(maker.name, maker), maker.dims)
        dims = [nest.dim(own[d.name]) for d in ordered if own.get(d.name) in named]
        layout = ir.contiguous(value.type, (d.extent for d in dims), (d.first for d in dims))
        tensors.append(ir.Tensor(f"{nest.name}.kept{k}", ir.Role.SCRATCH, layout, private=True))
        place = ir.TensorRef(tensors[-1].name, tuple(ir.Affine.variable(d.name) for d in dims))
        kept = ir.Load(place, value.type, total=True)
        point = replace(point, value=replaced(point.value, value, kept))
    return replace(program, tensors=tuple(tensors)), replace(nest, point=point)


def _transposed_order(core: Core, lane: str | None, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The order of loops where vectors are transposed: the dimensions of the lanes and of the rows
    innermost, so that lines of which a tile touches a part are done before the others move on; the
    rows inside of the lanes where the first cache loses these lines while the lanes move on. On
    Zen 4, bytes of 2100 x 1300 take .61 of the time so. As memory lies where the first cache loses
    no lines before the next tile comes: integers (8, 12, H, W) to results (H, W, 8, 12) take .87.
    """
    accesses = (*core.reads, core.target)
    rows = [
        d for d in sizes if d != lane and any(a.transposed(d, lane, core.lanes) for a in accesses)
    ]
    if not rows:
        return ()
    dims = core.nest.dims
    outer = next(k for k, d in enumerate(dims) if d.name == lane or d.name in rows)
    width = sizes.get(dims[outer].name, 1) * (core.lanes if dims[outer].name == lane else 1)
    touched = {dims[outer].name: width, **{d.name: d.extent for d in dims[outer + 1 :]}}
    if footprint(accesses, touched) <= core.device.l1_bytes // 2:
        return ()
    lost = core.nest.dim(lane).extent * LINE > core.device.l1_bytes if lane is not None else False
    # Where rows of results end within lines, the next ones have the rest to write: these lines have
    # to stay in the second cache. On Zen 4, 2000 x 3000 floats take 1.6 times as long otherwise.
    written = math.prod(core.nest.dim(d).extent for d in rows) * LINE
    ragged = any(core.target.strides.get(d, 0) % LINE for d in rows)
    lost = lost and not (ragged and 8 * written > core.device.l2_bytes)
    inside = [lane, *rows]
    ordered = sorted(
        range(len(dims)),
        key=lambda k: (dims[k].name in inside) + (lost and dims[k].name in rows),
    )
    return _unless_natural(tuple(ordered))


def _put_together_once(core: Core, lane: str | None) -> tuple[int, ...]:
    """The order of loops where several vectors are put together from elements that lie apart, and
    are the same for all rows: the rows innermost, as LLVM then does that once, if the second cache
    keeps the lines of results that the next vectors write the rest of. On Zen 3, distances between
    all of two sets of 100 to 600 points in space take .6 to .9 of the time so; of 3000 points 1.5
    times as long, and of pairs, which one instruction parts, 1.0 to 1.2 times."""
    if lane is None:
        return ()
    apart = [a for a in core.reads if a.is_apart(lane) and abs(a.strides[lane]) > 2 * a.itemsize]
    rows = {d.name: d.extent for d in core.nest.dims if d.extent > 1 and d.name != lane}
    if len(apart) < 2 or any(lane in a.strides and a.strides.keys() & rows for a in core.reads):
        return ()
    lines = footprint([core.target], {**rows, lane: core.lanes})
    written = core.target.elements * core.target.itemsize
    if 2 * lines > core.device.l2_bytes or written >= core.device.streamed_from:
        return ()
    dims = core.nest.dims
    return _unless_natural(tuple(sorted(range(len(dims)), key=lambda k: dims[k].name in rows)))


def _vectors(core: Core, lane: str, most: int) -> int:
    """Vectors of a register tile that has no rows, where ``most`` are as quick as any: the better
    power of two next to it unless all tiles are whole or there is but one, as lines of the cache
    are fetched in pairs, or these are a period of what lanes take. Pieces of rows, which are read
    once for several reductions, are long, and of one length: on Zen 4, minima and maxima of columns
    take .5 to .97 of the time with four vectors, compared with two, and those that the second cache
    does not hold .7 to .86 with 8 to 10 instead."""
    extent = core.nest.dim(lane).extent
    if core.fused.sums > 1 and core.nest.reduces and not _waits_for_pieces(core):
        in_order = all(a.strides.get(lane, 0) in (0, a.itemsize) for a in core.reads)
        room = (core.device.vector_registers - OPERANDS) // core.fused.registers
        longest = min(room, _LONG_PIECE if in_order and not core.called else _SHORT_PIECE)
        vectors = -(-extent // core.lanes)
        pieces = -(-vectors // max(1, longest))
        return max(most, -(-vectors // pieces))
    whole = extent % (most * core.lanes) == 0 or extent <= most * core.lanes
    whole = whole or any(a.has_period(lane, core.lanes, most) for a in core.reads)
    fewer = 1 << (most.bit_length() - 1)
    if not whole and fewer < most:
        tiles = [t for t in ({lane: fewer}, {lane: 2 * fewer}) if t in tiles_of(core, lane, ())]
        most = min(tiles, key=lambda tile: nest_cycles(core, lane, tile))[lane]
    return of_whole_lines(core, lane, most)


def _blocking(
    core: Core, lane: str | None, sizes: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Tile, order of tiles, order inside of a tile."""
    nest, device = core.nest, core.device
    rank = range(len(nest.dims))
    rows = [
        k
        for k in rank
        if nest.dims[k].name != lane
        and (nest.dims[k].name in sizes or nest.dims[k].name in core.compacted)
        and not nest.dims[k].reduction
    ]
    lanes = [k for k in rank if nest.dims[k].name == lane and not nest.dims[k].reduction]
    reductions = [k for k in rank if nest.dims[k].reduction]
    others = [k for k in rank if k not in (*rows, *lanes, *reductions)]
    order = (*others, *lanes, *reductions, *rows)
    inner = (*others, *lanes, *rows, *reductions)
    if lanes and not rows:
        return _streamed(core, sizes, reductions, others, lanes[0])
    if not rows or lane is None:
        return (), (), _unless_natural(inner)
    if columns := columns_of(core, lane, sizes):
        if stay_near(core, columns):
            return (), (), ()
        moving = (k for k in others if nest.dims[k].extent > 1)
        apart = {k: n for k in moving if (n := _in_a_line(columns, nest.dims[k].name))}
        return _by_columns(core, sizes, (lanes[0], reductions, apart), order, inner)
    columns = [a for a in core.reads if lane in a.strides and a.whole > device.l1_bytes // 2]
    once = all(core.results.keys() <= a.strides.keys() for a in columns)
    if lanes and once and not core.compacted:
        return (), (), ()  # no column that the first cache does not keep is read again
    shared = (core.again(a, lane, sizes) > 1 or a.is_window(core.dims) for a in columns)
    if lanes and _long_rows(core, lane) and not any(shared):
        # No register tile reads what another one does: as if each result had its own.
        return _streamed(core, sizes, reductions, sorted((*others, *rows)), lanes[0])
    tile = [0] * len(nest.dims)
    depth = math.prod(nest.dims[k].extent for k in reductions)
    itemsize = core.target.itemsize
    if lanes and not core.compacted:  # results of lists never wait in memory
        # Rows that lanes read side by side, each its own, are not torn where others can be.
        rows_of_lanes = [a for a in core.reads if a.strides.get(lane, 0) > a.itemsize]
        torn = {d for a in rows_of_lanes for d, step in a.strides.items() if step == a.itemsize}
        widest = max(reductions, key=lambda k: (nest.dims[k].name not in torn, nest.dims[k].extent))
        tile[widest] = _depth(core, lane, sizes, nest.dims[widest].extent, depth)
        depth = depth // nest.dims[widest].extent * (tile[widest] or nest.dims[widest].extent)
    depth = max(1, math.ceil(depth * core.within[1]))  # the others are left out
    # All columns of one such depth, and the rows that meet them, stay in the second.
    for k, share in zip((*lanes, *rows), (2, 16, 16), strict=False):
        most = max(64, device.l2_bytes // share // (depth * itemsize))
        if nest.dims[k].extent > most and nest.dims[k].extent > _WORTH_TILING:
            tile[k] = 1 << (most.bit_length() - 1)
    if not any(tile) and lanes and not core.compacted:
        tile[widest] = _near_depth(core, lane, sizes, nest.dims[widest].name)
        order = inner = tuple(rank)  # rows as memory lies
    if not any(tile):
        # Nothing stays in a cache for longer than a row: as memory lies.
        return (), (), ()
    return tuple(tile), _unless_natural(order), _unless_natural(inner)


def _near_depth(core: Core, lane: str, sizes: Mapping[str, int], widest: str) -> int:
    """The points of the longest reduction, planes of an operand, for which the first cache keeps
    what register tiles side by side read of these through a window, and what they multiply it by;
    0 for all. On a Cascade Lake, convolutions of 3 x 3 with lanes along rows take .7 to .8."""
    windows = any(
        lane in a.strides and a.strides.get(widest, 0) >= LINE and a.is_window(core.dims)
        for a in core.reads
    )
    inside = {d.name: d.extent for d in core.reduced if d.name != widest}
    point = core.nest.point
    if not windows or not inside or any(a.scattered for a in core.reads):
        return 0
    if point.type.compute != point.type:  # partial results would be rounded
        return 0
    inside |= {d: n * (core.lanes if d == lane else 1) for d, n in sizes.items()}
    extent = core.dims[widest].extent
    depth = 1 << (extent.bit_length() - 1)
    while footprint(core.reads, {**inside, widest: depth}) > core.device.l1_bytes // 2 and depth:
        depth //= 2
    return depth if extent > depth >= _NEAR_STEPS else 0


def _depth(core: Core, lane: str, sizes: Mapping[str, int], extent: int, depth: int) -> int:
    """The points per tile of the longest reduction; ``depth`` are those of all of them.

    What the register tiles of a column read again and again comes from the first cache, or just
    behind it, if not all columns stay in the second: more depth means fewer passes over the
    results.
    """
    nest, device = core.nest, core.device
    if nest.point.type.compute != nest.point.type:
        return 0
    width = sizes.get(lane, 1) * core.lanes * core.target.itemsize
    near = all(core.near(a, lane) for a in core.reads if lane in a.strides)
    cache = device.l2_bytes // 2 if near else device.l1_bytes * 3 // 2
    room = max(16, cache // (depth // extent * width))
    return 1 << (room.bit_length() - 1) if extent > room else 0


def _in_a_line(columns: Iterable[OperandAccess], dim: str) -> int:
    """Points of a dimension whose elements of an operand lie in one cache line, at most; 0 where no
    operand moves along it."""
    steps = (abs(a.strides[dim]) for a in columns if a.strides.get(dim))
    return max((max(1, LINE // step) for step in steps), default=0)


def _by_columns(
    core: Core,
    sizes: Mapping[str, int],
    dims: tuple[int, list[int], Mapping[int, int]],
    order: tuple[int, ...],
    inner: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """As ``_blocking``, where the operand with the lanes is copied: one column of register tiles
    at a time, as deep as the second cache has room for, and then all rows; with few rows, as deep
    as it has room for these, too."""
    nest, (lane, reductions, apart), near = core.nest, dims, core.device.l2_bytes
    tile = [0] * len(nest.dims)
    width = sizes.get(nest.dims[lane].name, 1) * core.lanes
    if nest.dims[lane].extent > width:
        tile[lane] = width
    itemsize = nest.point.type.compute.itemsize
    depth = math.prod(nest.dims[k].extent for k in reductions)
    widest = max(reductions, key=lambda k: nest.dims[k].extent)
    rest = depth // nest.dims[widest].extent
    each = rest * width * itemsize
    room = max(16, near // 2 // each)
    rows = math.prod(n for d, n in core.results.items() if d in sizes and d != nest.dims[lane].name)
    beside = each + rest * rows * itemsize
    # Dot products wait for columns from behind the first cache: on Zen 4, convolutions of bytes of
    # which it keeps one column take .78 to .95 of the time of all columns in turns.
    nearest = core.products is not None and each * nest.dims[widest].extent <= core.device.l1_bytes
    if _through_windows(core, nest.dims[lane].name) and rest > 1 and not (apart or nearest):
        return _columns_of_windows(core, lane, width, widest), (), ()
    if beside * nest.dims[widest].extent > near and near // 2 // beside >= _DEEP:
        room = min(room, near // 2 // beside)  # or all rows would push the panel out
    whole = core.compacted or nest.point.type.compute != nest.point.type
    if nest.dims[widest].extent > room and not whole:
        tile[widest] = 1 << (room.bit_length() - 1)
    panel = (tile[widest] or nest.dims[widest].extent) * rest * itemsize
    # A panel for each point of the other dimensions that move the operand, one after the other, or
    # for those whose elements a line has: it would be fetched again for each of them. On a Cascade
    # Lake, products of matrices with the batch behind rows and columns take .79.
    for k, points in apart.items():
        points = max(1, min(points, near // 2 // (panel * width)))
        if nest.dims[k].extent > points:
            tile[k] = points
    if not any(tile):
        return (), (), ()
    if apart and not whole and (far := _pages_first(core, reductions, apart)):
        tile[far[0]] = min(far[1], tile[far[0]] or far[1])
        order = (far[0], *(k for k in order if k != far[0]))
    if tile[lane] and (columns := _columns_of_long_rows(core, nest.dims[lane].name, width, panel)):
        tile[lane] = columns * width
        inner = (*(k for k in inner if k not in (lane, *reductions)), lane, *reductions)
    return tuple(tile), _unless_natural(order), _unless_natural(inner)


def _through_windows(core: Core, lane: str) -> bool:
    """Whether rows share what they read."""
    return any(lane not in a.strides and a.is_window(core.dims) for a in core.reads)


def _columns_of_windows(core: Core, lane: int, width: int, widest: int) -> tuple[int, ...]:
    """The tile where rows share what they read through a window: as many columns of register tiles,
    each so wide, as the second cache has room for beside an image, so that little goes through the
    images again. Where these would be few, parts of the longest reduction make room for more. On
    Zen 3, convolutions of 3 x 3 with 16 to 256 channels take .56 to .9 of the time of one column
    after the other, for parts of the channels that the first cache keeps."""
    nest, tile = core.nest, [0] * len(core.nest.dims)
    columns, depth = nest.dims[lane].extent, nest.dims[widest].extent
    rest = math.prod(d.extent for d in core.reduced) // depth
    room = core.device.l2_bytes * 5 // 8 // (rest * nest.point.type.compute.itemsize)
    pieces = -(-columns // max(_WIDE * width, room // depth // width * width))
    if pieces > 1:
        tile[lane] = -(-columns // (pieces * width)) * width
    steps = room // (tile[lane] or columns)
    whole = core.compacted or nest.point.type.compute != nest.point.type
    if depth > steps and not whole:
        tile[widest] = 1 << (max(16, steps).bit_length() - 1)
    return tuple(tile) if any(tile) else ()


def _pages_first(
    core: Core, reductions: Iterable[int], apart: Iterable[int]
) -> tuple[int, int] | None:
    """The reduction that goes outside of all other loops, and its points in a tile, where pieces of
    rows come from behind the second cache, and all of them that a panel has lie in more pages than
    the first TLB knows: the same pages have the pieces of the next panels, while the second cache
    keeps partial results. On a Cascade Lake, contractions and products with a batch that read 12 to
    19 MB take .3 to .75 of the time so, 4 to 6 MB .55 to .8; on Zen 4, where the last cache has
    2 MB, 1.25 times as long."""
    target, dims = core.target, core.nest.dims
    if target.elements * target.itemsize > core.device.l2_bytes // 2:
        return None
    near = cached_bytes(core.device) if core.device.reads_ahead else 2 * core.device.l2_bytes
    for access in core.reads:
        pages = [k for k in reductions if access.strides.get(dims[k].name, 0) >= PAGE]
        beside = [k for k in apart if 0 < access.strides.get(dims[k].name, 0) < PAGE]
        if not pages or not beside or access.whole <= near:
            continue
        first = max(pages, key=lambda k: access.strides[dims[k].name])
        rest = math.prod(dims[k].extent for k in pages if k != first)
        points = max(1, _PAGES // rest)
        if dims[first].extent > points:
            return first, points
    return None


def _columns_of_long_rows(core: Core, lane: str, width: int, column: int) -> int:
    """How many columns of register tiles, each so wide, are done row by row, so that caches that
    do not hold the results get pieces of a page of each row, and not of many rows in turns; 0 if
    one after the other. ``column``: bytes of the panel along one point. On a Cascade Lake, products
    of 8, 16 and 64 numbers with 2 to 7 MB of results take .65, .44 and .80 of the time so, and .19
    to .69 where rows do not begin on lines; with 1.5 MB they take as long."""
    target, l2 = core.target, core.device.l2_bytes
    if target.whole <= 2 * l2 or target.strides.get(lane) != target.itemsize or core.compacted:
        return 0
    most = min(PAGE // target.itemsize, l2 // 4 // column, core.nest.dim(lane).extent)
    return most // width if most * target.itemsize >= _LONG_ROW else 0


def _streamed(
    core: Core,
    sizes: Mapping[str, int],
    reductions: list[int],
    others: list[int],
    lane: int,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """As ``_blocking``, where nothing is read twice: the outermost reduction a few points at a
    time, so that memory is read in order and partial results are read and written seldom.

    Where data decides which rows are read, there is no order to keep: as many of them at a time as
    the first cache holds until all of their vectors were read.
    """
    nest, first = core.nest, reductions[0]
    inner = _unless_natural((*others, lane, *reductions))
    if core.fused.sums > 1 and not _waits_for_pieces(core):
        # Partial results in memory would keep the other reductions from being fused: in pieces of
        # rows all of them take one pass.
        return (), (), inner
    most = steps = STREAMS
    if any(a.scattered for a in core.reads):
        moving = nest.dims[lane]
        row = sum(moving.extent * a.strides.get(moving.name, 0) for a in core.reads)
        most = steps = max(STREAMS, core.device.l1_bytes // 2 // max(1, row))
    elif _keeps_more_rows(core, nest.dims[first].name, nest.dims[lane].name):
        steps = 2 * STREAMS
    if nest.dims[first].extent <= 2 * most or nest.point.type.compute != nest.point.type:
        return (), (), inner
    if any(a.is_window(core.dims) for a in core.reads):
        return (), (), inner  # its steps read the same lines
    along, rows = nest.dims[lane], nest.dims[first].name
    if not any(
        {along.name, rows} <= {*a.moving, *a.moved}
        and not a.transposed(rows, along.name, core.lanes)
        for a in core.reads
    ):
        # There are no rows, as each point reads the same for all steps; or lanes lie across them.
        return (), (), inner
    if core.lanes * sizes.get(along.name, 1) >= along.extent:
        return (), (), inner  # a register tile reads whole rows, and no partial result waits
    tile = [0] * len(nest.dims)
    tile[first] = max(1, steps // _rows_of_a_step(core, along.name, reductions[1:]))
    return tuple(tile), _unless_natural((*reductions, *others, lane)), inner


def _long_rows(core: Core, lane: str) -> list[OperandAccess]:
    """The operands of which long rows come from behind the second cache, with the lanes along them.
    Chunks that have 768 bytes of each row take 1.1 times as long in another order on Zen 4."""
    least = _LONG_ROW / core.dims[lane].extent
    return [
        a
        for a in core.reads
        if a.strides.get(lane) == a.itemsize >= least and a.whole > core.device.l2_bytes
    ]


def _rows_of_a_step(core: Core, lane: str, inside: Sequence[int]) -> int:
    """Such rows that one step of the outermost reduction goes through, as the ``inside`` ones do:
    on Zen 4, sums of 1024 x 8 rows of 2.5 KB take .7 of the time with one step, compared with 8 or
    16. From the second cache, one takes up to 1.07 times as long."""
    dims = [core.nest.dims[k] for k in inside]
    each = (
        math.prod(d.extent for d in dims if d.name in a.strides) for a in _long_rows(core, lane)
    )
    return max(each, default=1)


def _waits_for_pieces(core: Core) -> bool:
    """Whether reading an operand once in pieces of its rows takes longer than reading all of it in
    order for each reduction: where the last cache barely keeps it. On Zen 4, sums of columns of
    12 MB take .8 of the time in order, of 16 MB .45, minima and maxima of 21 MB .6; sums of 8 MB
    take 1.6 times as long, minima and maxima of 2 to 8 MB 1.4 times."""
    return any(a.whole > surely_cached(core.device) for a in core.reads)


def _keeps_more_rows(core: Core, row: str, lane: str) -> bool:
    """Whether twice as many rows side by side pay: those that come from a cache, and whose lines
    lie in different places of the first one. On Zen 4, these take .83 to .96 of the time, rows from
    memory 1.1 and rows of 4 KB 1.2 to 1.7 times as long."""
    rows = [a for a in core.reads if lane in a.strides]
    places = PAGE // math.gcd(PAGE, *(a.strides.get(row, 0) for a in rows))
    kept = all(a.whole <= surely_cached(core.device) for a in rows)
    return kept and places >= 2 * STREAMS


def _unless_natural(order: tuple[int, ...]) -> tuple[int, ...]:
    return () if order == tuple(sorted(order)) else order


def _calls_for_one(core: Core, load: ir.Load, access: OperandAccess) -> bool:
    """Whether the nest calls functions of an operand that all lanes share, for one element at a
    time: for a panel, they are called for vectors."""
    called = long_calls(made_of(core.nest.point, load))
    return bool(called) and core.lanes <= access.elements <= LARGEST


def _panels(
    core: Core,
    lane: str | None,
    sizes: Mapping[str, int],
    tile: tuple[int, ...],
    order: tuple[int, ...],
) -> tuple[int, ...]:
    """Stage operands that are vectors where they are read by many rows."""
    nest = core.nest
    if lane is None or nest.dim(lane).reduction:
        return ()
    tiles = [nest.dims[k].name for k in order or range(len(nest.dims)) if k < len(tile) and tile[k]]
    columns = columns_of(core, lane, sizes)
    parts = _parts_of_columns(core, lane, sizes, tile) or (
        not tile and columns and not stay_near(core, columns) and _through_windows(core, lane)
    )
    levels = []
    # What is read for other sums alone comes after the operands.
    for load, access in zip(operands(nest.point), core.reads, strict=False):
        far = core.staged(access, lane, sizes)
        converted = core.products is None and load.type.compute != load.type
        worth = core.worth_staging(access, lane, sizes, converted)
        # A vector as long as a line takes two of them, if the array does not begin with a line.
        torn = (
            core.lanes * access.itemsize >= LINE
            and access.strides.get(lane) == access.itemsize
            and core.in_turns(access, lane, sizes) > core.device.l1_bytes
        )
        if access.overlapping:
            # Pairs of bytes that an instruction takes as pairs of longer integers, too: on Zen 3,
            # convolutions of int8 with 40 to 128 channels take .68 to .8 of the time.
            wider = converted or (lane not in access.strides and core.widens(load))
            levels.append(0 if wider and core.worth_widening(access, lane, sizes) else -1)
        elif lane not in access.strides:
            # All of it, as each column of tiles reads it: converted once, if it has to be.
            called = access.stageable and _calls_for_one(core, load, access)
            levels.append(0 if far or called or (worth and converted) else -1)
        elif far or (worth and (parts or access.has_gaps or converted or torn)):
            before = _rows_far_apart(core, lane, sizes, access)
            levels.append(0 if before else natural_level(tiles, load.ref))
        else:
            levels.append(-1)
    return tuple(levels) if any(level >= 0 for level in levels) else ()


def _parts_of_columns(
    core: Core, lane: str | None, sizes: Mapping[str, int], tile: tuple[int, ...]
) -> bool:
    """Whether tiles part columns, rows or steps, and not only what has panels of its own."""
    pairs = zip(core.nest.dims, tile, strict=False)
    return any(size and (d.reduction or d.name == lane or d.name in sizes) for d, size in pairs)


def _rows_far_apart(core: Core, lane: str, sizes: Mapping[str, int], access: OperandAccess) -> bool:
    """Whether all of an operand is best copied before all loops, row by row, as it comes from
    behind the second cache, and the rows of a column are farther apart than processors that do not
    read on from page to page see: 2 KB (Intel's optimisation manual, "Data Prefetching"). On a
    Cascade Lake, to copy columns of 64 took an eighth of the time of a product of 1024 x 1024
    floats, and a twelfth with 600 to 1001 columns; with 300 and 400 it makes no difference. Images
    of a batch that the second cache holds take 1.3 times as long if all are copied before."""
    if core.device.reads_ahead or access.strides.get(lane) != access.itemsize:
        return False
    rows = [abs(access.strides[d.name]) for d in core.reduced if d.name in access.strides]
    batch = math.prod(n for d, n in core.results.items() if d in access.strides and d not in sizes)
    far = access.elements * access.itemsize // batch > core.device.l2_bytes
    return far and access.elements <= LARGEST and min(rows, default=0) > PAGE // 2
