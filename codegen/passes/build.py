"""Builds the loops of a nest out of its list, with accumulators in registers where they fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.ir_walk import rewritten
from tcl.codegen.passes.keep import keep
from tcl.codegen.passes.register import MAX_POINTS
from tcl.codegen.passes.stage import ALIGNMENT
from tcl.grammar.types import Kind, ScalarType

ACCUMULATOR = "accumulator"


@dataclass(frozen=True, slots=True)
class Build:
    """Gives the program its ``body``.

    Nests that are joined run inside the same loops over chunks. In them, the innermost reduction
    loops run over accumulators in registers: one, or one for each point of the unrolled loops and
    lanes of output dims. If a reduction loop lies outside of an output loop, the target holds
    partial results in between; a 16-bit float target has them in float32 scratch memory, so that
    it is rounded once.
    """

    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        scratch: list[ir.Tensor] = []
        body: list[ir.Statement] = []
        nests: list[ir.Nest] = []
        for group in groups(program.nests):
            kept = keep(program, group, self.device)
            scratch += kept.memory
            nests += kept.nests
            body += _group(kept.nests, scratch)
        tensors = (*program.tensors, *scratch)
        return ir.Program(program.name, tensors, tuple(nests), ir.Block(tuple(body)))


def groups(nests: Iterable[ir.Nest]) -> list[list[ir.Nest]]:
    """The nests, with those together that share the loops over their chunks."""
    found: list[list[ir.Nest]] = []
    for nest in nests:
        if nest.joined:
            found[-1].append(nest)
        else:
            found.append([nest])
    return found


def identity(op: str, type_: ScalarType) -> ir.Const:
    """The value from which a reduction starts."""
    match op, type_.kind:
        case "+", Kind.BOOL:
            return ir.Const(False, type_)
        case "*", Kind.BOOL:
            return ir.Const(True, type_)
        case "+", kind:
            return ir.Const(0.0 if kind is Kind.FLOAT else 0, type_)
        case "*", kind:
            return ir.Const(1.0 if kind is Kind.FLOAT else 1, type_)
        case "min", Kind.FLOAT:
            return ir.Const(math.inf, type_)
        case "max", Kind.FLOAT:
            return ir.Const(-math.inf, type_)
        case "min", Kind.BOOL:
            return ir.Const(True, type_)
        case "max", Kind.BOOL:
            return ir.Const(False, type_)
        case "min", _:
            return ir.Const(type_.limits[1], type_)
        case "max", _:
            return ir.Const(type_.limits[0], type_)
    raise ir.IRError(f"{op} is no reduction")


def _group(nests: Sequence[ir.Nest], scratch: list[ir.Tensor]) -> list[ir.Statement]:
    """Panels that are filled at once, then the nests inside of the loops over their chunks."""
    whole = [_shared(n, _copy(n, c)) for n in nests for c in n.staged if c.inside is None]
    inside = [_in_chunk(_reading_panels(n), scratch) for n in nests]
    body = inside[0] if len(inside) == 1 else ir.Block(tuple(inside))
    for folds in reversed(list(zip(*(n.chunks for n in nests), strict=True))):
        body = ir.For(ir.Loop(folds[0], ir.Kind.PARALLEL), body, folds[1:])
    return [*whole, body]


def _shared(nest: ir.Nest, copy: ir.Statement) -> ir.Statement:
    """A copy whose outermost loop is shared among threads, if the nest's are."""
    if not (isinstance(copy, ir.For) and copy.loop.kind is ir.Kind.SERIAL and nest.chunks):
        return copy
    fold, inner = copy.loop.fold, copy.body
    while isinstance(inner, ir.For) and inner.loop.fold.dim != fold.dim:
        inner = inner.body
    # Loops that are written out have to know the length of what is around them.
    written_out = isinstance(inner, ir.For) and _fixed(inner.loop)
    if written_out and nest.dim(fold.dim).extent % fold.step:
        return copy
    return replace(copy, loop=replace(copy.loop, kind=ir.Kind.PARALLEL))


def _in_chunk(nest: ir.Nest, scratch: list[ir.Tensor]) -> ir.Statement:
    chunks = nest.chunks
    copies = [_copy(nest, c) for c in nest.staged if chunks and c.inside == chunks[-1]]
    rest = _body(nest.with_loops(x for x in nest.loops if x.fold not in chunks), scratch)
    return ir.Block((*copies, rest)) if copies else rest


