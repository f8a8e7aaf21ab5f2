"""The loops of a scatter on a CPU: what threads share, what runs in lanes.

Each element gets its terms in the same order whatever is chosen here: points of reductions stay in
order, and results are shared by the dimensions that no data decide.
"""

from __future__ import annotations

from tcl.codegen.choose.cpu.costs import STREAMS
from tcl.codegen.choose.cpu.lanes import lanes_within
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, values_of
from tcl.codegen.passes.scatter import side_by_side
from tcl.grammar.sizes.varying import clipped, representative

_AT_ONCE = 8
"""Updates that are written out."""
_CHUNKS = 4
"""Chunks of each thread, of what takes nothing to divide."""


def with_loops(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> ir.Nest:
    """A scatter that has been taken apart, with its loops: over chunks, over results at places of
    their own, over reductions, and over results side by side."""
    beside = side_by_side(nest)
    sizes = _chunks(program, nest, beside, device) if device.threads > 1 else {}
    lane, lanes = _lanes(program, nest, beside, device)
    apart = _in_rows_apart(program, nest, beside - {lane})
    chunks: list[ir.Loop] = []
    outer: list[ir.Loop] = []
    reduced: list[ir.Loop] = []
    inner: list[ir.Loop] = []
    last: list[ir.Loop] = []
    for d in nest.dims:
        points = d.extent
        if d.name in sizes:
            points = clipped(sizes[d.name], d.extent)
            fold = ir.Fold(d.name, "chunk", points, -(-d.extent // points))
            chunks.append(ir.Loop(fold, ir.Kind.PARALLEL))
        step = lanes if d.name == lane else 1
        own = reduced if d.reduction else inner if d.name in beside else outer
        if d.name in apart and representative(points) > STREAMS:
            outer.append(ir.Loop(ir.Fold(d.name, "tile", STREAMS, -(-points // STREAMS))))
            points = STREAMS
        own.append(ir.Loop(ir.Fold(d.name, "point", step, -(-points // step))))
        if step > 1:
            last = [ir.Loop(ir.Fold(d.name, "lane", 1, step), ir.Kind.VECTOR)]
    if reduced and not inner:
        reduced = [*reduced[:-1], *_written_out(reduced[-1].fold)]
    return nest.with_loops([*chunks, *outer, *reduced, *inner, *last])


def _in_rows_apart(program: ir.Program, nest: ir.Nest, beside: set[str]) -> set[str]:
    """Those of the results side by side of which each reads a row of its own along the last
    reduction: the first cache keeps lines of a few rows for the next points, and of all of them
    none where rows lie in a few places of it."""
    along = [d.name for d in nest.dims if d.reduction and representative(d.extent) > 1][-1:]
    found = set[str]()
    for load in (load for value in values_of(nest.point) for load in loads(value)):
        place = program.tensor(load.ref.tensor).layout.place(load.ref)
        if any(0 < abs(representative(place.coefficient(d))) < LINE for d in along):
            found |= {d for d in beside if abs(representative(place.coefficient(d))) >= LINE}
    return found


def _written_out(fold: ir.Fold) -> list[ir.Loop]:
    """The innermost loop over points that are updated one at a time, some of them at once: what
    counts iterations takes as long as an update."""
    count = min(_AT_ONCE, representative(fold.count))
    if count < 2:
        return [ir.Loop(fold)]
    outer = ir.Fold(fold.dim, fold.level, count, -(-fold.count // count))
    return [ir.Loop(outer), ir.Loop(ir.Fold(fold.dim, "register", 1, count), ir.Kind.UNROLL)]


def _chunks(
    program: ir.Program, nest: ir.Nest, beside: set[str], device: CpuProfile
) -> dict[str, int]:
    """Points of a chunk, of the one dimension that threads share: parts of the points, or results
    at places of their own; else those side by side, of each of which a thread has some lines, if no
    line has parts of two: who updates the gradients of embeddings of 160 bytes so waits for the
    other's core, and takes 1 to 2.8 times as long as one thread on Zen 4."""
    results = [d for d in nest.dims if not d.reduction]
    extents = {d.name: representative(d.extent) for d in results}
    apart = {name: n for name, n in extents.items() if name not in beside and n > 1}
    if apart:
        name = max(apart, key=apart.__getitem__)
        count = min(apart[name], _CHUNKS * device.threads)
        return {name: -(-apart[name] // count)}
    if not extents or max(extents.values()) < 2:
        return {}
    name = max(extents, key=lambda d: extents[d])
    layout = program.tensor(nest.point.target.tensor).layout
    next_to_each_other = layout.step(nest.point.target, name) == 1
    if next_to_each_other and any(representative(s) % LINE for s in layout.strides[:-1]):
        return {}
    line = max(1, LINE // layout.itemsize) if next_to_each_other else 1
    each = -(-extents[name] // (device.threads * line)) * line
    return {name: each} if each < extents[name] else {}


def _lanes(
    program: ir.Program, nest: ir.Nest, beside: set[str], device: CpuProfile
) -> tuple[str, int]:
    """Results next to each other in memory, and how many at once."""
    target = nest.point.target
    layout = program.tensor(target.tensor).layout
    for d in nest.dims:
        if d.name in beside and layout.step(target, d.name) == 1:
            return d.name, lanes_within(max(1, representative(d.extent)), nest.point, device)
    return "", 1
