"""Builds the loops of a nest out of its list, with accumulators in registers where they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.layouts import packed
from tcl.codegen.loopir.walk import dims_of_values, loads
from tcl.codegen.passes import long_sums
from tcl.codegen.passes.building import (
    Fills,
    cleared,
    ended,
    fills_of,
    grid,
    in_chunks,
    reading_panels,
    result_loops,
    wrap,
)
from tcl.codegen.passes.cpu import cut
from tcl.codegen.passes.cpu.copies import copy_loops, fill_kernel, fixed
from tcl.codegen.passes.cpu.fusion_limits import CpuFusionLimits
from tcl.codegen.passes.cpu.levels import Levels
from tcl.codegen.passes.cpu.shared_values import with_shared_values
from tcl.codegen.passes.cpu.skip import compaction, unguarded
from tcl.codegen.passes.fusion.epilogues import Epilogue
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.fusion.siblings import (
    ACCUMULATOR,
    SeenNan,
    Sibling,
    results,
    updates,
)
from tcl.codegen.passes.scatter import updated_places
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Size, provably_equal
from tcl.grammar.syntax.types import ScalarType

_EXCESS = "excess"
_RESULT = "running"


@dataclass(frozen=True, slots=True)
class Build:
    """Makes kernels of the nests, each for what threads share, or one of them does alone.

    Nests that are joined run inside the same loops over chunks. In them, the innermost reduction
    loops run over accumulators in registers: one, or one for each point of the unrolled loops and
    lanes of output dims. If a reduction loop lies outside of an output loop, the target holds
    partial results in between; a 16-bit float target has them in float32 scratch memory, so that
    it is rounded once. Long sums of floats are made of parts, see ``tcl.codegen.common.sums``.

    A nest that can be fused with the one before it does, where both have the same loops and
    nothing else says that they are apart.
    """

    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Built:
        scratch: list[ir.Tensor] = []
        kernels: list[ir.Kernel] = []
        for nests, own in in_chunks(program, CpuFusionLimits(self.device)):
            shared = with_shared_values(program, own, self.device)
            scratch += shared.memory
            points = tuple(n.point for n in nests)
            kernels += _kernels(shared.groups, points, scratch)
        return ir.Built(program.name, (*program.tensors, *scratch), tuple(_in_turn(kernels)))


def _in_turn(kernels: Iterable[ir.Kernel]) -> Iterator[ir.Kernel]:
    """Kernels that one thread runs, one right after the other, as one."""
    for shared, several in groupby(kernels, lambda k: bool(k.grid)):
        if shared:
            yield from several
            continue
        found = list(several)
        spaces = {s.name: s for k in found for s in k.spaces}
        points = tuple(p for k in found for p in k.points)
        yield ir.Kernel((), ir.Block(tuple(k.body for k in found)), tuple(spaces.values()), points)


def _kernels(
    together: Sequence[FusionGroup], points: tuple[ir.Point, ...], scratch: list[ir.Tensor]
) -> Iterator[ir.Kernel]:
    """Panels that are filled at once, then the nests inside of the loops over their chunks."""
    nests = [g.leader for g in together]
    for nest in nests:
        if made := compaction(nest):
            yield ir.Kernel(*made, (nest.space,), ())
        for staged in nest.staged:
            if staged.inside is None:
                yield fill_kernel(nest, staged)
    inside = [_in_chunk(g, scratch) for g in together]
    body = inside[0] if len(inside) == 1 else ir.Block(tuple(inside))
    yield ir.Kernel(grid(together), body, tuple(n.space for n in nests), points)


def _in_chunk(group: FusionGroup, scratch: list[ir.Tensor]) -> ir.Statement:
    nest, chunks = reading_panels(group.leader), group.leader.chunks
    pieces = replace(nest, staged=tuple(s for s in nest.staged if s.inside is not None))
    fills = fills_of(pieces, lambda staged: copy_loops(nest, staged))
    inner = nest.with_loops(x for x in nest.loops if x.fold not in chunks)
    rest = _body(replace(group, leader=inner), fills, scratch)
    first = fills.get(chunks[-1], ()) if chunks else ()
    return ir.Block((*first, rest)) if first else rest


def _body(group: FusionGroup, fills: Fills, scratch: list[ir.Tensor]) -> ir.Statement:
    nest, point = group.leader, group.leader.point
    if nest.running is not None:
        return _running(nest, fills)
    if point.op == "=":
        return _each_result(group, fills)
    if point.scatters:
        return updated_places(nest, nest.loops)
    if any(d.reduction and d.extent == 0 for d in nest.dims):
        return cleared(nest)
    loops = Levels.from_nest(nest)
    if nest.sequential and loops.before and point.initialise:
        # It may read elements before it comes to them: all start from the identity at once.
        resumed = replace(nest, point=replace(point, initialise=False))
        return ir.Block((cleared(nest), _body(FusionGroup(resumed), fills, scratch)))
    if point.type.compute == point.type or not loops.before or loops.in_fragments(nest):
        return _reduce(group, loops, point.target, fills, scratch)
    return _in_scratch(nest, loops, fills, scratch)


def _each_result(group: FusionGroup, fills: Fills) -> ir.Statement:
    """What is computed at each point, where nothing is reduced."""
    nest, loops = group.leader, Levels.from_nest(group.leader)

    def block(point: ir.Point, epilogues: Sequence[Epilogue]) -> ir.Block:
        store = ir.Store(point.target, point.value, nest.streamed)
        own = replace(group, epilogues=tuple(epilogues))
        made = ended(own, *results(store, group.siblings, ()))
        return ir.Block((*nest.prefetched, *point.lets, *point.kept, *made))

    each = wrap(loops.registers, block(nest.point, group.epilogues))
    points = (nest.point, *(e.point for e in group.epilogues))
    if nest.lane is not None and (bounds := _bounds_of_tiles(nest, loops, points)):
        first, *rest = (cut.holding(nest, p, bounds) for p in points)
        ends = zip(group.epilogues, rest, strict=True)
        inside = block(first, [replace(e, value=p.value) for e, p in ends])
        each = ir.Within(bounds, wrap(loops.registers, inside), each)
    return wrap(loops.outer, each, fills)


def _running(nest: ir.Nest, fills: Fills) -> ir.Statement:
    """A running reduction: accumulators in registers, whose values are stored at each point."""
    point = nest.point
    at = next(k for k, x in enumerate(nest.loops) if x.fold.dim == nest.running)
    outer, own, rest = nest.loops[:at], nest.loops[at], nest.loops[at + 1 :]
    inner = tuple(x for x in rest if not fixed(x))
    registers = tuple(x for x in rest if fixed(x))
    over = tuple(x.fold for x in registers if x.fold.dim != nest.running)
    type_ = point.type.compute
    carried = long_sums.Carried.from_loops((own, *inner), {ACCUMULATOR: point}, over)
    declared = (*carried.declared, ir.Declare(ACCUMULATOR, type_, over, identity(point.op, type_)))
    before: tuple[ir.Statement, ...] = (*nest.prefetched, *point.lets)
    pauses = dict(carried.pauses)
    each: ir.Statement
    if inner:
        step = ir.Block((*before, ir.Accumulate(ACCUMULATOR, point.op, point.value)))
        terms = wrap((*inner, *registers), step, fills, pauses)
        store = wrap(registers, long_sums.running_store(nest, ACCUMULATOR, carried))
        each = ir.Block((terms, store))
    else:
        scan = ir.Scan(ACCUMULATOR, point.op, point.value, _RESULT)
        store = long_sums.running_store(nest, _RESULT, carried)
        each = wrap(registers, ir.Block((*before, scan, store)), fills)
    total = wrap((own,), each, fills, pauses)
    return wrap(outer, ir.Block((*declared, total)), fills)


@dataclass(frozen=True, slots=True)
class _Sums:
    """What happens to the accumulators of a reduction."""

    group: FusionGroup
    loops: Levels
    into: ir.TensorRef
    """Where the result of the first nest goes, or a part of it."""
    parts: int
    """Of a sum that are added up there; 1 where accumulators resume what is there."""
    fragments: ir.TensorRef | None = None
    """Where a matrix unit stores whole fragments of sums, to resume them or as results."""
    held: ir.TensorRef | None = None
    """Where accumulators wait that resume their sum in the next of so many parts ..."""
    together: int = 1
    """... that are added up as one."""

    @property
    def type(self) -> ScalarType:
        """Of what is stored there."""
        point = self.group.leader.point
        return point.type.compute if self.into != point.target else point.type

    @property
    def start(self) -> ir.Const:
        """What a reduction begins with."""
        return identity(self.group.leader.point.op, self.type)

    @property
    def uncombined(self) -> tuple[ir.Loop, ...]:
        """The loops over the accumulators that are not combined."""
        return tuple(x for x in self.loops.registers if x.fold not in self.loops.combined)

    def matrix(self, action: ir.Action, at: ir.TensorRef | None = None) -> tuple[ir.Statement, ...]:
        if not self.group.leader.mma:
            return ()
        outside = tuple(x for x in self.uncombined if x.kind is ir.Kind.UNROLL)
        return (wrap(outside, ir.Matrix(ACCUMULATOR, action, at)),)

    def begin(self, stored: ir.Value) -> ir.Statement:
        """The first values, where accumulators are not combined."""
        fresh, resumed = (
            wrap(self.uncombined, ir.Accumulate(ACCUMULATOR, "=", v)) for v in (self.start, stored)
        )
        if self.group.leader.mma:
            fresh = ir.Block(self.matrix(ir.Action.CLEAR))
            resumed = ir.Block((resumed, *self.matrix(ir.Action.TAKE)))
        if self.held is not None:
            held = ir.Accumulate(ACCUMULATOR, "=", ir.Load(self.held, self.type, total=True))
            going_on = wrap(self.uncombined, held)
            return ir.First(self.loops.before, fresh, going_on, every=self.together)
        if self.parts > 1:
            return fresh
        kept = ir.Block(self.matrix(ir.Action.TAKE, self.fragments))
        if self.fragments == self.into and self.group.start is None:
            resumed = kept
        first = fresh if self.group.leader.point.initialise else resumed
        if self.fragments is not None:
            resumed = kept
        return first if first == resumed else self.first_or_later(first, resumed)

    def end(self, *results: ir.Statement) -> tuple[ir.Statement, ...]:
        """What is done after the last part of a reduction: ``results``, of sums that vectors have.
        After those before it, sums are stored to be resumed."""
        given = (*self.matrix(ir.Action.GIVE), *results)
        if self.fragments is None:
            return given
        kept = self.matrix(ir.Action.GIVE, self.fragments)
        if self.fragments == self.into:
            return kept
        return (ir.First(self.loops.before, ir.Block(given), ir.Block(kept), last=True),)

    def store_results(self, value: ir.Value) -> ir.Statement:
        store = ir.Store(self.into, value, self.group.leader.streamed)
        return ir.Block(
            ended(self.group, *results(store, self.group.siblings, self.loops.combined))
        )

    def add(self, stored: ir.Value, own: ir.Value, scratch: list[ir.Tensor]) -> ir.Statement:
        """Adds to what there was before: no accumulator takes more than its part."""
        point = self.group.leader.point
        if self.held is not None:
            return self._add_seldom(stored, own, self.held, scratch)
        more = self.store_results(ir.Binary(point.op, stored, own, self.type))
        first = self.store_results(own) if point.initialise else more
        if long_sums.parts_are_many(self.parts):
            lost = _scratch_results(self.group.leader, "lost", scratch)
            kept, value = long_sums.carried_over(stored, own, lost, self.type)
            first = ir.Block((first, ir.Store(lost, self.start)))
            more = ir.Block((*kept, self.store_results(value)))
        both = wrap(self.uncombined, first), wrap(self.uncombined, more)
        return both[0] if first == more else self.first_or_later(*both)

    def _add_seldom(
        self, stored: ir.Value, own: ir.Value, held: ir.TensorRef, scratch: list[ir.Tensor]
    ) -> ir.Statement:
        """As ``add``, of several parts at a time, which are resumed at ``held`` before."""
        started: list[ir.Statement] = []
        if self.group.leader.point.initialise:
            started.append(ir.Store(self.into, self.start))
        added: ir.Statement = self.store_results(ir.Binary("+", stored, own, self.type))
        if long_sums.parts_are_many(-(-self.parts // self.together)):
            lost = _scratch_results(self.group.leader, "lost", scratch)
            kept, value = long_sums.carried_over(stored, own, lost, self.type)
            started.append(ir.Store(lost, self.start))
            added = ir.Block((*kept, self.store_results(value)))
        begun = wrap(self.uncombined, ir.Block(tuple(started)))
        both = wrap(self.uncombined, added), wrap(self.uncombined, ir.Store(held, own))
        last = ir.First(self.loops.before, *both, last=True, every=self.together)
        return ir.Block((self.first_or_later(begun, ir.Block(())), last))

    def first_or_later(self, first: ir.Statement, later: ir.Statement) -> ir.Statement:
        """What is done before there are partial results, and where there are."""
        return ir.First(self.loops.before, first, later) if self.loops.before else first


def _reduce(
    group: FusionGroup,
    loops: Levels,
    into: ir.TensorRef,
    fills: Fills,
    scratch: list[ir.Tensor],
) -> ir.Statement:
    """The accumulation, from what is stored at ``into``, a nest before it or the identity, to
    there."""
    nest, point = group.leader, group.leader.point
    points = {} if nest.sequential else {ACCUMULATOR: point}
    points |= {s.accumulator: s.point for s in group.siblings if s.always}
    most = long_sums.most_points(points.values())
    sums = _in_larger_parts(_Sums(group, loops, into, loops.parts_in_memory(most)), most, scratch)
    type_ = sums.type
    stored = group.start[1] if group.start is not None else ir.Load(into, type_, total=True)
    fixed_guard = None if loops.before or loops.combined else cut.guard_of_results(group)
    whole = nest.compacted is None and fixed_guard is None
    own_point = point if whole else unguarded(point)
    excess = _Excess.from_nest(nest, loops)
    bounds: tuple[Bound, ...] = ()
    if all(s.always for s in group.siblings) and nest.excess is None and not point.kept:
        own_points = (point, *(s.point for s in group.siblings))
        inner = cut.with_cuts(nest, loops.inner, own_points, apart=fixed_guard is None)
        if whole and inner == loops.inner:
            bounds = _bounds_of_tiles(nest, loops, own_points) if sums.parts == 1 else ()
            inner = inner if bounds else cut.with_borders_apart(nest, inner, own_points)
        loops = replace(loops, inner=inner)
    over = tuple(x.fold for x in loops.registers)
    around = sums.matrix(ir.Action.GIVE), sums.matrix(ir.Action.CLEAR)
    carried = long_sums.Carried.from_loops(loops.inner, points, over, around)
    if loops.in_fragments(nest) and not carried.totals:
        sums = replace(sums, fragments=_fragments(group, loops, into, scratch))
    nan = SeenNan.from_registers(point, group.siblings, loops.registers, loops.combined)
    own = nan.of_one(ir.Variable(ACCUMULATOR, type_))
    if fixed_guard is not None:
        own = ir.Select(fixed_guard, own, sums.start, type_)
    declared: list[ir.Statement] = [
        *(ir.Declare(s.accumulator, s.point.type, over, s.start) for s in group.siblings),
        *nan.declared,
    ]
    if nest.excess is not None:
        declared += excess.declared
        own = ir.Binary("-", own, ir.Variable(_EXCESS, type_), type_)
    if loops.combined:
        declared.append(ir.Declare(ACCUMULATOR, type_, over, sums.start))
        own = nan.of_all(ir.Combined(own, point.op, loops.combined, type_))
        last = sums.add(stored, own, scratch)
    else:
        declared += (ir.Declare(ACCUMULATOR, type_, over), sums.begin(stored))
        last = (
            sums.add(stored, own, scratch)
            if sums.parts > 1
            else wrap(sums.uncombined, sums.store_results(own))
        )

    def sum_of(point: ir.Point, siblings: Sequence[Sibling]) -> ir.Statement:
        steps = (*point.lets, *point.kept, *updates(point, siblings, bool(nan.declared)))
        step = ir.Block((wrap(loops.dots, ir.Block((*nest.prefetched, *steps))), *excess.beside))
        total = wrap((*loops.inner, *loops.registers), step, fills, dict(carried.pauses))
        return ir.Block((*carried.declared, *declared, total, *sums.end(*carried.last, last)))

    block: ir.Statement = sum_of(own_point, group.siblings)
    if bounds:
        held = [replace(s, point=cut.holding(nest, s.point, bounds)) for s in group.siblings]
        block = ir.Within(bounds, sum_of(cut.holding(nest, own_point, bounds), held), block)
    if excess.apart:
        inside = wrap(excess.outer[excess.depth :], block, fills)
        return wrap(excess.outer[: excess.depth], ir.Block((*excess.apart, inside)), fills)
    return wrap(loops.outer, block, fills)


def _fragments(
    group: FusionGroup, loops: Levels, into: ir.TensorRef, scratch: list[ir.Tensor]
) -> ir.TensorRef | None:
    """Where the matrix unit keeps sums as fragments between blocks, if anywhere."""
    nest = group.leader
    here = into == nest.point.target and not (group.epilogues or nest.streamed)
    if nest.fragments and here:
        return into
    return _scratch_fragments(nest, loops, scratch) if loops.before else None


def _bounds_of_tiles(nest: ir.Nest, loops: Levels, points: Sequence[ir.Point]) -> tuple[Bound, ...]:
    """The bounds that are asked for once in each register tile, as they mostly hold there."""
    bounds = cut.bounds_asked(nest, points)
    widths = {x.fold.dim: x.fold.step for x in loops.outer}
    return bounds if cut.mostly_held(nest, bounds, widths) else ()


@dataclass(frozen=True, slots=True)
class _Excess:
    """Sums of what each point's value has too much, once for all of the accumulators that have
    the same of it. They are summed up beside the accumulators where that reads an operand that is
    no panel and no loop comes back to; else in a loop of their own, before those that come back."""

    declared: tuple[ir.Statement, ...] = ()
    beside: tuple[ir.Statement, ...] = ()
    """What a step of the accumulators does besides."""
    apart: tuple[ir.Statement, ...] = ()
    """What comes first inside of the outermost ``depth`` of the loops ``outer``."""
    depth: int = 0
    outer: tuple[ir.Loop, ...] = ()
    """Those around the accumulators; where no other order matters, those of one iteration first,
    behind which sums for all the loops inside are made once. On Zen 5, a 3x3 convolution of int8 in
    NHWC takes .63 of the time."""

    @staticmethod
    def from_nest(nest: ir.Nest, loops: Levels) -> _Excess:
        if nest.excess is None:
            return _Excess()
        point = nest.point
        moving = dims_of_values([nest.excess])
        own = tuple(x for x in loops.registers if moving & {x.fold.dim, x.fold.name})
        alike = tuple(x.fold for x in loops.registers if x not in own)
        zero = identity(point.op, point.type.compute)
        over = tuple(x.fold for x in own)
        declared = ir.Declare(_EXCESS, point.type.compute, over, zero)
        sum_ = wrap(loops.dots, ir.Accumulate(_EXCESS, point.op, nest.excess))
        read = {x.ref.tensor for x in loads(nest.excess)}
        filled = {s.inside for s in nest.staged if s.panel.tensor in read}
        around = {s.inside for s in nest.staged}
        fixed = (x.kind is ir.Kind.PARALLEL or x.fold in around for x in loops.outer)
        first = max((k + 1 for k, stays in enumerate(fixed) if stays), default=0)
        dims = [x.fold.dim for x in loops.outer]
        later = sorted(
            loops.outer[first:],
            key=lambda x: not provably_equal(x.fold.count, 1) or dims.count(x.fold.dim) > 1,
        )
        outer = (*loops.outer[:first], *later)
        begins = (
            x.kind is ir.Kind.PARALLEL
            or x.fold in filled
            or bool(moving & {x.fold.dim, x.fold.name})
            for x in outer
        )
        depth = max((k + 1 for k, new in enumerate(begins) if new), default=0)
        held = {x.fold for x in (*loops.inner, *loops.registers)}
        if (filled or depth < len(outer)) and not filled & held:
            apart = declared, wrap((*loops.inner, *own), sum_)
            return _Excess(apart=apart, depth=depth, outer=outer)
        beside = ir.First(alike, sum_, ir.Block(())) if alike else sum_
        return _Excess((declared,), (beside,))


def _in_scratch(
    nest: ir.Nest, loops: Levels, fills: Fills, scratch: list[ir.Tensor]
) -> ir.Statement:
    """Partial results of a 16-bit float in float32, so that it is rounded once."""
    point = nest.point
    wide = point.type.compute
    at = _scratch_results(nest, "partial", scratch)
    own = result_loops(nest)
    parts: list[ir.Statement] = []
    if not point.initialise:
        parts.append(wrap(own, ir.Store(at, ir.Load(point.target, point.type, total=True))))
    parts.append(_reduce(FusionGroup(nest), loops, at, fills, scratch))
    parts.append(wrap(own, ir.Store(point.target, ir.Load(at, wide, total=True))))
    return ir.Block(tuple(parts))


def _in_larger_parts(sums: _Sums, most: int | None, scratch: list[ir.Tensor]) -> _Sums:
    """Lets accumulators take as many parts of a sum, one after the other, as they may, before they
    are added to the total. Between two parts they wait in scratch memory, which the first cache
    keeps beside the rows that are read; totals and what rounding took would fill it. On Zen 4, sums
    of columns take .96 of the time. Only where all parts are whole."""
    nest, loops = sums.group.leader, sums.loops
    if most is None or not long_sums.parts_are_many(sums.parts) or len(loops.before) != 1:
        return sums
    fold = loops.before[0]
    extents = nest.dim(fold.dim).extent, fold.count, long_sums.iterations(loops.inner)
    varies = any(isinstance(n, Size) for n in extents)
    if varies or nest.mma or nest.excess is not None or sums.group.siblings or loops.combined:
        return sums
    if sums.group.start is not None or sums.type != nest.point.type.compute:
        return sums
    together = most // long_sums.iterations(loops.inner)
    if fold.count * fold.step != nest.dim(fold.dim).extent or together < 2:
        return sums
    return replace(sums, held=_scratch_results(nest, "held", scratch), together=together)


def _scratch_results(nest: ir.Nest, name: str, scratch: list[ir.Tensor]) -> ir.TensorRef:
    """Scratch memory in which each result has an element to compute with."""
    dims = [d for d in nest.dims if not d.reduction]
    layout = ir.contiguous(
        nest.point.type.compute, (d.extent for d in dims), (d.first for d in dims)
    )
    made = ir.Tensor(f"{nest.name}.{name}", ir.Role.SCRATCH, layout)
    scratch.append(made)
    return ir.TensorRef(made.name, nest.point.target.subscripts)


def _scratch_fragments(nest: ir.Nest, loops: Levels, scratch: list[ir.Tensor]) -> ir.TensorRef:
    """Scratch memory in which each sum that loops come back to has an element, those of a fragment
    together."""
    begin = next(k for k, x in enumerate(loops.outer) if x.fold in loops.before)
    inside = (*loops.outer[begin:], *loops.registers)
    place, size = packed([x.fold for x in inside if not nest.dim(x.fold.dim).reduction])
    type_ = nest.point.type.compute
    layout = ir.contiguous(type_, (size + LINE // type_.itemsize,), (0,))
    layout = replace(layout, base=LINE)
    # Of those in the loops alone: chunks that threads take at once may not share them.
    made = ir.Tensor(f"{nest.name}.sums", ir.Role.SCRATCH, layout, private=True)
    scratch.append(made)
    return ir.TensorRef(made.name, (place,))
