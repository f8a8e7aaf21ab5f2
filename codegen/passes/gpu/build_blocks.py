"""Makes kernels of nests that are bound to blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import EXCHANGED, in_turn
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.walk import rebuilt, walk
from tcl.codegen.passes.building import (
    Fills,
    cleared,
    ended,
    fills_of,
    grid,
    in_chunks,
    reading_panels,
    wrap,
)
from tcl.codegen.passes.fusion.epilogues import same_result_loops
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.fusion.siblings import ACCUMULATOR, Sibling, results, same_loops, updates
from tcl.codegen.passes.gpu.barriers import with_barriers
from tcl.codegen.passes.gpu.bind import MAX_HELD
from tcl.codegen.passes.gpu.block_results import BlockResults
from tcl.codegen.passes.gpu.kept_reads import KeptReads, SharedFactors
from tcl.codegen.passes.gpu.limits import Exchange, exchanges, results_at_once
from tcl.codegen.passes.gpu.panel import moving, panel_bytes
from tcl.codegen.passes.gpu.pipeline import Pipelining
from tcl.codegen.passes.gpu.shared_rows import SharedRows
from tcl.codegen.passes.gpu.stage_shared import without_needless_condition
from tcl.codegen.passes.gpu.totals import with_totals
from tcl.codegen.passes.long_sums import Carried, running_store
from tcl.codegen.passes.scatter import updated_places
from tcl.codegen.passes.split import adding_up
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal
from tcl.grammar.syntax.types import INT32, ScalarType


@dataclass(frozen=True, slots=True)
class BuildBlocks:
    """Makes a kernel of all nests that share chunks: each of its blocks works on one of these.

    The sums of a thread stay in registers over all loops of a reduction; where threads have sums
    of the same result, these are combined in the end. Barriers are set where threads need what
    others wrote.
    """

    profile: GpuProfile

    def __call__(self, program: ir.Program) -> ir.Built:
        stages = [
            _Stage.of(program, nests, own)
            for nests, own in in_chunks(program, GpuFusionLimits())
            if all(folds[0].count for folds in grid(own))  # else there is no result to compute
        ]
        kernels, counts = list[ir.Kernel](), list[ir.Tensor]()
        while stages:
            first = stages.pop(0)
            made = self._build_kernel(program, first)
            among = adding_up(first.nests, stages[0].nests) if stages else None
            if among is not None and stages[0].busy <= first.busy:
                counted = _arrived(first, among)
                both = self._build_kernel(program, first, (stages[0], among, counted.name))
                if both.shared <= max(made.shared, self.profile.shared_per_block):
                    counts.append(counted)
                    made = both
                    stages.pop(0)
            kernels.append(made)
        return ir.Built(program.name, (*program.tensors, *counts), tuple(kernels))

    def _build_kernel(
        self,
        program: ir.Program,
        stage: _Stage,
        last: tuple[_Stage, ir.Fold, str] | None = None,
    ) -> ir.Kernel:
        """``last``: what the last block of those over a fold does in the end, and what counts
        them."""
        stages = [stage, *(last[:1] if last else ())]
        exchange = Exchange.of(n for s in stages for n in s.nests)
        panels, end = _panels(program, stage.nests)
        exchanging = any(map(exchanges, stage.nests))
        over = bool(panels) and stage.once
        first = exchange.over(panels, end) if exchanging and over else exchange
        own = self._body(program, stage, stage.busy, first)
        if last is not None:
            made = self._body(program, last[0], stage.busy, exchange)
            own = ir.Block((own, ir.Last(last[1], last[2], made)))
        warps = -(-stage.busy // self.profile.warp)
        # Where the last block alone exchanges sums, it is done with the panels.
        begin = end if exchanging and not over else 0
        grids = [grid(s.rows.groups) for s in stages]
        if last is not None:
            among = next(k for k, folds in enumerate(grids[0]) if last[1] in folds)
            grids[1] = (*grids[1][:among], (), *grids[1][among:])
        kernel = ir.Kernel(
            tuple(
                tuple(dict.fromkeys(f for folds in together for f in folds))
                for together in zip(*grids, strict=True)
            ),
            own,
            tuple(space for s in stages for space in s.spaces),
            tuple(n.point for s in stages for n in s.nests),
            1 if stage.busy == 1 else warps * self.profile.warp,
            panels,
            begin if exchange.size else None,
            max(end, begin + exchange.size),
        )
        return with_totals(kernel, self.profile)

    def _body(
        self, program: ir.Program, stage: _Stage, threads: int, exchange: Exchange
    ) -> ir.Statement:
        rows, parts, handed_over = stage.rows, list[ir.Statement](), 0
        made = BlockResults(threads, rows.spaces)
        for k, group in enumerate(rows.groups):
            reading = made.reading(group, rows.kept if k > rows.first else {})
            made.forget(group.written)
            hoisted = _Hoisted(exchange.begin(handed_over), exchange.stride, exchange.most)
            parts += _group(reading, made, rows.reads if k == rows.first else (), hoisted)
            handed_over += exchanges(group.leader)
        body = ir.Block((*made.declared, *rows.declared, *parts))
        met = with_barriers(body, program, exchange.panels)
        return Pipelining.from_copies(program, stage.copies, met, self.profile, threads)(met)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Nests that share chunks, and what their blocks need."""

    nests: tuple[ir.Nest, ...]
    rows: SharedRows
    copies: tuple[ir.Staged, ...]
    spaces: tuple[ir.Space, ...]

    @staticmethod
    def of(program: ir.Program, nests: Sequence[ir.Nest], groups: Sequence[FusionGroup]) -> _Stage:
        copies = tuple(c for n in nests for c in n.staged)
        rows = SharedRows.from_groups(program, groups)
        spaces = (*rows.spaces_of(nests), *(c.fill.space for c in copies if c.fill))
        return _Stage(tuple(nests), rows, copies, spaces)

    @property
    def once(self) -> bool:
        """Whether threads have all of their results at once: then the panels are read no more when
        these are there, and nothing fills them."""
        if len(self.rows.groups) > 1:
            return False
        nest = self.rows.groups[0].leader
        serial = (x.fold for x in nest.loops if x.kind is ir.Kind.SERIAL)
        turns = (f for f in serial if not nest.dim(f.dim).reduction)
        return all(provably_equal(f.count, 1) for f in turns)

    @property
    def busy(self) -> int:
        """Threads of a block that have something to do."""
        return max(s.thread_count for s in self.spaces)


