"""Builds the loops of nests that are bound to blocks and threads out of their lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.walk import rebuilt, rewritten
from tcl.codegen.passes.cpu.copies import wrap
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.epilogues import ends
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.fusion.siblings import ACCUMULATOR, results, updates
from tcl.codegen.passes.gpu.barriers import with_barriers
from tcl.codegen.passes.gpu.bind import thread_count
from tcl.codegen.passes.gpu.block_results import Known
from tcl.codegen.passes.gpu.fusion_limits import GpuFusionLimits


@dataclass(frozen=True, slots=True)
class BuildBlocks:
    """Gives the program its ``body``: a statement for each kernel, loops over chunks around what a
    block does.

    The sums of a thread stay in registers over all loops of a reduction; where threads have sums
    of the same result, these are combined in the end. Barriers are set where threads need what
    others wrote.
    """

    def __call__(self, program: ir.Program) -> ir.Program:
        body: list[ir.Statement] = []
        for own in kernels(program):
            known, parts = Known(threads_of(program, own)), list[ir.Statement]()
            for unit in own:
                reading = known.reading(unit)
                known.forget(unit.written)
                parts += _unit(reading, known)
            inside = with_barriers(ir.Block((*known.declared, *parts)), program)
            chunks = [u.leader.chunks for u in own]
            kernel: ir.Statement = inside
            for folds in reversed(list(zip(*chunks, strict=True))):
                kernel = ir.For(ir.Loop(folds[0], ir.Kind.PARALLEL), kernel, folds[1:])
            body.append(kernel)
        return replace(program, body=ir.Block(tuple(body)))


def kernels(program: ir.Program) -> list[list[FusionGroup]]:
    """What runs in each kernel. Nests without results of their own dimensions share no chunks, but
    may go along with each other."""
    by_leader = {u.leader.name: u for u in fusion_groups(program.nests, GpuFusionLimits())}
    own = ([by_leader[n.name] for n in g if n.name in by_leader] for g in groups(program.nests))
    return [units_ for units_ in own if units_]


def threads_of(program: ir.Program, own: Sequence[FusionGroup]) -> int:
    """The threads of the block of a kernel that have something to do."""
    names = set[str]().union(*(u.names for u in own))
    nests = [n for n in program.nests if n.name in names]
    fills = (c.fill for n in nests for c in n.staged if c.fill is not None)
    return max(map(thread_count, (*nests, *fills)), default=1)


def _unit(unit: FusionGroup, known: Known) -> list[ir.Statement]:
    """What a block does for a nest, and for those that go along with it."""
    nest = replace(unit.leader, point=_reading_panels(unit.leader))
    unit = replace(unit, leader=nest)
    inner = tuple(x for x in nest.loops if x.kind is not ir.Kind.PARALLEL)
    fills = [_fill(c) for c in nest.staged if c.inside is None]
    point = nest.point
    if point.op == "=":
        ended = _ends(unit, point.value)
        each = ir.Block((*point.lets, *ended))
        return [*fills, _around(nest, inner, each)]
    if any(d.reduction and d.extent == 0 for d in nest.dims):
        return [*fills, _nothing_to_reduce(nest, inner)]
    if nest.sequential:
        return [*fills, _one_by_one(nest, inner)]
    return [*fills, _reduction(unit, inner, known)]


def _around(nest: ir.Nest, loops: Sequence[ir.Loop], body: ir.Statement) -> ir.Statement:
    """Loops around a body; panels are filled in those in which they are."""
    for loop in reversed(loops):
        fills = [_fill(c) for c in nest.staged if c.inside == loop.fold]
        body = ir.For(loop, ir.Block((*fills, body)) if fills else body)
    return body


def _fill(staged: ir.Staged) -> ir.Statement:
    if staged.fill is None:
        raise ir.IRError(f"nothing fills {staged.panel.tensor}")
    point = staged.fill.point
    return wrap(staged.fill.loops, ir.Store(point.target, point.value))


def _reading_panels(nest: ir.Nest) -> ir.Point:
    """The point, with what is staged read from the panels."""
    panels: dict[ir.TensorRef, ir.Value] = {
        c.source.ref: ir.Load(c.panel, c.source.type, total=True) for c in nest.staged
    }

    def from_panel(load: ir.Load) -> ir.Value:
        return panels.get(load.ref, load)

    point = nest.point
    lets = tuple(replace(x, value=rewritten(x.value, from_panel)) for x in point.lets)
    return replace(point, lets=lets, value=rewritten(point.value, from_panel))


def _nothing_to_reduce(nest: ir.Nest, inner: Sequence[ir.Loop]) -> ir.Statement:
    point = nest.point
    stored: ir.Value = ir.Load(point.target, point.type, total=True)
    start = identity(point.op, point.type) if point.initialise else stored
    own = [x for x in inner if not nest.dim(x.fold.dim).reduction]
    return wrap(own, ir.Store(point.target, start))


def _one_by_one(nest: ir.Nest, inner: Sequence[ir.Loop]) -> ir.Statement:
    """In the order of the points, by one thread: the target holds partial results."""
    point = nest.point
    own = [x for x in inner if not nest.dim(x.fold.dim).reduction]
    stored = ir.Load(point.target, point.type, total=True)
    update = ir.Store(point.target, ir.Binary(point.op, stored, point.value, point.type))
    each = wrap(inner, ir.Block((*point.lets, update)))
    if not point.initialise:
        return each
    clear = wrap(own, ir.Store(point.target, identity(point.op, point.type)))
    return ir.Block((clear, each))


def _reduction(unit: FusionGroup, inner: Sequence[ir.Loop], known: Known) -> ir.Statement:
    """Sums in registers over all loops of the reduction, then what is made of them."""
    nest, point = unit.leader, unit.leader.point
    reduced = {d.name for d in nest.dims if d.reduction}
    serial = takewhile(lambda x: x.kind is ir.Kind.SERIAL, inner)
    outer = [x for x in serial if x.fold.dim not in reduced]
    rest = [x for x in inner if x not in outer]
    own = [x for x in rest if x.fold.dim not in reduced]
    """The loops over results of a block: all are threads, registers or lanes."""
    apart = [x for x in rest if x.fold.dim in reduced and _has_sums(x, nest)]
    over = tuple(x.fold for x in rest if x in own or x in apart)
    combined = tuple(x.fold for x in apart)
    type_ = point.type
    declared = [
        ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)),
        *(ir.Declare(b.accumulator, b.point.type, over, b.start) for b in unit.siblings),
    ]
    update = ir.Block((*point.lets, *updates(point, unit.siblings)))
    total = _around(nest, rest, update)
    value: ir.Value = ir.Variable(ACCUMULATOR, type_)
    hoisted = _Hoisted(own)
    if combined:
        value = hoisted(ir.Combined(value, point.op, combined, type_))
    start: ir.Value | None = None
    if unit.start is not None:
        start = unit.start[1]
    elif not point.initialise:
        start = ir.Load(point.target, type_, total=True)
    if start is not None:
        value = ir.Binary(point.op, start, value, type_)
    ended = _ends(unit, value, combined, hoisted)
    kept = known.keep(nest, (*outer, *own), ended)
    ends_ = [wrap(own, ir.Block(part)) for part in kept or [ended]]
    body = ir.Block((*declared, total, *hoisted.statements, *ends_))
    return _around(nest, outer, body)


def _has_sums(loop: ir.Loop, nest: ir.Nest) -> bool:
    """Whether a loop over a reduction has a sum for each iteration."""
    return loop.kind in (ir.Kind.THREAD, ir.Kind.VECTOR)


@dataclass(slots=True)
class _Hoisted:
    """Sums of several threads are combined by all of them, before anything is done with the
    results: not where some threads are left out, at the edge of a tensor."""

    own: Sequence[ir.Loop]
    statements: list[ir.Statement] = field(default_factory=list)
    count: int = 0

    def __call__(self, combined: ir.Combined) -> ir.Variable:
        name = f"combined{self.count or ''}"
        self.count += 1
        over = tuple(x.fold for x in self.own)
        self.statements.append(ir.Declare(name, combined.type, over))
        self.statements.append(wrap(self.own, ir.Accumulate(name, "=", combined)))
        return ir.Variable(name, combined.type)

    def kept(self, let: ir.Let) -> None:
        """A value that others need which are combined."""
        over = tuple(x.fold for x in self.own)
        self.statements.append(ir.Declare(let.name, let.value.type, over))
        self.statements.append(wrap(self.own, ir.Accumulate(let.name, "=", let.value)))

    def within(self, value: ir.Value) -> ir.Value:
        """The value, with what is combined in it known already."""
        if isinstance(value, ir.Combined):
            return self(value)
        return rebuilt(value, self.within)


def _ends(
    unit: FusionGroup,
    value: ir.Value,
    combined: tuple[ir.Fold, ...] = (),
    hoisted: _Hoisted | None = None,
) -> tuple[ir.Statement, ...]:
    """Stores the value of a point, and what others make of it."""
    lets, made = results(unit.leader.point.target, value, unit.siblings, combined)
    if hoisted is not None:
        for let in lets:
            hoisted.kept(let)
        lets = []
        made = [replace(s, value=hoisted.within(s.value)) for s in made]
    names = [f"{name}.result" for name in (unit.leader.name, *(b.nest for b in unit.siblings))]
    return (*lets, *ends(made, unit.epilogues, names))
