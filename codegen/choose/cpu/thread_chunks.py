"""Chunks of a nest that is alone: so many that all threads are busy to the end."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise

from tcl.codegen.choose.cpu.costs import TORN_LINE_CYCLES
from tcl.codegen.choose.cpu.matrix_unit import MatrixWay, matrix_way
from tcl.codegen.choose.cpu.register_tiles import TileChoice, fastest
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.fuse import refs
from tcl.grammar.sizes.varying import provably_divides

_SHARES = (4, 8, 2, 1)
"""Chunks per thread, the best ones first: with several, a thread that is held up has less to do. Of
dimensions along which memory lies in order, long pieces are better."""
_HEAVY = 8
"""A tensor counts if it has at least one part in so many of a nest's bytes."""
_LONG_PIECE = 16 << 10
"""Bytes of rows below which a longer piece counts for more than a second chunk per thread does: at
each piece's end, processors lose what they have read ahead."""
_NEARLY = 0.02
"""How much longer a thread may take than with the shortest of all."""


def balanced(
    program: ir.Program, nest: ir.Nest, dims: Sequence[str], device: CpuProfile
) -> tuple[int, ...]:
    """Chunks of the outermost dimension, or pair of them, that keeps all threads busy to the
    end, in whole register tiles, without much being copied for each of them."""
    extents = tuple(nest.dim(name).extent for name in dims)
    if device.threads == 1 or not extents:
        return extents
    work: MatrixWay | TileChoice | None = None
    if reuses(nest):
        work = fastest_way(program, nest, device)
    # Rows that are added up are read a piece of each at a time.
    piece = _LONG_PIECE // nest.point.type.itemsize if nest.reduces and work is None else 0
    in_order = in_lanes(program, nest) if work else _in_order(program, nest, device)
    found = list(_chunkings(program, nest, dims, in_order, piece, work, device.threads))
    least = min(takes for takes, _, _ in found)
    good = (c for c in found if c[0] <= least + _NEARLY)
    return min(good, key=lambda c: _SHARES.index(c[1]))[2]


def _chunkings(
    program: ir.Program,
    nest: ir.Nest,
    dims: Sequence[str],
    in_order: Container[str],
    piece: int,
    work: MatrixWay | TileChoice | None,
    threads: int,
) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    """What the thread with most work takes, chunks per thread that were asked for, and sizes.
    ``in_order``: the dimensions along which memory lies so, with pieces of so many points at
    least."""
    extents = tuple(nest.dim(name).extent for name in dims)
    units = [work.unit(dim) if work is not None else 1 for dim in dims]

    def whole_units(size: int, k: int) -> int:
        return min(extents[k], -(-size // units[k]) * units[k])

    for outer, parts, k in _divisions(units, threads):
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
            takes = _longest(extents, sizes, threads)
            if work is not None:
                counts = {d: -(-e // s) for d, e, s in zip(dims, extents, sizes, strict=True)}
                takes += work.extra_copy_share(counts)
                torn = torn_lines(program, nest, dict(zip(dims, sizes, strict=True)), threads)
                takes += torn * TORN_LINE_CYCLES / work.cycles
            yield takes, share, tuple(sizes)


def _divisions(units: Sequence[int], threads: int) -> Iterator[tuple[int | None, int, int]]:
    """Which dimensions are divided among threads: the last of each three. The first, if there is
    one, is divided into so many parts, or where that is 0 into single points."""
    yield from ((None, 0, k) for k in range(len(units)))
    for outer, k in pairwise(range(len(units))):
        if units[outer] == 1:
            yield outer, 0, k
        else:
            yield from ((outer, 1 << p, k) for p in range(1, threads.bit_length()))


def _longest(extents: Sequence[int], sizes: Sequence[int], threads: int) -> float:
    """The part of all work that the thread with most of it has, times the number of threads."""
    count = math.prod(-(-e // s) for e, s in zip(extents, sizes, strict=True))
    return -(-count // threads) * threads * math.prod(sizes) / math.prod(extents)


def torn_lines(program: ir.Program, nest: ir.Nest, sizes: Mapping[str, int], threads: int) -> int:
    """Lines of results of which two threads write a part, where chunks have such sizes: at the ends
    of what threads have of each row, if chunks or rows end within lines."""
    steps = dict(program.tensor(nest.point.target.tensor).layout.place(nest.point.target).terms)
    torn = 0
    for dim, size in sizes.items():
        step, parts = steps.get(dim, 0), -(-nest.dim(dim).extent // size)
        outer = {d: s for d, s in steps.items() if abs(s) > abs(step)}
        if parts > 1 and not all(provably_divides(LINE, s) for s in (size * step, *outer.values())):
            torn += (min(parts, threads) - 1) * math.prod(nest.dim(d).extent for d in outer)
    return torn


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