def _arrived(stage: _Stage, among: ir.Fold) -> ir.Tensor:
    """What counts the blocks over a fold that are done."""
    groups = math.prod(folds[0].count for folds in grid(stage.rows.groups) if among not in folds)
    layout = ir.contiguous(INT32, (groups,), (0,))
    name = f"{stage.nests[0].name}.arrived"
    return ir.Tensor(name, ir.Role.SCRATCH, replace(layout, base=16), zeroed=True)


def _panels(program: ir.Program, nests: Iterable[ir.Nest]) -> tuple[tuple[ir.Panel, ...], int]:
    """Where panels lie in the memory of a block, and where they end."""
    found: list[ir.Panel] = []
    offset = 0
    for nest, c in ((n, c) for n in nests for c in n.staged):
        name, source = c.panel.tensor, c.source.ref
        layout = program.tensor(name).layout
        size, offset = panel_bytes(layout), -(-offset // layout.base) * layout.base
        ends = tuple(dim for s in source.affine if (dim := moving(nest, s)) is not None)
        found.append(ir.Panel(name, source.tensor, _fill_of(c).name, offset, size, ends))
        offset += size * c.buffers
    return tuple(found), offset


def _fill_of(staged: ir.Staged) -> ir.Nest:
    if staged.fill is None:
        raise ir.IRError(f"nothing fills {staged.panel.tensor}")
    return staged.fill


def _fill(staged: ir.Staged) -> ir.Statement:
    fill = _fill_of(staged)
    store = ir.Store(fill.point.target, fill.point.value)
    return ir.Fill(staged.panel.tensor, wrap(fill.loops, store))


def _group(
    group: FusionGroup, known: BlockResults, reads: Sequence[ir.Statement], hoisted: _Hoisted
) -> list[ir.Statement]:
    """What a block does for a nest, and for those that are fused with it; ``reads``: at each of its
    points besides."""
    nest = without_needless_condition(reading_panels(group.leader))
    group = replace(group, leader=nest)
    inner = tuple(x for x in nest.loops if x.kind is not ir.Kind.PARALLEL)
    fills = fills_of(nest, _fill)
    first, point = fills.get(None, ()), nest.point
    if point.op == "=":
        made = ended(group, *results(ir.Store(point.target, point.value), group.siblings, ()))
        return [*first, wrap(inner, ir.Block((*reads, *point.lets, *made)), fills)]
    if point.scatters:
        return [*first, updated_places(nest, inner) if nest.points else ir.Block(())]
    if nest.running is None and any(d.reduction and d.extent == 0 for d in nest.dims):
        return [*first, cleared(nest)]
    if nest.running is not None:
        return [*first, _running(nest, inner, fills)]
    if nest.sequential:
        return [*first, _one_by_one(nest, inner)]
    return [*first, _reduction(group, inner, fills, known, reads, hoisted)]


def _one_by_one(nest: ir.Nest, inner: Sequence[ir.Loop]) -> ir.Statement:
    """In the order of the points, by one thread: the target holds partial results."""
    point = nest.point
    stored = ir.Load(point.target, point.type, total=True)
    update = ir.Store(point.target, ir.Binary(point.op, stored, point.value, point.type))
    each = wrap(inner, ir.Block((*point.lets, update)))
    return ir.Block((cleared(nest), each)) if point.initialise else each


def _running(nest: ir.Nest, inner: Sequence[ir.Loop], fills: Fills) -> ir.Statement:
    """A running reduction: each thread goes through the points of its results."""
    point, type_ = nest.point, nest.point.type
    at = next(k for k, x in enumerate(inner) if x.fold.dim == nest.running)
    reduced = [x for x in inner if nest.dim(x.fold.dim).reduction]
    outer = [x for x in inner[:at] if x.kind is ir.Kind.SERIAL]
    rest = [x for x in inner if x not in outer]
    own = [x for x in rest if x not in reduced]
    over = tuple(x.fold for x in own)
    carried = Carried.from_loops(reduced, {ACCUMULATOR: point}, over)
    declared = (*carried.declared, ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)))
    update = ir.Block((*point.lets, ir.Accumulate(ACCUMULATOR, point.op, point.value)))
    threads = [x for x in own if x.kind is ir.Kind.THREAD]
    held = [x for x in own if x not in threads]
    terms = wrap([*reduced[1:], *held], update, fills, dict(carried.pauses))
    store = wrap(held, running_store(nest, ACCUMULATOR, carried))
    each = wrap([*threads, reduced[0]], ir.Block((terms, store)), fills, dict(carried.pauses))
    return wrap(outer, ir.Block((*declared, each)), fills)


