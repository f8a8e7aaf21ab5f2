"""Chunks of a nest that is alone: so many that all threads are busy to the end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterator, Sequence

from tcl.codegen.choose.cpu import thread_worth
from tcl.codegen.choose.cpu.costs import (
    BOUNDARY_CYCLES,
    BOUNDARY_LINE_CYCLES,
    READ_AHEAD_LINES,
    SENT_LINE_CYCLES,
    TORN_LINE_CYCLES,
)
from tcl.codegen.choose.cpu.footprints import memory_rate
from tcl.codegen.choose.cpu.matrix_unit import MatrixWay, matrix_way
from tcl.codegen.choose.cpu.register_tiles import TileChoice, fastest
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.fuse import refs
from tcl.grammar.sizes.varying import representative

_SHARES = (4, 8, 2, 1)
"""Chunks per thread, the best ones first: with several, a thread that is held up has less to do. Of
dimensions along which memory lies in order, long pieces are better."""
_HEAVY = 8
"""A tensor counts if it has at least one part in so many of a nest's bytes."""
_LONG_PIECE = 16 << 10
"""Bytes of rows below which a longer piece counts for more than a second chunk per thread does: at
each piece's end, processors lose what they have read ahead."""
_STREAMED = 30.0
"""Cycles for each line of results below which cores read ahead into what others write: products
with a short sum take 50 and more."""
_ALONE = 2.0
"""Times as long as alone that several threads have to take by the model for one to be chosen."""
_NEARLY = 0.02
"""How much longer a thread may take than with the shortest of all."""