def _body(nest: ir.Nest, scratch: list[ir.Tensor]) -> ir.Statement:
    point = nest.point
    if point.op == "=":
        store = ir.Store(point.target, point.value, nest.streamed)
        return _wrap(nest.loops, ir.Block((*point.lets, *point.kept, store)), nest)
    if any(d.reduction and d.extent == 0 for d in nest.dims):
        return _nothing_to_reduce(nest)
    loops = _Loops.of(nest)
    if nest.sequential and loops.before and point.initialise:
        # It may read elements before it comes to them: all start from the identity at once.
        clear = _wrap(_results(nest), ir.Store(point.target, identity(point.op, point.type)))
        resumed = replace(nest, point=replace(point, initialise=False))
        return ir.Block((clear, _body(resumed, scratch)))
    if point.type.compute == point.type or not loops.before:
        return _reduce(nest, loops, point.target, point.target)
    return _in_scratch(nest, loops, scratch)


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops of a reduction, by what happens between them."""

    outer: tuple[ir.Loop, ...]
    """Around the accumulators."""
    inner: tuple[ir.Loop, ...]
    """Reductions over which the accumulators are kept in registers."""
    registers: tuple[ir.Loop, ...]
    """Unrolled loops and lanes: each point of them has an accumulator."""
    combined: tuple[ir.Fold, ...]
    """Reductions among the registers, whose accumulators are combined in the end."""
    before: tuple[ir.Fold, ...]
    """Reductions among the outer loops: after their first iteration, there are partial results."""

    @staticmethod
    def of(nest: ir.Nest) -> _Loops:
        reduced = {d.name for d in nest.dims if d.reduction}
        # Lanes of a reduction have accumulators anyway; then its unrolled loop has some, too.
        own = {x.fold.dim for x in nest.loops if x.kind is ir.Kind.VECTOR}
        held = [_fixed(x) and (x.fold.dim in own or x.fold.dim not in reduced) for x in nest.loops]
        stop = len(nest.loops)
        while stop and held[stop - 1]:
            stop -= 1
        split = stop
        # A sequential nest may read its target at any point: no accumulator, then.
        if not (nest.sequential and reduced):
            while split and nest.loops[split - 1].fold.dim in reduced:
                split -= 1
        outer, registers = nest.loops[:split], nest.loops[stop:]
        combined = tuple(x.fold for x in registers if x.fold.dim in reduced)
        before = tuple(x.fold for x in outer if x.fold.dim in reduced)
        return _Loops(outer, nest.loops[split:stop], registers, combined, before)


def _fixed(loop: ir.Loop) -> bool:
    return loop.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR)


def _reduce(nest: ir.Nest, loops: _Loops, start: ir.TensorRef, into: ir.TensorRef) -> ir.Statement:
    """The accumulation, from what is stored at ``start`` or the identity, to ``into``."""
    point = nest.point
    type_ = point.type.compute if into != point.target else point.type
    stored = ir.Load(start, type_, total=True)
    over = tuple(x.fold for x in loops.registers)
    update = ir.Accumulate(ACCUMULATOR, point.op, point.value)
    total = _wrap(
        (*loops.inner, *loops.registers), ir.Block((*point.lets, *point.kept, update)), nest
    )
    results = tuple(x for x in loops.registers if x.fold not in loops.combined)

    def begin_or_resume(first: ir.Statement, later: ir.Statement) -> ir.Statement:
        fresh, resumed = _wrap(results, first), _wrap(results, later)
        if not point.initialise:
            return resumed
        return ir.First(loops.before, fresh, resumed) if loops.before else fresh

    parts: tuple[ir.Statement, ...]
    if loops.combined:
        sum_ = ir.Combined(ACCUMULATOR, point.op, loops.combined, type_)
        added = ir.Store(into, ir.Binary(point.op, stored, sum_, type_))
        end = begin_or_resume(ir.Store(into, sum_), added)
        parts = (ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)), total, end)
    else:
        begin = begin_or_resume(
            ir.Accumulate(ACCUMULATOR, "=", identity(point.op, type_)),
            ir.Accumulate(ACCUMULATOR, "=", stored),
        )
        end = _wrap(results, ir.Store(into, ir.Variable(ACCUMULATOR, type_)))
        parts = (ir.Declare(ACCUMULATOR, type_, over), begin, total, end)
    return _wrap(loops.outer, ir.Block(parts), nest)


def _nothing_to_reduce(nest: ir.Nest) -> ir.Statement:
    point = nest.point
    stored: ir.Value = ir.Load(point.target, point.type, total=True)
    start = identity(point.op, point.type) if point.initialise else stored
    return _wrap(_results(nest), ir.Store(point.target, start))


def _in_scratch(nest: ir.Nest, loops: _Loops, scratch: list[ir.Tensor]) -> ir.Statement:
    """Partial results of a 16-bit float in float32, so that it is rounded once."""
    point = nest.point
    wide = point.type.compute
    dims = [d for d in nest.dims if not d.reduction]
    layout = ir.contiguous(wide, (d.extent for d in dims), (d.first for d in dims))
    partial = ir.Tensor(f"{nest.name}.partial", ir.Role.SCRATCH, layout)
    scratch.append(partial)
    at = ir.TensorRef(partial.name, point.target.subscripts)
    parts: list[ir.Statement] = []
    if not point.initialise:
        stored = ir.Load(point.target, point.type, total=True)
        parts.append(_wrap(_results(nest), ir.Store(at, stored)))
    parts.append(_reduce(nest, loops, at, at))
    rounded = ir.Store(point.target, ir.Load(at, wide, total=True))
    parts.append(_wrap(_results(nest), rounded))
    return ir.Block(tuple(parts))


def _results(nest: ir.Nest) -> tuple[ir.Loop, ...]:
    return tuple(x for x in nest.loops if not nest.dim(x.fold.dim).reduction)


def _wrap(
    loops: Sequence[ir.Loop], body: ir.Statement, nest: ir.Nest | None = None
) -> ir.Statement:
    """Loops around a body. With the nest whose points it is, its panels are filled in them."""
    for loop in reversed(loops):
        copies = [c for c in nest.staged if c.inside == loop.fold] if nest else []
        if nest and copies:
            body = ir.Block((*(_copy(nest, c) for c in copies), body))
        body = ir.For(loop, body)
    return body


def _copy(nest: ir.Nest, staged: ir.Staged) -> ir.Statement:
    """Fills a panel: every point of the loops that its subscript names."""
    (subscript,) = staged.panel.subscripts
    if not isinstance(subscript, ir.Affine):
        raise ir.IRError(f"the place in {staged.panel.tensor} depends on data")
    names = {name for name, _ in subscript.terms}
    loops = [x for x in nest.loops if x.fold.name in names]
    if staged.across:
        loops, subscript = _several_at_once(loops, staged, subscript)
    panel = ir.TensorRef(staged.panel.tensor, (subscript,))
    return _wrap(loops, ir.Store(panel, staged.source))


def _several_at_once(
    loops: list[ir.Loop], staged: ir.Staged, place: ir.Affine
) -> tuple[list[ir.Loop], ir.Affine]:
    """The loops of a copy and the place in its panel, with the innermost loop along ``across``
    written out in part: as many points as fit into a cache line are read for all lanes and then
    transposed."""
    serial = [x for x in loops if x.kind is ir.Kind.SERIAL]
    fixed = [x for x in loops if _fixed(x)]
    chunks = [x for x in loops if x.kind is ir.Kind.PARALLEL]
    fold = [x.fold for x in serial if x.fold.dim == staged.across][-1]
    line = max(1, ALIGNMENT * 8 // max(8, staged.source.type.bits))
    room = MAX_POINTS // math.prod(x.fold.count for x in fixed if x.kind is ir.Kind.UNROLL)
    count = min(line // fold.step, room, fold.count)
    if count > 1:
        longer = replace(fold, step=fold.step * count, count=-(-fold.count // count))
        serial = [ir.Loop(longer) if x.fold == fold else x for x in serial]
        part = ir.Fold(fold.dim, "across", fold.step, count)
        fixed.insert(0, ir.Loop(part, ir.Kind.UNROLL))
        place = place + ir.Affine.of(part.name).scaled(place.coefficient(fold.name))
    own = [x for x in fixed if x.fold.dim == staged.across and x.kind is ir.Kind.UNROLL]
    rest = [x for x in fixed if x not in own]
    lanes = [x for x in rest if x.kind is ir.Kind.VECTOR]
    return [*chunks, *serial, *(x for x in rest if x not in lanes), *own, *lanes], place


def _reading_panels(nest: ir.Nest) -> ir.Nest:
    """The nest with the reads of staged operands changed to reads of their copies."""
    panels = {c.source.ref: c.panel for c in nest.staged}
    if not panels:
        return nest

    def changed(load: ir.Load) -> ir.Value:
        panel = panels.get(load.ref)
        return replace(load, ref=panel) if panel else load

    lets = tuple(replace(x, value=rewritten(x.value, changed)) for x in nest.point.lets)
    value = rewritten(nest.point.value, changed)
    return replace(nest, point=replace(nest.point, lets=lets, value=value))