_WRITTEN_OUT = (ir.Kind.UNROLL, ir.Kind.VECTOR)


def _reduction(
    group: FusionGroup,
    inner: Sequence[ir.Loop],
    fills: Fills,
    known: BlockResults,
    reads: Sequence[ir.Statement],
    hoisted: _Hoisted,
) -> ir.Statement:
    """Sums in registers over all loops of the reduction, then what is made of them."""
    nest, point = group.leader, group.leader.point
    reduced = {d.name for d in nest.dims if d.reduction}
    serial = takewhile(lambda x: x.kind is ir.Kind.SERIAL, inner)
    outer = [x for x in serial if x.fold.dim not in reduced]
    rest = [x for x in inner if x not in outer]
    own = [x for x in rest if x.fold.dim not in reduced]
    """The loops over results of a block: all are threads, registers or lanes."""
    at_once = (ir.Kind.THREAD, ir.Kind.VECTOR)
    apart = [x for x in rest if x.fold.dim in reduced and x.kind in at_once]
    """Those over a reduction that have a sum for each iteration."""
    over = tuple(x.fold for x in rest if x in own or x in apart)
    combined = tuple(x.fold for x in apart)
    type_ = point.type
    declared: list[ir.Statement] = [
        ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)),
        *(ir.Declare(s.accumulator, s.point.type, over, s.start) for s in group.siblings),
    ]
    written_out = [*takewhile(lambda x: x.kind in _WRITTEN_OUT, reversed(rest))][::-1]
    threads = [x.fold for x in rest if x.kind is ir.Kind.THREAD]
    kept = KeptReads.of(group, updates(point, group.siblings), [x for x in rest if x in own])
    group = replace(group, epilogues=kept.epilogues)
    shared = SharedFactors.of(kept.statements, written_out, threads)
    update = ir.Block((*reads, *point.lets, *shared.statements))
    sums = {ACCUMULATOR: point, **{s.accumulator: s.point for s in group.siblings if s.always}}
    # What a tensor core adds up at once counts as one point.
    in_turn = [x for x in rest if x not in own and x not in apart and x.fold.level != "mma"]
    carried = Carried.from_loops(in_turn, sums, over)
    pauses = dict(carried.pauses)
    total = wrap(written_out, update, fills, pauses)
    if shared.before:
        total = ir.Block((*shared.before, total))
    total = wrap(rest[: len(rest) - len(written_out)], total, fills, pauses)
    value: ir.Value = ir.Variable(ACCUMULATOR, type_)
    hoisted.own = own
    if combined:
        value = hoisted(ir.Combined(value, point.op, combined, type_))
    if group.start is not None:
        value = ir.Binary(point.op, group.start[1], value, type_)
    elif not point.initialise:
        value = ir.Binary(point.op, ir.Load(point.target, type_, total=True), value, type_)
    lets, stores = results(ir.Store(point.target, value), group.siblings, combined)
    for let in lets:
        hoisted.kept(let)
    stores = [replace(s, value=hoisted.with_known(s.value)) for s in stores]
    last = ended(group, (), stores)
    ended_apart = known.forwarded(nest, (*outer, *own), last)
    ends = [wrap(own, ir.Block(part)) for part in ended_apart or [last]]
    declared += [*carried.declared, *kept.declared, *shared.declared]
    body = ir.Block((*declared, *kept.before, total, *carried.last, *hoisted.statements(), *ends))
    return wrap(outer, body, fills)