def balanced(
    program: ir.Program,
    nests: Sequence[ir.Nest],
    shared: Sequence[Sequence[str]],
    device: CpuProfile,
) -> tuple[int, ...]:
    """Chunks of nests that are fused, of dimensions that go together: of the outermost one, or a
    pair of them, so that all threads are busy to the end, in whole register tiles, without much
    being copied or taken from other cores for each of them. One for all points where that is
    faster."""
    leader = max(range(len(nests)), key=lambda k: nests[k].points)
    nest, dims = nests[leader], [d[leader] for d in shared]
    extents = tuple(nest.dim(name).extent for name in dims)
    if device.threads == 1 or not extents:
        return extents
    work: MatrixWay | TileChoice | None = None
    if reuses(nest):
        work = fastest_way(program, nest, device)
    # Rows that are added up are read a piece of each at a time.
    piece = _LONG_PIECE // nest.point.type.itemsize if nest.reduces and work is None else 0
    in_order = in_lanes(program, nest) if work else _in_order(program, nest, device)
    cycles = work.cycles if work else thread_worth.cycles(program, nest, device)
    units = [work.unit(d) if work else _whole_lines(program, nest, d) for d in dims]
    found = []
    chunkings = _chunkings(nest, dims, in_order, piece, units, device.threads)
    for share, sizes in itertools.chain([(1, extents)], chunkings):
        takes = _longest(extents, sizes, device.threads)
        if work is not None:
            counts = {d: -(-e // s) for d, e, s in zip(dims, extents, sizes, strict=True)}
            takes += work.extra_copy_share(counts)
        lost = boundary_cycles(program, nests, shared, sizes, device.threads, cycles)
        lost += _fetching_cycles(program, nests, shared, sizes, device)
        takes += device.threads * lost / max(cycles, 1.0)
        found.append((takes if sizes != extents else _ALONE * takes, share, sizes))
    least = min(takes for takes, _, _ in found)
    good = (c for c in found if c[0] <= least + _NEARLY)
    return min(good, key=lambda c: _SHARES.index(c[1]))[2]


def _whole_lines(program: ir.Program, nest: ir.Nest, dim: str) -> int:
    """Results along a dimension that chunks do not divide: those in a line of the cache, of results
    or of operands, where to compute them takes little."""
    if nest.reduces:
        return 1
    layouts = [(program.tensor(ref.tensor).layout, ref) for ref in refs(nest)]
    heavy = [(y, ref) for y, ref in layouts if y.elements * _HEAVY >= nest.points]
    in_row = [y.itemsize for y, ref in heavy if y.step(ref, dim) == 1]
    return max(1, LINE // min(in_row, default=LINE))


def _chunkings(
    nest: ir.Nest,
    dims: Sequence[str],
    in_order: Container[str],
    piece: int,
    units: Sequence[int],
    threads: int,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Chunks per thread that were asked for, and sizes, in whole ``units``. ``in_order``: the
    dimensions along which memory lies so, with pieces of so many points at least."""
    extents = tuple(nest.dim(name).extent for name in dims)

    def whole_units(size: int, k: int) -> int:
        return min(extents[k], -(-size // units[k]) * units[k])

    alone = [n == 1 and d not in in_order for d, n in zip(dims, units, strict=True)]
    for outer, parts, k in _divisions(alone, threads):
        sizes = list(extents)
        if outer is not None:
            sizes[outer] = whole_units(-(-extents[outer] // parts), outer) if parts else 1
        before = math.prod(-(-e // s) for e, s in zip(extents, sizes, strict=True))
        shares: tuple[int, ...] = _SHARES
        if dims[k] in in_order:
            short = extents[k] * before < _SHARES[2] * threads * piece
            shares = _SHARES[3:] if short else _SHARES[2:]
        for share in shares:
            sizes[k] = whole_units(-(-extents[k] * before // (threads * share)), k)
            yield share, tuple(sizes)


def _divisions(alone: Sequence[bool], threads: int) -> Iterator[tuple[int | None, int, int]]:
    """Which dimensions are divided among threads: the last of each three. The first, if there is
    one, is divided into so many parts, or where that is 0 into single points, if these may stand
    ``alone``."""
    yield from ((None, 0, k) for k in range(len(alone)))
    for outer, k in itertools.pairwise(range(len(alone))):
        if alone[outer]:
            yield outer, 0, k
        else:
            yield from ((outer, 1 << p, k) for p in range(1, threads.bit_length()))


def _longest(extents: Sequence[int], sizes: Sequence[int], threads: int) -> float:
    """The part of all work that the thread with most of it has, times the number of threads."""
    count = math.prod(-(-e // s) for e, s in zip(extents, sizes, strict=True))
    return -(-count // threads) * threads * math.prod(sizes) / math.prod(extents)


def boundary_cycles(
    program: ir.Program,
    nests: Sequence[ir.Nest],
    shared: Sequence[Sequence[str]],
    sizes: Sequence[int],
    threads: int,
    cycles: float,
) -> float:
    """Cycles of a call that are lost where memory that one thread writes ends and another's begins,
    if chunks have such sizes: each thread has a range of them, in their order. Where results take
    long (the nests ``cycles``), only lines that two threads write count."""
    lost = 0.0
    for position, nest in enumerate(nests):
        layout = program.tensor(nest.point.target.tensor).layout
        streams = cycles < _STREAMED * layout.bytes / LINE
        terms = layout.place(nest.point.target).terms
        steps = {d: abs(representative(s)) for d, s in terms}
        extents = {d.name: representative(d.extent) for d in nest.dims}
        before = 1
        for dims, size in zip(shared, sizes, strict=True):
            dim = dims[position]
            size = representative(size)
            parts = -(-extents[dim] // size)
            ranges = min(before * parts, threads)
            if parts > 1 and ranges > 1:
                step = steps.get(dim, 0)
                outer = [d for d, s in steps.items() if s > step]
                rows = math.prod(extents[d] for d in outer)
                count = ranges * rows - 1 if before < threads else (threads - 1) * rows
                lines = 1 + extents[dim] * step // (min(parts, threads) * LINE)
                if streams:
                    lost += count * min(BOUNDARY_CYCLES, BOUNDARY_LINE_CYCLES * lines)
                elif any(s % LINE for s in (size * step, *(steps[d] for d in outer))):
                    lost += (min(parts, threads) - 1) * rows * TORN_LINE_CYCLES / threads
            before *= parts
            extents[dim] = size
    return lost


def _fetching_cycles(
    program: ir.Program,
    nests: Sequence[ir.Nest],
    shared: Sequence[Sequence[str]],
    sizes: Sequence[int],
    device: CpuProfile,
) -> float:
    """Cycles in which a thread fetches lines that another one has fetched or made, if chunks have
    such sizes: ends of rows of memory, and results that a later nest reads along all of the
    dimension that threads divide. Of several, the outermost one counts."""
    threads, lead = device.threads, nests[0]
    divided = (k for k, n in enumerate(sizes) if n < lead.dim(shared[k][0]).extent)
    outermost = next(divided, None)
    if outermost is None:
        return 0.0
    dims = shared[outermost]
    extent = representative(lead.dim(dims[0]).extent)
    parts = min(threads, -(-extent // representative(sizes[outermost])))
    others = 1 - 1 / parts
    fetched = 0.0
    read = {r.tensor: (d, r) for n, d in zip(nests, dims, strict=True) for r in refs(n)[1:]}
    for dim, ref in read.values():
        layout = program.tensor(ref.tensor).layout
        if layout.bytes > device.l2_bytes and dim in layout.in_order(ref):
            ends = representative(layout.elements) / extent * READ_AHEAD_LINES * LINE
            fetched += min(ends, others * representative(layout.bytes)) / memory_rate(device)
    for nest, dim in zip(nests, dims, strict=True):
        tensor = nest.point.target.tensor
        layout = program.tensor(tensor).layout
        step = representative(layout.place(nest.point.target).coefficient(dim))
        later = program.nests[program.nests.index(nest) + 1 :]
        # What second caches do not hold comes from behind them anyway.
        kept = layout.bytes <= threads * device.l2_bytes
        if step and kept and any(_reduces_along(n, tensor, layout, step) for n in later):
            lines = representative(layout.bytes) / LINE
            fetched += others * lines / threads * SENT_LINE_CYCLES
    return fetched


def _reduces_along(nest: ir.Nest, tensor: str, layout: ir.Layout, step: int) -> bool:
    """Whether a nest, for one result, reads elements of a tensor that are such a step apart."""
    places = [layout.place(ref) for ref in refs(nest)[1:] if ref.tensor == tensor]
    dims = [d.name for d in nest.dims if d.reduction]
    steps = (abs(representative(p.coefficient(d))) for p in places for d in dims)
    return abs(step) in steps


def fastest_way(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> MatrixWay | TileChoice:
    """How the nest is done fastest: by the matrix unit, if the device has one that can, or in
    register tiles."""
    return matrix_way(program, nest, device) or fastest(program, nest, device)


def reuses(nest: ir.Nest) -> bool:
    """Whether an operand stays the same along a dimension of the results."""
    if nest.points == 0:
        return False  # nor anything else
    results = {d.name for d in nest.dims if not d.reduction and d.extent > 1}
    return nest.reduces and any(results - r.names and results & r.names for r in refs(nest)[1:])


def _in_order(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> set[str]:
    """The dimensions along which the nest goes through memory in order. Results of long rows are
    few beside what is added up, and count if the threads' second caches hold everything: in a few
    long chunks, each thread finds its own rows there in the next call."""
    layouts = [(ref, program.tensor(ref.tensor).layout) for ref in refs(nest)]
    sizes = [min(nest.points, y.elements) * y.itemsize for _, y in layouts]
    everything = sum(sizes)
    if everything <= device.threads * device.l2_bytes:
        return in_lanes(program, nest)
    large = (p for p, size in zip(layouts, sizes, strict=True) if size * _HEAVY >= everything)
    return {dim for ref, layout in large for dim in layout.in_order(ref)}


def in_lanes(program: ir.Program, nest: ir.Nest) -> set[str]:
    """The dimensions along which some access goes through memory in order."""
    found: set[str] = set()
    for ref in refs(nest):
        found.update(program.tensor(ref.tensor).layout.in_order(ref))
    return found
