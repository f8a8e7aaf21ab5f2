"""What is legal in the loop IR. Run between passes; a violation is a mistake in a pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import TypeAlias, assert_never

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import inside as directly_inside
from tcl.codegen.loopir.walk import statements, walk
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.types import INT64, UINT64

_Known: TypeAlias = dict[str, tuple[ir.Fold, ...]]
"""Variable in scope → the folds that have one each."""


def verify(program: ir.Program | ir.Built) -> None:
    """Raises ``IRError`` with the reason if the program is not well formed."""
    tensors = [t.name for t in program.tensors]
    dims = [d.name for s in program.spaces for d in s.dims]
    if any(len(set(names)) != len(names) for names in (tensors, dims)):
        raise ir.IRError(f"program {program.name}: two tensors or dimensions share a name")
    for tensor in program.tensors:
        layout = tensor.layout
        if not len(layout.extents) == len(layout.strides) == len(layout.origin):
            raise ir.IRError(f"tensor {tensor.name}: extents, strides and origin differ in rank")
    if isinstance(program, ir.Program):
        for nest in program.nests:
            _Checks(program, f"nest {nest.name}", (nest,)).check_nest(
                nest, nest is program.nests[0]
            )
        return
    for k, kernel in enumerate(program.kernels):
        _Checks(program, f"kernel {k} of {program.name}", kernel.spaces).check_kernel(kernel)


class _Checks:
    """Of one nest, or of a kernel."""

    def __init__(
        self, program: ir.Program | ir.Built, where: str, spaces: Sequence[ir.Space]
    ) -> None:
        self.program, self.where = program, where
        self.dims = {d.name: d for s in spaces for d in s.dims}
        self.loops = [x for s in spaces for x in s.loops]
        self.kinds: dict[str, list[ir.Kind]] = {}
        for x in self.loops:
            self.kinds.setdefault(x.fold.dim, []).append(x.kind)
        self.names = {x.fold.name for x in self.loops}
        self.lanes = {x.fold for x in self.loops if x.kind is ir.Kind.VECTOR}
        self.threads = {x.fold for x in self.loops if x.kind is ir.Kind.THREAD}
        self.at_once = self.lanes | self.threads
        held = (ir.Kind.UNROLL, ir.Kind.MMA)
        self.fixed = self.at_once | {x.fold for x in self.loops if x.kind in held}
        self.folds_of = {d.name: s.folds(d.name) for s in spaces for d in s.dims}
        self.panels: set[str] = set()

    def fail(self, reason: str) -> ir.IRError:
        return ir.IRError(f"{self.where}: {reason}")

    def check_space(self, space: ir.Space) -> None:
        for dim in space.dims:
            if dim.extent < 0:
                raise self.fail(f"{dim.name} has a negative extent")
            self.check_folds(dim, space.folds(dim.name))

    def check_nest(self, nest: ir.Nest, first: bool) -> None:
        self.check_space(nest)
        inside = [x.fold for x in nest.loops]  # of a point, all of them are
        for loop in nest.loops:
            if loop.fold.dim not in self.dims:
                raise self.fail(f"it loops over {loop.fold.name}, but lacks that dimension")
            self.check_loop(loop, nest)
            if loop.alignment and (loop.kind is not ir.Kind.SERIAL or nest.staged or nest.reduces):
                raise self.fail(f"{loop.fold.name} cannot begin at another point than the first")
            if loop.compacted is not None:
                self.check_compacted(loop, loop.compacted, inside)
        chunks = [x.kind is ir.Kind.PARALLEL for x in nest.loops]
        if any(b and not a for a, b in pairwise(chunks)):
            raise self.fail("a loop over chunks lies in another loop")
        if nest.joined and first:
            raise self.fail("there is no nest before it that it could share chunks with")
        self.check_order(nest)
        variables: _Known = {}
        for let in nest.point.lets:
            self.check_value(let.value, variables, inside)
            variables[let.name] = ()
        for value in (nest.point.value, nest.excess):
            if value is not None:
                self.check_value(value, variables, inside)
        self.check_ref(nest.point.target, inside)
        for staged in nest.staged:
            if staged.inside is not None and staged.inside not in inside:
                raise self.fail(f"{staged.panel.tensor} is filled in a loop that it lacks")
            if self.program.tensor(staged.panel.tensor).role is not ir.Role.SCRATCH:
                raise self.fail(f"{staged.panel.tensor} is no scratch memory")

    def check_order(self, nest: ir.Nest) -> None:
        dims = [nest.dim(x.fold.dim) for x in nest.loops]
        if nest.running is not None:
            at = [k for k, d in enumerate(dims) if d.name == nest.running]
            inner = [x for x in nest.loops[at[0] + 1 :] if x.kind is ir.Kind.SERIAL]
            if any(not nest.dim(x.fold.dim).reduction for x in inner) or len(at) > 2:
                raise self.fail(f"loops lie inside of that over {nest.running} or split it")
            if len(at) == 2 and nest.loops[at[1]].kind is not ir.Kind.VECTOR:
                raise self.fail(f"loops split {nest.running} although {nest.sequential}")
        elif nest.sequential and _held(nest.dims, nest) != _held(dims, nest):
            raise self.fail(f"loops were split or reordered although {nest.sequential}")

    def check_compacted(
        self, loop: ir.Loop, compacted: ir.Compacted, inside: list[ir.Fold]
    ) -> None:
        fold = loop.fold
        if loop.kind is not ir.Kind.SERIAL or (fold,) != self.folds_of[fold.dim]:
            raise self.fail(f"{fold.name} cannot go through some points alone")
        self.check_value(compacted.condition, {}, inside)
        self.check_ref(compacted.count, inside)
        self.check_ref(compacted.offset, inside)

    def check_kernel(self, kernel: ir.Kernel) -> None:
        for space in kernel.spaces:
            self.check_space(space)
        sums = (ir.Accumulate, ir.Scan, ir.Update)
        reduces = any(isinstance(s, sums) for s in statements(kernel.body))
        for folds in kernel.grid:
            names = ", ".join(f.name for f in folds)
            if len({(f.step, f.count, self.dims[f.dim].extent) for f in folds}) != 1:
                raise self.fail(f"{names} are not alike")
            if reduces and any(self.dims[f.dim].reduction for f in folds):
                raise self.fail(f"{names}: a reduction is shared among threads")
        for panel in kernel.panels:
            if panel.space not in (s.name for s in kernel.spaces):
                raise self.fail(f"{panel.tensor} is filled by {panel.space}, which it lacks")
            if not self.program.tensor(panel.tensor).shared or panel.offset >= kernel.shared:
                raise self.fail(f"{panel.tensor} lies in no memory of a block")
        self.panels = {p.tensor for p in kernel.panels}
        self.check_statement(kernel.body, [f for folds in kernel.grid for f in folds], {})

    def check_folds(self, dim: ir.Dim, folds: Sequence[ir.Fold]) -> None:
        """The folds of one dimension cover it exactly once. Where none is shared among the threads
        of a block, they nest, outermost first."""
        if self.threads.intersection(folds):
            folds = sorted(folds, key=lambda f: -f.step)
        span = dim.extent
        for fold in folds:
            if fold.step < 1 or fold.count != -(-span // fold.step):
                raise self.fail(f"{fold.name}: {fold.count} x {fold.step} does not cover {span}")
            span = fold.step
        if not folds or folds[-1].step != 1:
            raise self.fail(f"the loops over {dim.name} do not reach single points")
        kinds = self.kinds[dim.name]
        fixed = (ir.Kind.UNROLL, ir.Kind.VECTOR, ir.Kind.DOT, ir.Kind.MMA)
        if any(a in fixed and b not in fixed for a, b in pairwise(kinds)):
            raise self.fail(f"a serial loop over {dim.name} lies in an unrolled one or in lanes")
        if len({f.level for f in folds}) != len(folds):
            raise self.fail(f"two loops over {dim.name} have the same level")

    def whole(self, name: str, folds: Sequence[ir.Fold]) -> bool:
        """Whether a copy, which has loops of its own, goes through a whole dimension."""
        try:
            self.check_folds(self.dims[name], folds)
        except ir.IRError:
            return False
        return True

    def check_loop(self, loop: ir.Loop, nest: ir.Nest) -> None:
        name, kind, reduction = loop.fold.name, loop.kind, nest.dim(loop.fold.dim).reduction
        free = nest.running is not None and (not reduction or kind is ir.Kind.VECTOR)
        free |= nest.point.scatters and not reduction
        if nest.sequential and not free and kind not in (ir.Kind.SERIAL, ir.Kind.UNROLL):
            raise self.fail(f"{name} cannot be {kind.value}: {nest.sequential}")
        if kind is ir.Kind.VECTOR and loop.fold.step != 1:
            raise self.fail(f"{name}: lanes must be the innermost fold")
        if kind is ir.Kind.DOT and (loop != nest.loops[-1] or not reduction):
            raise self.fail(f"{name}: a dot product is the innermost reduction")
        if kind is ir.Kind.PARALLEL and reduction:
            raise self.fail(f"{name} is a reduction, and shared among threads")

    def check_statement(
        self, statement: ir.Statement, inside: list[ir.Fold], known: _Known
    ) -> None:
        """``inside``: the folds of the enclosing loops; ``known``: the names in scope."""
        match statement:
            case ir.Block(body=body):
                scope = dict(known)
                for s in body:
                    self.check_statement(s, inside, scope)
            case ir.Fill(body=inner):
                if statement.panel not in self.panels:
                    raise self.fail(f"{statement.panel} is no panel")
                self.check_statement(inner, inside, dict(known))
            case ir.For() | ir.Pipeline():
                self.check_all_inside(statement, inside, known)
            case ir.First() | ir.Within():
                self.check_either(statement, inside, known)
            case ir.Let(name=name, value=value):
                self.check_value(value, known, inside)
                known[name] = ()
            case ir.Scan():
                self.check_scan(statement, known, inside)
            case ir.Declare(name=name, over=over):
                if any(f not in self.fixed or f in inside for f in over):
                    raise self.fail(f"{name} is declared over a loop that has no registers")
                known[name] = over
            case ir.Accumulate(name=name, value=value):
                self.check_own(name, known, inside)
                self.check_value(value, known, inside)
            case ir.Carry() | ir.Matrix():
                self.check_accumulators(statement, inside, known)
            case ir.Store() | ir.Update():
                self.check_write(statement, inside, known)
            case ir.Prefetch(ref=ref):
                self.check_ref(ref, inside)
            case ir.Barrier() | ir.Last():
                self.check_meeting(statement, inside)
            case _:
                assert_never(statement)

    def check_meeting(self, last: ir.Barrier | ir.Last, inside: list[ir.Fold]) -> None:
        if self.threads.intersection(inside):
            raise self.fail("threads meet at a barrier in a loop that they share")
        if isinstance(last, ir.Barrier):
            return
        if last.among not in inside or any(f in self.fixed for f in inside):
            raise self.fail(f"blocks over {last.among.name} do not come together to one place")
        if not self.program.tensor(last.arrived).zeroed:
            raise self.fail(f"{last.arrived} does not begin with zeros")
        self.check_statement(last.body, [f for f in inside if f != last.among], {})

    def check_either(
        self, either: ir.First | ir.Within, inside: list[ir.Fold], known: _Known
    ) -> None:
        if isinstance(either, ir.First):
            if any(f not in inside for f in either.folds):
                raise self.fail("it asks for the first iteration of a loop from outside of it")
            if either.every and len(either.folds) != 1:
                raise self.fail("it asks for the first of some iterations of several loops")
        elif any(name not in self.dims for index, _ in either.bounds for name, _ in index.terms):
            raise self.fail("it asks for bounds of what is no dimension here")
        for side in (either.then, either.otherwise):
            self.check_statement(side, inside, dict(known))

    def check_accumulators(
        self, statement: ir.Carry | ir.Matrix, inside: list[ir.Fold], known: _Known
    ) -> None:
        if isinstance(statement, ir.Carry):
            self.check_carry(statement, known)
        else:
            self.check_matrix(statement, inside, known)

    def check_carry(self, carry: ir.Carry, known: _Known) -> None:
        for other in (carry.total, carry.lost or carry.total):
            if carry.name not in known or known.get(other) != known[carry.name]:
                raise self.fail(f"{carry.name} cannot be carried over to {other}")

    def check_matrix(self, matrix: ir.Matrix, inside: list[ir.Fold], known: _Known) -> None:
        over = known.get(matrix.name, ())
        rows = [x for x in self.loops if x.fold in over and x.kind is ir.Kind.MMA]
        if len(rows) != 1:
            raise self.fail(f"accumulator {matrix.name} is none of a matrix here")
        if matrix.at is not None:
            self.check_ref(matrix.at, [*inside, *(f for f in over if f not in inside)])

    def check_all_inside(
        self, loop: ir.For | ir.Pipeline, inside: list[ir.Fold], known: _Known
    ) -> None:
        fold = loop.loop.fold
        if loop.loop.kind is ir.Kind.PARALLEL:
            raise self.fail(f"the loop over chunks {fold.name} lies in a kernel")
        if fold in inside:
            raise self.fail(f"{fold.name} is looped over twice")
        if loop.loop.compacted is not None:
            self.check_ref(loop.loop.compacted.count, inside)
            self.check_ref(loop.loop.compacted.offset, inside)
        if loop.loop.cut is not None:
            self.check_cut(loop.loop, loop.loop.cut)
        if isinstance(loop, ir.Pipeline) and loop.buffers < 2:
            raise self.fail(f"{fold.name}: one buffer cannot be filled ahead")
        for s in directly_inside(loop):
            self.check_statement(s, [*inside, fold], dict(known))
        if loop.pause is not None:
            if loop.loop.kind is not ir.Kind.SERIAL or loop.pause.every < 1:
                raise self.fail(f"{fold.name} has no stretches of {loop.pause.every} iterations")
            self.check_statement(loop.pause.then, inside, dict(known))

    def check_cut(self, loop: ir.Loop, cut: ir.Cut) -> None:
        if loop.kind is not ir.Kind.SERIAL or not self.dims[loop.fold.dim].reduction:
            raise self.fail(f"{loop.fold.name} cannot leave out iterations")
        terms = [term for index, _ in cut.bounds for term in index.terms]
        if any(name not in self.dims or isinstance(factor, Size) for name, factor in terms):
            raise self.fail(f"{loop.fold.name} has bounds that do not say where it ends")

    def check_write(
        self, write: ir.Store | ir.Update, inside: list[ir.Fold], known: _Known
    ) -> None:
        tensor = write.ref.tensor
        self.check_ref(write.ref, inside)
        if any(not {f.dim, f.name} & write.ref.names for f in self.reduced_lanes(inside)):
            raise self.fail(f"lanes that are reduced write the same element of {tensor}")
        if self.program.tensor(tensor).role is ir.Role.INPUT:
            raise self.fail(f"it writes the input {tensor}")
        self.check_value(write.value, known, inside)

    def check_own(self, name: str, known: _Known, inside: Sequence[ir.Fold]) -> None:
        """Which accumulator the name means is decided here."""
        if name not in known:
            raise self.fail(f"accumulator {name} is not declared here")
        if any(f not in inside for f in known[name]):
            raise self.fail(f"accumulator {name} is used outside of its loops")
        if any(f not in known[name] for f in self.reduced_lanes(inside)):
            raise self.fail(f"lanes that are reduced share the accumulator {name}")

    def check_scan(self, scan: ir.Scan, known: _Known, inside: Sequence[ir.Fold]) -> None:
        """Lanes of a reduction that have one accumulator together may have no other lanes beside
        them; the accumulator is of all other iterations that run at once."""
        name = scan.name
        self.check_value(scan.value, known, inside)
        known[scan.result] = ()
        if name not in known:
            raise self.fail(f"accumulator {name} is not declared here")
        held = set(known[name])
        if held - set(inside):
            raise self.fail(f"accumulator {name} is used outside of its loops")
        for fold in inside:
            alone = fold in self.lanes and self.dims[fold.dim].reduction
            if fold in self.at_once and (fold in held) == alone:
                raise self.fail(f"{fold.name} has no accumulators {name} of its own, or too many")

    def reduced_lanes(self, inside: Sequence[ir.Fold]) -> list[ir.Fold]:
        """The loops around this place whose iterations run at once and are combined."""
        return [f for f in inside if f in self.at_once and self.dims[f.dim].reduction]

    def check_value(self, value: ir.Value, known: _Known, inside: Sequence[ir.Fold]) -> None:
        for v in walk(value):
            match v:
                case ir.Variable(name=name):
                    if name not in known:
                        raise self.fail(f"{name} is used before it has a value")
                    if any(f not in inside for f in known[name]):
                        raise self.fail(f"accumulator {name} is used outside of its loops")
                case ir.Combined(value=each, folds=folds):
                    self.check_value(each, known, [*inside, *folds])
                    self.check_combined(each, known, folds)
                case ir.Position(index=index):
                    self.check_affine(index, inside)
                case ir.Load(ref=ref):
                    self.check_ref(ref, inside)

    def check_combined(self, value: ir.Value, known: _Known, folds: Sequence[ir.Fold]) -> None:
        """Lanes that are reduced have values of their own to be combined, not one that they
        share."""
        named = {f for v in walk(value) if isinstance(v, ir.Variable) for f in known[v.name]}
        for fold in self.reduced_lanes(folds):
            if fold not in named:
                raise self.fail(f"lanes of {fold.name} are combined, which share one value")

    def check_ref(self, ref: ir.TensorRef, inside: Sequence[ir.Fold]) -> None:
        layout = self.program.tensor(ref.tensor).layout
        if len(ref.subscripts) != len(layout.extents):
            raise self.fail(f"{ref.tensor} has {len(layout.extents)} dimensions")
        for subscript in ref.subscripts:
            if isinstance(subscript, ir.Affine):
                self.check_affine(subscript, inside)
            elif subscript.value.type not in (INT64, UINT64):
                raise self.fail(f"a subscript of {ref.tensor} is not int64 or uint64")

    def check_affine(self, index: ir.Affine, inside: Sequence[ir.Fold]) -> None:
        """Every name is a fold, or a dim with all of its folds, of the loops around this place."""
        around = {f.name for f in inside}
        for name, _ in index.terms:
            if name in around:
                continue
            if name in self.names:
                raise self.fail(f"{name} is used outside of its loop")
            if name not in self.dims:
                raise self.fail(f"it has no dimension {name}")
            here = tuple(f for f in inside if f.dim == name)
            if set(here) != set(self.folds_of[name]) and not self.whole(name, here):
                raise self.fail(f"{name} is used outside of its loops")


def _held(dims: Iterable[ir.Dim], nest: ir.Nest) -> list[ir.Dim]:
    """Those of the dimensions of a nest that runs in order that have to stay so."""
    if not nest.point.scatters:
        return list(dims)
    return [d for d, _ in groupby(d for d in dims if d.reduction)]
