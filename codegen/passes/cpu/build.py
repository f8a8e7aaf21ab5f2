"""Builds the loops of a nest out of its list, with accumulators in registers where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.passes.cpu.copies import copy, reading_panels, shared, wrap
from tcl.codegen.passes.cpu.fusion_limits import CpuFusionLimits
from tcl.codegen.passes.cpu.levels import Levels
from tcl.codegen.passes.cpu.shared_values import keep
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.epilogues import ends
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.fusion.siblings import ACCUMULATOR, results, updates


@dataclass(frozen=True, slots=True)
class Build:
    """Gives the program its ``body``.

    Nests that are joined run inside the same loops over chunks. In them, the innermost reduction
    loops run over accumulators in registers: one, or one for each point of the unrolled loops and
    lanes of output dims. If a reduction loop lies outside of an output loop, the target holds
    partial results in between; a 16-bit float target has them in float32 scratch memory, so that
    it is rounded once.

    A nest that can go along with the one before it does, where both have the same loops and
    nothing else says that they are apart.
    """

    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        scratch: list[ir.Tensor] = []
        body: list[ir.Statement] = []
        changed: dict[str, ir.Nest] = {}
        by_leader = {
            u.leader.name: u for u in fusion_groups(program.nests, CpuFusionLimits(self.device))
        }
        for group in groups(program.nests):
            own = [by_leader[n.name] for n in group if n.name in by_leader]
            if not own:
                continue
            kept = keep(program, own, self.device)
            scratch += kept.memory
            changed |= {u.leader.name: u.leader for u in kept.units}
            body += _group(kept.units, scratch)
        tensors = (*program.tensors, *scratch)
        nests = tuple(changed.get(n.name, n) for n in program.nests)
        return ir.Program(program.name, tensors, nests, ir.Block(tuple(body)))


def _group(together: Sequence[FusionGroup], scratch: list[ir.Tensor]) -> list[ir.Statement]:
    """Panels that are filled at once, then the nests inside of the loops over their chunks."""
    nests = [u.leader for u in together]
    whole = [shared(n, copy(n, c)) for n in nests for c in n.staged if c.inside is None]
    inside = [_in_chunk(replace(u, leader=reading_panels(u.leader)), scratch) for u in together]
    body = inside[0] if len(inside) == 1 else ir.Block(tuple(inside))
    for folds in reversed(list(zip(*(n.chunks for n in nests), strict=True))):
        body = ir.For(ir.Loop(folds[0], ir.Kind.PARALLEL), body, folds[1:])
    return [*whole, body]


def _in_chunk(unit: FusionGroup, scratch: list[ir.Tensor]) -> ir.Statement:
    nest = unit.leader
    chunks = nest.chunks
    copies = [copy(nest, c) for c in nest.staged if chunks and c.inside == chunks[-1]]
    inner = nest.with_loops(x for x in nest.loops if x.fold not in chunks)
    rest = _body(replace(unit, leader=inner), scratch)
    return ir.Block((*copies, rest)) if copies else rest


def _body(unit: FusionGroup, scratch: list[ir.Tensor]) -> ir.Statement:
    nest, point = unit.leader, unit.leader.point
    if point.op == "=":
        each = ir.Block(
            (*nest.prefetched, *point.lets, *point.kept, *_ends(unit, point.target, point.value))
        )
        return wrap(nest.loops, each, nest)
    if any(d.reduction and d.extent == 0 for d in nest.dims):
        return _nothing_to_reduce(nest)
    loops = Levels.of(nest)
    if nest.sequential and loops.before and point.initialise:
        # It may read elements before it comes to them: all start from the identity at once.
        clear = wrap(_results(nest), ir.Store(point.target, identity(point.op, point.type)))
        resumed = replace(nest, point=replace(point, initialise=False))
        return ir.Block((clear, _body(FusionGroup(resumed), scratch)))
    if point.type.compute == point.type or not loops.before:
        return _reduce(unit, loops, point.target, point.target)
    return _in_scratch(nest, loops, scratch)


def _reduce(
    unit: FusionGroup, loops: Levels, start: ir.TensorRef, into: ir.TensorRef
) -> ir.Statement:
    """The accumulation, from what is stored at ``start``, a nest before it or the identity, to
    ``into``."""
    nest, point = unit.leader, unit.leader.point
    type_ = point.type.compute if into != point.target else point.type
    stored: ir.Value = ir.Load(start, type_, total=True)
    over = tuple(x.fold for x in loops.registers)
    update = ir.Block((*nest.prefetched, *point.lets, *point.kept, *updates(point, unit.siblings)))
    total = wrap((*loops.inner, *loops.registers), update, nest)
    apart = tuple(x for x in loops.registers if x.fold not in loops.combined)
    declared = [ir.Declare(b.accumulator, b.point.type, over, b.start) for b in unit.siblings]
    if unit.start is not None:
        stored = unit.start[1]

    def end(value: ir.Value) -> ir.Statement:
        return ir.Block(_ends(unit, into, value, loops.combined))

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


def _ends(
    unit: FusionGroup, into: ir.TensorRef, value: ir.Value, combined: tuple[ir.Fold, ...] = ()
) -> tuple[ir.Statement, ...]:
    """Stores the value of a point, and what others make of it."""
    lets, made = results(into, value, unit.siblings, combined)
    made[0] = replace(made[0], streamed=unit.leader.streamed)
    names = [f"{name}.result" for name in (unit.leader.name, *(b.nest for b in unit.siblings))]
    return (*lets, *ends(made, unit.epilogues, names))


def _nothing_to_reduce(nest: ir.Nest) -> ir.Statement:
    point = nest.point
    stored: ir.Value = ir.Load(point.target, point.type, total=True)
    start = identity(point.op, point.type) if point.initialise else stored
    return wrap(_results(nest), ir.Store(point.target, start))


def _in_scratch(nest: ir.Nest, loops: Levels, scratch: list[ir.Tensor]) -> ir.Statement:
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
    parts.append(_reduce(FusionGroup(nest), loops, at, at))
    rounded = ir.Store(point.target, ir.Load(at, wide, total=True))
    parts.append(wrap(_results(nest), rounded))
    return ir.Block(tuple(parts))


def _results(nest: ir.Nest) -> tuple[ir.Loop, ...]:
    return tuple(x for x in nest.loops if not nest.dim(x.fold.dim).reduction)
