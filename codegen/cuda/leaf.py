"""The innermost part of a nest: unrolled loops and lanes around a few statements.

What is read is read first, to registers, in vectors where memory allows; then the statements are
written out; what is stored in lanes is gathered and written in vectors.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tcl.codegen import ir
from tcl.codegen.cuda.lines import Lines
from tcl.codegen.cuda.memory import Memory
from tcl.codegen.cuda.mma import tensor_cores
from tcl.codegen.cuda.names import Names
from tcl.codegen.cuda.scope import Geometry, Scope
from tcl.codegen.cuda.types import c_type, from_memory
from tcl.codegen.cuda.values import Expressions
from tcl.codegen.ir_walk import loads, statements, values_in, walk
from tcl.grammar.types import ScalarType


@dataclass(slots=True)
class Accumulators:
    """Registers of each thread."""

    name: str
    over: tuple[ir.Fold, ...]
    """Those that a thread has for itself."""


@dataclass(slots=True)
class Leaf:
    """Unrolled loops and lanes, and the statements inside of them."""

    loops: tuple[ir.Loop, ...]
    body: tuple[ir.Statement, ...]
    guarded: tuple[str, ...]
    """Dimensions whose points have to be there for the statements."""
    fragments: dict[ir.TensorRef, Fragment] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a thread reads of an operand before it computes."""

    load: ir.Load
    over: tuple[ir.Fold, ...]
    """The folds that it depends on."""
    along: ir.Fold | None
    """The one in which ``width`` elements are read at once."""
    width: int
    guarded: tuple[str, ...]
    """Dimensions whose points have to be there; elsewhere it is zero."""


def hoistable(load: ir.Load) -> bool:
    """Whether an element can be read before it is known that it is needed."""
    return load.total and all(isinstance(s, ir.Affine) for s in load.ref.subscripts)


def fragment(geometry: Geometry, load: ir.Load, loops: Sequence[ir.Loop]) -> Fragment:
    """How an operand is read in the unrolled loops and lanes around it."""
    tensor = geometry.program.tensor(load.ref.tensor)
    place = tensor.layout.place(load.ref)
    over = tuple(x.fold for x in loops if geometry.stride(place, x.fold))
    best: tuple[int, ir.Fold | None] = (1, None)
    for fold in over:
        width = geometry.width(tensor.layout, place, fold)
        if width > best[0]:
            best = width, fold
    dims = {f.dim for f, _ in geometry.strides(place)}
    guarded = (
        () if tensor.shared else tuple(d for d in geometry.dims if d in dims and geometry.ragged[d])
    )
    return Fragment(load, over, best[1], best[0], guarded)


