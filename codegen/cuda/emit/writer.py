"""What the parts of a kernel are written with: names, lines, values, and the loops around them.

The text of a value has exactly the C++ type of its scalar type (``c_type``), so that the helper
functions of the prelude find theirs; what the callbacks give has to, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from tcl.codegen.cuda.cpp import arith, pieces
from tcl.codegen.cuda.cpp.arith import as_single, bare, bits_of, builtin, cast, is_rounded
from tcl.codegen.cuda.cpp.pieces import Lines, Piece
from tcl.codegen.cuda.cpp.types import (
    c_type,
    constant,
    from_memory,
    is_half,
    to_memory,
)
from tcl.codegen.cuda.emit.accesses import AccessWriter
from tcl.codegen.cuda.emit.names import CudaScope, Names
from tcl.codegen.cuda.emit.sizes import SizeParameters
from tcl.codegen.cuda.prelude.prelude import helpers_in
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import children, statements, values_in, walk
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.types import ScalarType


@dataclass(slots=True, eq=False)
class Expressions:
    """Writes values. Callbacks write what depends on the place: ``index`` an index expression as
    a value of a type, ``load`` an element that is read as a value (``from_memory`` of its tensor's
    type, which may be wider than the value's), ``variable`` a name's value, ``combined`` what
    accumulators give, ``size`` a number that is known at the launch, as a value of a C++ type.
    Their texts are expressions with spaces around binary operators."""

    index: Callable[[ir.Affine, ScalarType], str]
    load: Callable[[ir.Load], str]
    variable: Callable[[ir.Variable], str]
    combined: Callable[[ir.Combined], str]
    size: Callable[[Size, str], Piece] | None = None
    used: set[str] = field(default_factory=set)
    """The helper functions of all texts so far."""

    def text(self, value: ir.Value) -> str:
        return self._noted(self._piece(value).text)

    def stored(self, value: ir.Value, type_: ScalarType) -> str:
        """The value, which may be of another float type, as an element of a tensor of
        ``type_``, rounded once."""
        if not is_half(type_):
            return self._noted(to_memory(cast(self._piece(value), value.type, type_).text, type_))
        value = bare(value)
        if isinstance(value, ir.Cast) and value.type == type_:
            value = bare(value.operand)
        single = as_single(self._piece(value), value.type, type_)
        return self._noted(bits_of(single, type_).text)

    def accumulate(self, op: str, target: str, value: ir.Value, type_: ScalarType) -> str:
        """The statement ``target op= value``, for ``+ * min max`` and plain ``=``. Sums of
        products of floats are fused, also where a condition chooses the products."""
        t = type_.compute
        condition, chosen = guard(op, bare(value))
        plain = bare(chosen)
        if op == "=":
            return f"{target} = {self.text(value)};"
        if op == "+" and t.is_float and isinstance(plain, ir.Binary) and plain.op == "*":
            factors = self._piece(plain.left), self._piece(plain.right)
            fused = builtin("fma", [*factors, Piece(target)], t)
            when = "" if condition is None else f"if ({self._piece(condition).text}) "
            return self._noted(f"{when}{target} = {fused.text};")
        return self._noted(arith.accumulated(op, target, self._piece(value), t))

    def merge(self, op: str, left: str, right: str, type_: ScalarType) -> str:
        """``left op right`` for two texts of values of ``type_``, by a reduction's ``op``."""
        first, second = pieces.written(left), pieces.written(right)
        return self._noted(arith.reduced(op, first, second, type_.compute).text)

    def _noted(self, text: str) -> str:
        self.used |= helpers_in(text)
        return text

    def _piece(self, value: ir.Value) -> Piece:
        # An own stack instead of recursion: expressions may nest deep.
        pending: list[tuple[ir.Value, bool]] = [(value, False)]
        done: list[Piece] = []
        while pending:
            current, ready = pending.pop()
            if isinstance(current, ir.Load):
                done.append(pieces.written(self.load(current)))
                continue
            inside = children(current)
            if ready or not inside:
                first = len(done) - len(inside)
                operands = done[first:]
                done[first:] = [self._node(current, operands)]
            else:
                pending.append((current, True))
                pending += ((v, False) for v in reversed(inside))
        return done[0]

    def _node(self, value: ir.Value, operands: list[Piece]) -> Piece:
        """A node, by the pieces of the values directly inside it."""
        match value:
            case ir.Const(value=number, type=type_):
                if isinstance(number, Size):
                    assert self.size is not None
                    return self.size(number, c_type(type_))
                text = constant(number, type_)
                return Piece(text, arith.constant_binds(text))
            case ir.Position(index=index, type=type_):
                return pieces.written(self.index(index, type_))
            case ir.Variable():
                return pieces.written(self.variable(value))
            case ir.Combined():
                return pieces.written(self.combined(value))
            case ir.Unary(op=op, type=type_):
                return arith.unary(op, operands[0], type_.compute)
            case ir.Binary(op=op, left=left):
                return arith.binary(op, operands[0], operands[1], left.type.compute)
            case ir.Select():
                return pieces.choice(*operands)
            case ir.Call(name=name, type=type_):
                return builtin(name, operands, type_.compute)
            case ir.Cast(operand=operand, type=type_):
                if is_half(type_) and is_rounded(operand, type_):
                    return operands[0]
                return cast(operands[0], operand.type, type_)
            case ir.Load():
                raise AssertionError("loads are written before")
            case _:
                assert_never(value)


@dataclass(slots=True)
class Accumulators:
    """Registers of each thread, or its numbers in the memory of its block."""

    name: str
    over: tuple[ir.Fold, ...]
    """Those that a thread has for itself."""
    threads: int = 0
    """Of the block, in whose memory they lie; 0 for registers."""
    together: int = 1
    """Neighbours that are one access in that memory."""
    of_rows: bool = False
    """Whether these are sums along rows that are read one after the other (``row_loop``)."""

    def element(self, number: str) -> str:
        """The one of this number, over all folds."""
        if self.threads:
            apart = self.threads * self.together
            return f"{self.name}[{number} / {self.together} * {apart} + {number} % {self.together}]"
        if not self.over:
            return self.name
        first = f"(&{self.name}{'[0]' * len(self.over)})" if self.over[1:] else self.name
        return f"{first}[{number}]"


@dataclass(slots=True, eq=False)
class Writer:
    """Writes values at places, and opens loops that are written out."""

    geometry: Geometry
    memory: AccessWriter
    names: Names
    sizes: SizeParameters
    integer: str
    """The type of index expressions: ``int`` or ``long long``."""
    lines: Lines = field(default_factory=Lines)
    unfinished: str | None = None
    """The sums of products that warpgroups begin and nobody waits for yet; None: they wait."""
    accumulators: dict[str, Accumulators] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Helper functions."""

    def text(self, value: ir.Value, scope: CudaScope) -> str:
        return self.expressions(scope).text(value)

    def expressions(self, scope: CudaScope) -> Expressions:
        """What writes values at this place."""

        def index(affine: ir.Affine, type_: ScalarType) -> str:
            text = self.memory.index(affine, scope)
            wanted = c_type(type_)
            return text if wanted == self.integer else f"({wanted})({text})"

        def load(one: ir.Load) -> str:
            type_ = self.memory.type(one.ref.tensor)
            known = scope.loaded.get(one.ref)
            return from_memory(known or self.memory.element(one.ref, scope), type_)

        def variable(one: ir.Variable) -> str:
            if one.name in self.accumulators:
                own = self.accumulator(one.name, scope)
                if not self.accumulators[one.name].of_rows:
                    return own
                self.used.add("detached")
                return f"detached({own})"
            return scope.variables[one.name]

        def combined(one: ir.Combined) -> str:
            raise ir.IRError("sums of threads are combined on their own")

        made = Expressions(index, load, variable, combined, self.sizes.value)
        made.used = self.used
        return made

    def accumulator(self, name: str, scope: CudaScope) -> str:
        """The register that a name means here."""
        own = self.accumulators[name]
        if own.threads:
            number = "0"
            for f in own.over:
                number = f"({number} * {f.count} + {iteration(f, scope)})"
            return own.element(number)
        return own.name + "".join(f"[{iteration(f, scope)}]" for f in own.over)

    @contextmanager
    def unrolled(
        self, folds: Sequence[ir.Fold], scope: CudaScope, width: int = 1, turn: str = ""
    ) -> Iterator[CudaScope]:
        """Inside of loops that are written out; the innermost one takes steps of ``width``. They
        go backwards where ``turn`` is odd."""
        with self.lines.nested():
            for k, fold in enumerate(folds, 1):
                scope = self._enter(fold, scope, width if k == len(folds) else 1, turn)
            yield scope

    def _enter(self, fold: ir.Fold, scope: CudaScope, width: int, turn: str = "") -> CudaScope:
        """Opens a loop that is written out."""
        count = self.geometry.iterations(fold)
        if count == width:
            return scope.with_fold(fold, "0")
        name = self.names.name_of(f"iteration {fold.name}", fold.name.partition(".")[2])
        step = self.names.name_of(f"turn {fold.name}", f"{name}_turn") if turn else name
        further = f"++{step}" if width == 1 else f"{step} += {width}"
        self.lines.add("#pragma unroll", margin=True)
        self.lines.open(f"for (int {step} = 0; {step} < {count}; {further}) {{")
        if turn:
            number = f"{turn} % 2 ? {count - 1} - {step} : {step}"
            self.lines.add(f"const {self.integer} {name} = {number};")
        return scope.with_fold(fold, name if fold.step == 1 else f"{name} * {fold.step}")

    def complete(
        self,
        scope: CudaScope,
        body: Sequence[ir.Statement],
        lane: ir.Fold | None = None,
        read: Container[ir.TensorRef] = (),
    ) -> CudaScope:
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
            text = self.memory.index(ir.Affine.variable(name), scope)
            variable = self.names.new(name.rpartition(".")[2])
            self.lines.add(f"const {self.integer} {variable} = {text};")
            scope = scope.with_dim(name, variable)
        return scope

    @contextmanager
    def guard(self, dims: Sequence[str], scope: CudaScope) -> Iterator[None]:
        """Inside of a test that these dimensions are at points that they have."""
        if not dims:
            yield
            return
        with self.lines.block(f"if ({self.memory.bounds_test(dims, scope)}) {{"):
            yield


def write_carry(writer: Writer, carry: ir.Carry) -> None:
    """A thread's sums, those of points that are not there included."""
    own, total = writer.accumulators[carry.name], writer.accumulators[carry.total]
    lost = writer.accumulators[carry.lost] if carry.lost else None
    lines, count = writer.lines, math.prod(f.count for f in own.over)

    with lines.nested():
        if own.over:
            lines.add("#pragma unroll", margin=True)
            lines.open(f"for (int k = 0; k < {count}; ++k) {{")
        if lost is None:
            lines.add(f"{total.element('k')} += {own.element('k')};")
        else:
            writer.used.add("carry")
            lines.add(f"carry({own.element('k')}, {total.element('k')}, {lost.element('k')});")
        lines.add(f"{own.element('k')} = 0;")


def iteration(fold: ir.Fold, scope: CudaScope) -> str:
    """The number of a fold's iteration, which is written out."""
    return scope.folds[fold.name].partition(" * ")[0]


def _used(
    body: Sequence[ir.Statement], geometry: Geometry, read: Container[ir.TensorRef]
) -> list[str]:
    """The dimensions that statements name besides what is ``read``, in the order of the program."""
    named: set[str] = set()
    for one in body:
        for s in statements(one):
            refs = [s.ref] if isinstance(s, ir.Store | ir.Update) else []
            for value in values_in(s):
                found = list(walk(value))
                refs += [v.ref for v in found if isinstance(v, ir.Load)]
                positions = (v.index for v in found if isinstance(v, ir.Position))
                named |= {geometry.dim_of(n) for a in positions for n, _ in a.terms}
            for ref in refs:
                if ref not in read:
                    named |= set(map(geometry.dim_of, ref.names))
    return [d for d in geometry.dims if d in named]
