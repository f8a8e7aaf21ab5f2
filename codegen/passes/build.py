"""Builds the loops of a nest out of its list, with accumulators in registers where they fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.identity import identity
from tcl.codegen.ir_walk import loads
from tcl.codegen.passes.beside import (
    ACCUMULATOR,
    Beside,
    beside,
    results,
    same_loops,
    updates,
)
from tcl.codegen.passes.copies import copy, fixed, reading_panels, shared, wrap
from tcl.codegen.passes.keep import keep
from tcl.codegen.passes.register import vector_registers

_OPERANDS = 4
"""Registers for what is not accumulated."""


@dataclass(frozen=True, slots=True)
class Build:
    """Gives the program its ``body``.

    Nests that are joined run inside the same loops over chunks. In them, the innermost reduction
    loops run over accumulators in registers: one, or one for each point of the unrolled loops and
    lanes of output dims. If a reduction loop lies outside of an output loop, the target holds
    partial results in between; a 16-bit float target has them in float32 scratch memory, so that
    it is rounded once.

    A reduction that can go along with the one before it does, where both have the same loops and
    nothing else says that they are apart.
    """

    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        scratch: list[ir.Tensor] = []
        body: list[ir.Statement] = []
        nests: list[ir.Nest] = []
        along = _along(program.nests, self.device)
        gone = {b.nest for besides in along.values() for b in besides}
        for group in groups(program.nests):
            kept = keep(program, [n for n in group if n.name not in gone], self.device)
            scratch += kept.memory
            own = {n.name: n for n in kept.nests}
            nests += [own.get(n.name, n) for n in group]
            if kept.nests:
                body += _group(kept.nests, along, scratch)
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


def _vectors(nest: ir.Nest, device: CpuProfile) -> int:
    """The registers of a nest's accumulators."""
    over = _Loops.of(nest).registers
    lanes = math.prod(x.fold.count for x in over if x.kind is ir.Kind.VECTOR)
    points = math.prod(x.fold.count for x in over if x.kind is ir.Kind.UNROLL)
    return points * -(-lanes // device.lanes(nest.point.type))


def _along(nests: Sequence[ir.Nest], device: CpuProfile) -> dict[str, list[Beside]]:
    """Reductions that go along with others, by the nest of these."""
    found: dict[str, list[Beside]] = {}
    leader: ir.Nest | None = None
    for nest in nests:
        other = None
        if leader and (nest.joined or not nest.chunks) and same_loops(leader, nest):
            other = None if _Loops.of(leader).before else beside(leader, nest)
        if leader and other and other.always:
            held = (len(found.get(leader.name, ())) + 2) * _vectors(leader, device)
            other = other if held + _OPERANDS <= vector_registers(device) else None
        if leader and other and _apart(other, found.get(leader.name, ())):
            found.setdefault(leader.name, []).append(other)
        else:
            leader = nest
    return found


def _apart(one: Beside, others: Iterable[Beside]) -> bool:
    """Whether a reduction does not touch what those write that go along already, nor they what it
    writes."""

    def touched(b: Beside) -> set[str]:
        return {b.point.target.tensor, *(load.ref.tensor for load in loads(b.point.value))}

    return all(
        one.point.target.tensor not in touched(b) and b.point.target.tensor not in touched(one)
        for b in others
    )


def _group(
    nests: Sequence[ir.Nest], along: Mapping[str, Sequence[Beside]], scratch: list[ir.Tensor]
) -> list[ir.Statement]:
    """Panels that are filled at once, then the nests inside of the loops over their chunks."""
    whole = [shared(n, copy(n, c)) for n in nests for c in n.staged if c.inside is None]
    inside = [_in_chunk(reading_panels(n), along.get(n.name, ()), scratch) for n in nests]
    body = inside[0] if len(inside) == 1 else ir.Block(tuple(inside))
    for folds in reversed(list(zip(*(n.chunks for n in nests), strict=True))):
        body = ir.For(ir.Loop(folds[0], ir.Kind.PARALLEL), body, folds[1:])
    return [*whole, body]


def _in_chunk(nest: ir.Nest, besides: Sequence[Beside], scratch: list[ir.Tensor]) -> ir.Statement:
    chunks = nest.chunks
    copies = [copy(nest, c) for c in nest.staged if chunks and c.inside == chunks[-1]]
    inner = nest.with_loops(x for x in nest.loops if x.fold not in chunks)
    rest = _body(inner, besides, scratch)
    return ir.Block((*copies, rest)) if copies else rest


def _body(nest: ir.Nest, besides: Sequence[Beside], scratch: list[ir.Tensor]) -> ir.Statement:
    point = nest.point
    if point.op == "=":
        store = ir.Store(point.target, point.value, nest.streamed)
        each = ir.Block((*nest.prefetched, *point.lets, *point.kept, store))
        return wrap(nest.loops, each, nest)
    if any(d.reduction and d.extent == 0 for d in nest.dims):
        return _nothing_to_reduce(nest)
    loops = _Loops.of(nest)
    if nest.sequential and loops.before and point.initialise:
        # It may read elements before it comes to them: all start from the identity at once.
        clear = wrap(_results(nest), ir.Store(point.target, identity(point.op, point.type)))
        resumed = replace(nest, point=replace(point, initialise=False))
        return ir.Block((clear, _body(resumed, (), scratch)))
    if point.type.compute == point.type or not loops.before:
        return _reduce(nest, loops, point.target, point.target, besides)
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
        held = [fixed(x) and (x.fold.dim in own or x.fold.dim not in reduced) for x in nest.loops]
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


def _reduce(
    nest: ir.Nest,
    loops: _Loops,
    start: ir.TensorRef,
    into: ir.TensorRef,
    besides: Sequence[Beside] = (),
) -> ir.Statement:
    """The accumulation, from what is stored at ``start`` or the identity, to ``into``."""
    point = nest.point
    type_ = point.type.compute if into != point.target else point.type
    stored = ir.Load(start, type_, total=True)
    over = tuple(x.fold for x in loops.registers)
    update = ir.Block((*nest.prefetched, *point.lets, *point.kept, *updates(point, besides)))
    total = wrap((*loops.inner, *loops.registers), update, nest)
    apart = tuple(x for x in loops.registers if x.fold not in loops.combined)
    declared = [ir.Declare(b.accumulator, b.point.type, over, b.start) for b in besides]

    def end(value: ir.Value) -> ir.Statement:
        return results(into, value, besides, loops.combined)

    def begin_or_resume(first: ir.Statement, later: ir.Statement) -> ir.Statement:
        fresh, resumed = wrap(apart, first), wrap(apart, later)
        if not point.initialise:
            return resumed
        return ir.First(loops.before, fresh, resumed) if loops.before else fresh

    parts: tuple[ir.Statement, ...]
    if loops.combined:
        held = ir.Variable(ACCUMULATOR, type_)
        sum_ = ir.Combined(held, point.op, loops.combined, type_)
        ended = begin_or_resume(end(sum_), end(ir.Binary(point.op, stored, sum_, type_)))
        parts = (ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)), total, ended)
    else:
        begin = begin_or_resume(
            ir.Accumulate(ACCUMULATOR, "=", identity(point.op, type_)),
            ir.Accumulate(ACCUMULATOR, "=", stored),
        )
        ended = wrap(apart, end(ir.Variable(ACCUMULATOR, type_)))
        parts = (ir.Declare(ACCUMULATOR, type_, over), begin, total, ended)
    return wrap(loops.outer, ir.Block((*declared, *parts)), nest)


def _nothing_to_reduce(nest: ir.Nest) -> ir.Statement:
    point = nest.point
    stored: ir.Value = ir.Load(point.target, point.type, total=True)
    start = identity(point.op, point.type) if point.initialise else stored
    return wrap(_results(nest), ir.Store(point.target, start))


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
        parts.append(wrap(_results(nest), ir.Store(at, stored)))
    parts.append(_reduce(nest, loops, at, at))
    rounded = ir.Store(point.target, ir.Load(at, wide, total=True))
    parts.append(wrap(_results(nest), rounded))
    return ir.Block(tuple(parts))


def _results(nest: ir.Nest) -> tuple[ir.Loop, ...]:
    return tuple(x for x in nest.loops if not nest.dim(x.fold.dim).reduction)