class Leaves:
    """Writes leaves."""

    def __init__(self, geometry: Geometry, memory: Memory, names: Names, lines: Lines) -> None:
        self.geometry, self.memory, self.names, self.lines = geometry, memory, names, lines
        self.accumulators: dict[str, Accumulators] = {}
        self.used: set[str] = set()

    # Values.

    def text(self, value: ir.Value, scope: Scope) -> str:
        return self._expressions(scope).text(value)

    def _expressions(self, scope: Scope) -> Expressions:
        def index(affine: ir.Affine, type_: ScalarType) -> str:
            text = self.memory.index(affine, scope)
            wanted = c_type(type_)
            return text if wanted == "int" and not self.wide else f"({wanted})({text})"

        def load(one: ir.Load) -> str:
            type_ = self.memory.type(one.ref.tensor)
            known = scope.loaded.get(one.ref)
            return from_memory(known or self.memory.element(one.ref, scope), type_)

        def variable(one: ir.Variable) -> str:
            if one.name in self.accumulators:
                return self.accumulator(one.name, scope)
            return scope.variables[one.name]

        def combined(one: ir.Combined) -> str:
            raise ir.IRError("sums of threads are combined on their own")

        made = Expressions(index, load, variable, combined)
        made.used = self.used
        return made

    wide = False
    """Whether index expressions are 64 bits wide."""

    def accumulator(self, name: str, scope: Scope) -> str:
        """The register that a name means here."""
        own = self.accumulators[name]
        return own.name + "".join(f"[{iteration(f, scope)}]" for f in own.over)

    def iteration(self, fold: ir.Fold, scope: Scope) -> str:
        """The number of a fold's iteration."""
        return iteration(fold, scope)

    # Leaves.

    def leaf(
        self, loops: Sequence[ir.Loop], body: ir.Statement, guarded: tuple[str, ...], scope: Scope
    ) -> None:
        """Unrolled loops and lanes around a body, at places where other loops are known."""
        product = tensor_cores(self, loops, body)
        if product is not None:
            product.write(scope)
            return
        statements_ = body.body if isinstance(body, ir.Block) else (body,)
        lane = next((x.fold for x in loops if x.kind is ir.Kind.VECTOR), None)
        if lane is not None and self._partial(lane, guarded):
            # Whole vectors where there are any, single elements at the edge.
            last = scope
            reach = sum(x.fold.step * (x.fold.count - 1) for x in loops if x.fold.dim == lane.dim)
            dim = self.geometry.dims[lane.dim]
            first = self.memory.index(ir.Affine.of(lane.dim), last)
            with self.lines.block(f"if ({first} + {reach} < {dim.first + dim.extent}) {{"):
                inner = tuple(d for d in guarded if d != lane.dim)
                self._whole(loops, statements_, inner, scope, frozenset({lane.dim}))
            with self.lines.block("else {"):
                self._whole(loops, statements_, guarded, scope, frozenset())
            return
        self._whole(loops, statements_, guarded, scope, frozenset())

    def _partial(self, lane: ir.Fold, guarded: tuple[str, ...]) -> bool:
        """Whether some vectors have points that are there and points that are not."""
        return lane.dim in guarded and self.geometry.dims[lane.dim].extent % lane.count != 0

    def _whole(
        self,
        loops: Sequence[ir.Loop],
        body: Sequence[ir.Statement],
        guarded: tuple[str, ...],
        scope: Scope,
        there: frozenset[str],
    ) -> None:
        """``there``: dimensions of which all points are there, though elsewhere some are not."""
        before = self.geometry.ragged
        self.geometry.ragged = {d: r and d not in there for d, r in before.items()}
        try:
            fragments = self._fragments(loops, body)
            arrays = {f.load.ref: self._read(f, scope) for f in fragments}
            self._loops(list(loops), body, guarded, scope, (fragments, arrays))
        finally:
            self.geometry.ragged = before

    def _fragments(self, loops: Sequence[ir.Loop], body: Sequence[ir.Statement]) -> list[Fragment]:
        """What can be read before the loops."""
        if not loops:
            return []
        found: dict[ir.TensorRef, Fragment] = {}
        for statement in body:
            for value in values_in(statement):
                for load in loads(value):
                    if hoistable(load) and load.ref not in found:
                        found[load.ref] = fragment(self.geometry, load, loops)
        return list(found.values())

    def _read(self, fragment: Fragment, scope: Scope) -> str:
        """Reads a fragment to registers; its variable."""
        ref = fragment.load.ref
        type_ = self.memory.element_type(ref.tensor)
        name = self.names.new(f"{self.memory.name(ref.tensor).removesuffix('_tile')}_read")
        sizes = "".join(f"[{f.count}]" for f in _last(fragment.over, fragment.along))
        self.lines.add(f"{type_} {name}{sizes};")
        moved = [f for f in fragment.over if f != fragment.along]
        with self.unrolled(moved, scope) as inner:
            to = name + "".join(f"[{iteration(f, inner)}]" for f in moved)
            test = self.memory.inside(list(fragment.guarded), inner) if fragment.guarded else ""
            if fragment.along is None or fragment.width == 1:
                self._read_one(fragment, to, test, inner)
                return name
            fold, width = fragment.along, fragment.width
            self.used.add("load")
            for k in range(0, fold.count, width):
                at = inner.with_fold(fold, str(k))
                place = self.memory.pointer(ref, at)
                test = self.memory.inside(list(fragment.guarded), at) if fragment.guarded else ""
                target = f"{to} + {k}" if k else to
                self.lines.add(f"load<{width}>({target}, {place}{', ' + test if test else ''});")
        return name

    def _read_one(self, fragment: Fragment, to: str, test: str, scope: Scope) -> None:
        element = self.memory.element(fragment.load.ref, scope)
        type_ = self.memory.element_type(fragment.load.ref.tensor)
        self.lines.add(f"{to} = {f'{test} ? {element} : ({type_})0' if test else element};")

    @contextmanager
    def unrolled(self, folds: Sequence[ir.Fold], scope: Scope) -> Iterator[Scope]:
        """Inside of loops that are written out."""
        with self.lines.nested():
            for fold in folds:
                scope = self._enter(fold, scope)
            yield scope

    def _enter(self, fold: ir.Fold, scope: Scope) -> Scope:
        """Opens a loop that is written out."""
        if fold.count == 1:
            return scope.with_fold(fold, "0")
        name = self.names.of(f"iteration {fold.name}", fold.name.partition(".")[2])
        self.lines.add("#pragma unroll", margin=True)
        self.lines.open(f"for (int {name} = 0; {name} < {fold.count}; ++{name}) {{")
        return scope.with_fold(fold, name if fold.step == 1 else f"{name} * {fold.step}")

    def _loops(
        self,
        loops: list[ir.Loop],
        body: Sequence[ir.Statement],
        guarded: tuple[str, ...],
        scope: Scope,
        read: tuple[list[Fragment], dict[ir.TensorRef, str]],
    ) -> None:
        lane = loops[-1].fold if loops and loops[-1].kind is ir.Kind.VECTOR else None
        fixed = [x.fold for x in loops if x.fold != lane]
        with self.unrolled(fixed, scope) as inner:
            arrays = read[1]
            inner = self.complete(inner, body, lane, arrays)
            outside = [d for d in guarded if lane is None or d != lane.dim]
            if lane is not None and lane.dim in guarded and not self._partial(lane, guarded):
                outside.append(lane.dim)
                inner = inner.with_fold(lane, "0")
            with self.guard(outside, inner):
                self._lanes(lane, body, [d for d in guarded if d not in outside], inner, read)

    def complete(
        self,
        scope: Scope,
        body: Sequence[ir.Statement],
        lane: ir.Fold | None = None,
        read: Container[ir.TensorRef] = (),
    ) -> Scope:
        """Gives dimensions variables all of whose folds are known here, and that are used besides
        what is ``read`` already."""
        used = _used(body, self.geometry, read)
        for name in used:
            folds = self.geometry.folds[name]
            if name in scope.dims or any(f.name not in scope.folds or f == lane for f in folds):
                continue
            parts = [f for f in folds if scope.folds[f.name] != "0"]
            if len(parts) < 2 and not self.geometry.dims[name].first:
                if parts and scope.folds[parts[0].name].isidentifier():
                    scope = scope.with_dim(name, scope.folds[parts[0].name])
                continue
            text = self.memory.index(ir.Affine.of(name), scope)
            variable = self.names.new(name.rpartition(".")[2])
            self.lines.add(f"const {'long long' if self.wide else 'int'} {variable} = {text};")
            scope = scope.with_dim(name, variable)
        return scope

    @contextmanager
    def guard(self, dims: Sequence[str], scope: Scope) -> Iterator[None]:
        """Inside of a test that these dimensions are at points that they have."""
        if not dims:
            yield
            return
        with self.lines.block(f"if ({self.memory.inside(list(dims), scope)}) {{"):
            yield

    def _lanes(
        self,
        lane: ir.Fold | None,
        body: Sequence[ir.Statement],
        guarded: Sequence[str],
        scope: Scope,
        read: tuple[list[Fragment], dict[ir.TensorRef, str]],
    ) -> None:
        # At an edge, each element is written on its own.
        whole = lane is not None and lane.dim not in guarded
        gathered = self._gathered(lane, body) if lane is not None and whole else {}
        for ref, (name, _) in gathered.items():
            size = lane.count if lane is not None else 1
            self.lines.add(f"{self.memory.element_type(ref.tensor)} {name}[{size}];")
        with self.unrolled([lane] if lane is not None else [], scope) as inner:
            if lane is not None:
                inner = self.complete(inner, body, None, {*read[1], *gathered})
            inner = inner.with_loaded({f.load.ref: _element(f, read[1], inner) for f in read[0]})
            with self.guard(guarded, inner):
                self.each(body, inner, {r: n for r, (n, _) in gathered.items()}, lane)
        if lane is None:
            return
        for ref, (name, width) in gathered.items():
            for k in range(0, lane.count, width):
                place = self.memory.pointer(ref, scope.with_fold(lane, str(k)))
                self.used.add("store")
                self.lines.add(f"store<{width}>({place}, {f'{name} + {k}' if k else name});")

    def _gathered(
        self, lane: ir.Fold, body: Sequence[ir.Statement]
    ) -> dict[ir.TensorRef, tuple[str, int]]:
        """Elements that are written in vectors: the registers that they are gathered in, and how
        many are written at once."""
        found = {}
        for statement in body:
            if isinstance(statement, ir.Store):
                ref, layout = statement.ref, self.memory.layout(statement.ref)
                if all(isinstance(s, ir.Affine) for s in ref.subscripts):
                    width = self.geometry.width(layout, layout.place(ref), lane)
                    if width > 1:
                        found[ref] = self.names.new(f"{self.memory.name(ref.tensor)}_made"), width
        return found

    def each(
        self,
        body: Sequence[ir.Statement],
        scope: Scope,
        gathered: dict[ir.TensorRef, str],
        lane: ir.Fold | None,
    ) -> Scope:
        """The statements of one point."""
        for statement in body:
            values = self._expressions(scope)
            match statement:
                case ir.Let(name=name, value=value):
                    variable = self.names.new(name)
                    self.lines.add(f"const {c_type(value.type)} {variable} = {values.text(value)};")
                    scope = scope.with_variable(name, variable)
                case ir.Accumulate(name=name, op=op, value=value):
                    own = self.accumulator(name, scope)
                    self.lines.add(values.accumulate(op, own, value, value.type))
                case ir.Store(ref=ref, value=value):
                    text = values.stored(value, self.memory.type(ref.tensor))
                    if ref in gathered and lane is not None:
                        place = f"{gathered[ref]}[{iteration(lane, scope)}]"
                    else:
                        place = self.memory.element(ref, scope)
                    self.lines.add(f"{place} = {text};")
                case ir.Block(body=inner):
                    self.each(inner, scope, gathered, lane)
                case _:
                    raise ir.IRError(f"{type(statement).__name__} lies in an unrolled loop")
        return scope