@dataclass(slots=True)
class _Hoisted:
    """Sums of several threads are combined by all of them, before anything is done with the
    results: not where some threads are left out, at the edge of a tensor. Sums that do not depend
    on each other are handed over at once."""

    begin: int
    """Where in the memory in which threads hand over sums."""
    stride: int
    most: int
    """Bytes that a thread hands others at once."""
    own: Sequence[ir.Loop] = ()
    declared: list[ir.Statement] = field(default_factory=list)
    steps: list[dict[str, ir.Value]] = field(default_factory=list)
    """What is computed one after the other: several values that are combined at once, or one
    other."""

    def __call__(self, combined: ir.Combined) -> ir.Variable:
        count = sum(isinstance(v, ir.Combined) for step in self.steps for v in step.values())
        name = f"combined{count or ''}"
        self._declare(name, combined.type)
        needed = {v.name for v in walk(combined.value) if isinstance(v, ir.Variable)}
        for step in reversed(self.steps):
            if needed & step.keys():
                break
            if _at_once([*step.values(), combined]):
                step[name] = combined
                return ir.Variable(name, combined.type)
        self.steps.append({name: combined})
        return ir.Variable(name, combined.type)

    def kept(self, let: ir.Let) -> None:
        """A value that others need which are combined."""
        self._declare(let.name, let.value.type)
        self.steps.append({let.name: let.value})

    def _declare(self, name: str, type_: ScalarType) -> None:
        self.declared.append(ir.Declare(name, type_, tuple(x.fold for x in self.own)))

    def with_known(self, value: ir.Value) -> ir.Value:
        """The value, with what is combined in it known already."""
        if isinstance(value, ir.Combined):
            return self(value)
        return rebuilt(value, self.with_known)

    def statements(self) -> list[ir.Statement]:
        return [*self.declared, *map(self._step, self.steps)]

    def _step(self, step: Mapping[str, ir.Value]) -> ir.Statement:
        own = [x.fold for x in self.own if x.kind is not ir.Kind.THREAD]
        turn = in_turn(own, (v.type.compute.itemsize for v in step.values()), self.most)
        apart = self.stride * math.prod(f.count for f in own[turn:])
        made, place = list[ir.Statement](), self.begin
        for name, value in step.items():
            if isinstance(value, ir.Combined):
                value = replace(value, place=place, turn=turn)
                place += apart * value.type.compute.itemsize
            made.append(ir.Accumulate(name, "=", value))
        return wrap(self.own, made[0] if len(made) == 1 else ir.Block(tuple(made)))


def _at_once(values: Sequence[ir.Value]) -> bool:
    """Whether these are sums that threads may hand over at once."""
    size = sum(v.type.compute.itemsize for v in values)
    return size <= EXCHANGED and all(isinstance(v, ir.Combined) for v in values)


_CALLS = 64
"""Calls of functions, each some dozens of instructions, that may be written out."""


class GpuFusionLimits:
    """As a ``FusionLimits``: for nests with all of their loops."""

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """Whether the nest of a reduction has the leader's loops, and registers for its sums."""
        if not same_loops(group.leader, nest):
            return False
        held = results_at_once(group.leader) * max(1, nest.point.type.bits // 32)
        return held * (group.sums + 1) <= MAX_HELD

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """Whether the nest has the leader's loops over its results."""
        return same_result_loops(leader, nest) and results_at_once(leader) * calls <= _CALLS