def iteration(fold: ir.Fold, scope: Scope) -> str:
    """The number of a fold's iteration, which is written out."""
    return scope.folds[fold.name].partition(" * ")[0]


def _last(folds: Sequence[ir.Fold], last: ir.Fold | None) -> list[ir.Fold]:
    return [f for f in folds if f != last] + ([last] if last is not None else [])


def _element(fragment: Fragment, arrays: dict[ir.TensorRef, str], scope: Scope) -> str:
    """The register of an element that was read before."""
    order = _last(fragment.over, fragment.along)
    return arrays[fragment.load.ref] + "".join(f"[{iteration(f, scope)}]" for f in order)


def _used(
    body: Sequence[ir.Statement], geometry: Geometry, read: Container[ir.TensorRef]
) -> list[str]:
    """The dimensions that statements name besides what is ``read``, in the order of the program."""
    named: set[str] = set()
    for one in body:
        for s in statements(one):
            refs = [s.ref] if isinstance(s, ir.Store) else []
            for value in values_in(s):
                found = list(walk(value))
                refs += [v.ref for v in found if isinstance(v, ir.Load)]
                positions = (v.index for v in found if isinstance(v, ir.Position))
                named |= {geometry.dim_of(n) for a in positions for n, _ in a.terms}
            for ref in refs:
                affine = (x for x in ref.subscripts if isinstance(x, ir.Affine))
                if ref not in read:
                    named |= {geometry.dim_of(n) for a in affine for n, _ in a.terms}
    return [d for d in geometry.dims if d in named]
