"""Checked definition with sizes → loop IR: the plain nests, one per statement.

Sizes become constants and affine subscripts index expressions over dims. Subscripts are exact:
their arithmetic is done in 64 bits, whatever it was as a value (``is_exact``). A ``let`` stays one
``Let``; one that is needed both as a value and exactly, in a subscript, becomes two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import assert_never

from tcl.codegen.loopir import conjunctions, ir, reciprocals
from tcl.codegen.loopir.conditions import bounds_of
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.periods import interval_of
from tcl.codegen.loopir.quotients import COMPARISONS, interval_at_points
from tcl.codegen.loopir.scans import with_running_results
from tcl.codegen.loopir.walk import loads, variables, walk
from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.sizes.varying import Size, largest
from tcl.grammar.syntax.types import INT64, UINT64, Kind, ScalarType
from tcl.grammar.tree import checked as ck
from tcl.grammar.tree.size_expressions import OPERATIONS, wrapped
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import is_exact


def lower(sized: SizedDef, layouts: Mapping[str, ir.Layout] | None = None) -> ir.Program:
    """The program of ``sized``: every nest untiled, its loops in index order.

    ``layouts`` replaces the row-major layout of the tensors it names.
    """
    tensors = tuple(
        ir.Tensor(
            t.name,
            ir.Role.INPUT if t.is_input else ir.Role.OUTPUT,
            (layouts or {}).get(t.name)
            or ir.contiguous(t.type, sized.shapes[t.name], sized.origins[t.name]),
        )
        for t in sized.checked.inputs + sized.checked.outputs
    )
    by_name = {t.name: t for t in tensors}
    nests = tuple(
        with_running_results(_StatementLowering(sized, s, f"s{k}", by_name).nest())
        for k, s in enumerate(sized.statements)
    )
    return ir.Program(sized.checked.name, tensors, nests)


@dataclass(slots=True)
class _StatementLowering:
    sized: SizedDef
    at: SizedStatement
    name: str
    tensors: Mapping[str, ir.Tensor]
    dims: dict[str, ir.Dim] = field(default_factory=dict)
    """Index → dim."""
    by_dim: dict[str, ir.Dim] = field(default_factory=dict)
    lets: list[ir.Let] = field(default_factory=list)
    let_values: dict[str, ck.Expr] = field(default_factory=dict)
    exact_lets: dict[str, ir.Affine | ir.Value] = field(default_factory=dict)
    positions: dict[str, ir.Affine] = field(default_factory=dict)
    """The lets that are index expressions, and are named by bounds and in subscripts alone, ..."""
    named: frozenset[str] = frozenset()
    """... as these are not: what is computed of the same name is computed together."""
    sequential: str | None = None

    def nest(self) -> ir.Nest:
        statement = self.at.statement
        for index in statement.all_indices:
            first, stop = self.at.ranges[index]
            reduction = index in statement.reduction
            dim = ir.Dim(f"{self.name}.{index}", first, largest(0, stop - first), reduction)
            self.dims[index] = self.by_dim[dim.name] = dim
        for let in statement.lets:
            self.let_values[let.name] = let.value
            own = self.value(let.value)
            self.lets.append(ir.Let(let.name, own))
            if let.name not in self.named and (found := self._index(own)) is not None:
                self.positions[let.name] = found
        type_ = self.tensors[statement.target].layout.type
        condition, rhs = term(statement)
        holds = None if condition is None else self.value(condition)
        places: tuple[ir.Subscript, ...] = self._own_indices()
        if statement.place is not None:
            places = self._scattered(statement.place, holds)
        value = self.value(rhs)
        if holds is not None:
            value = ir.Select(holds, value, identity(statement.op, type_), type_)
        target = ir.TensorRef(statement.target, places)
        value = reciprocals.added(statement.op, value)
        if statement.op == "+" and statement.place is None:
            reduced = {d.name for d in self.by_dim.values() if d.reduction}
            value = conjunctions.counted(value, reduced)
        lets = self._named(target, value)
        named = self.named.union(let.name for let in lets if let.name in self.positions)
        if named != self.named:
            again = _StatementLowering(self.sized, self.at, self.name, self.tensors, named=named)
            return again.nest()
        point = ir.Point(lets, target, type_, statement.op, statement.initialise, value)
        return ir.Nest.over(self.name, self.dims.values(), point, self.sequential)

    def _named(self, target: ir.TensorRef, value: ir.Value) -> tuple[ir.Let, ...]:
        """The lets, without index expressions that nothing names any more."""
        found: list[ir.Let] = []
        names = variables([value, *(s.value for s in target.computed)])
        for let in reversed(self.lets):
            if let.name in names or let.name not in self.positions:
                found.append(let)
                names |= variables([let.value])
        return tuple(reversed(found))

    def _own_indices(self) -> tuple[ir.Affine, ...]:
        indices = self.at.statement.indices
        return tuple(ir.Affine.variable(self.dims[i].name) for i in indices)

    def _scattered(self, place: ck.Read, holds: ir.Value | None) -> tuple[ir.Subscript, ...]:
        """Where a scatter writes where a condition ``holds``: ``place.0`` and so on, by name."""
        self.sequential = f"data select where it writes to {place.tensor}"
        subscripts: list[ir.Subscript] = []
        for axis, expr in enumerate(place.subscripts):
            if isinstance(expr, ck.Index):
                subscripts.append(ir.Affine.variable(self.dims[expr.name].name))
                continue
            exact = self._computed(place, axis, expr)
            if holds is not None and not all(load.total for load in loads(exact.value)):
                first = ir.Const(self.tensors[place.tensor].layout.origin[axis], exact.value.type)
                own = ir.Select(holds, exact.value, first, first.type)
                exact = replace(exact, value=own)
            name = ir.Variable(f"place.{axis}", exact.value.type)
            self.lets.append(ir.Let(name.name, exact.value))
            subscripts.append(replace(exact, value=name))
        return tuple(subscripts)

    # Values.

    def value(self, expr: ck.Expr) -> ir.Value:
        match expr:
            case ck.Const(value=value, type=type_):
                return ir.Const(_constant(value, type_), type_)
            case ck.Index():
                return ir.Position(ir.Affine.variable(self.dims[expr.name].name), expr.type)
            case ck.Size() | ck.Dimension():
                return ir.Const(wrapped(self._size(expr), expr.type), expr.type)
            case ck.LetRef(name=name, type=type_):
                return ir.Variable(name, type_)
            case ck.Read():
                return self._lower_read(expr)
            case ck.Unary(op=op, operand=operand, type=type_):
                return ir.Unary(op, self.value(operand), type_)
            case ck.Binary(op=op, left=left, right=right, type=type_):
                found = ir.Binary(op, self.value(left), self.value(right), type_)
                return self._bounded(found) if op in COMPARISONS else found
            case ck.Select(condition=c, then=then, otherwise=otherwise, type=type_):
                return ir.Select(self.value(c), self.value(then), self.value(otherwise), type_)
            case ck.Call(name=name, arguments=arguments, type=type_):
                return ir.Call(name, tuple(self.value(a) for a in arguments), type_)
            case ck.Cast(operand=operand, type=type_):
                return ir.Cast(self.value(operand), type_)
            case _:
                assert_never(expr)

    def _bounded(self, compared: ir.Binary) -> ir.Binary:
        """A comparison; one of index expressions as that of their dimensions, whatever their names
        and factors, so that loops can go by it."""
        if bounds_of(compared) is not None:
            return compared
        sides = []
        for side in (compared.left, compared.right):
            index = self._index(side)
            if index is None:
                return compared
            sides.append(ir.Position(index, side.type) if index.terms else side)
        return replace(compared, left=sides[0], right=sides[1])

    def _index(self, value: ir.Value) -> ir.Affine | None:
        """A value as an index expression, where all of its arithmetic is in its own type, which
        holds it (``RangeInferenceError``); None where it is no such thing."""
        alike = value.type.is_integral and all(v.type == value.type for v in walk(value))
        return self._affine(value) if alike else None

    def _affine(self, value: ir.Value) -> ir.Affine | None:
        match value:
            case ir.Position(index=index):
                return index
            case ir.Const(value=int(constant)):
                return ir.Affine((), constant)
            case ir.Variable(name=name):
                return self.positions.get(name)
            case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
                one, other = self._affine(left), self._affine(right)
                if one is not None and other is not None:
                    found = _exact_binary(op, one, other)
                    return found if isinstance(found, ir.Affine) else None
        return None

    def _size(self, expr: ck.Size | ck.Dimension) -> int:
        if isinstance(expr, ck.Size):
            return self.sized.sizes[expr.name]
        return self.sized.shapes[expr.tensor][expr.axis]

    def _lower_read(self, read: ck.Read) -> ir.Load:
        subscripts: list[ir.Subscript] = []
        total = True
        layout = self.tensors[read.tensor].layout
        empty = any(d.extent == 0 for d in self.by_dim.values())
        for axis, expr in enumerate(read.subscripts):
            exact = self.exact(expr)
            if isinstance(exact, ir.Affine) and not self.at.needs_check(read, axis):
                subscripts.append(exact)
                low, high = (0, -1) if empty else exact.interval(self.by_dim)
                origin = layout.origin[axis]
                total &= origin <= low and high < origin + layout.extents[axis]
            else:
                computed = self._computed(read, axis, expr)
                inside = self._stays_inside(computed, layout, axis)
                subscripts.append(replace(computed, check=computed.check and not inside))
                total &= inside
        ref = ir.TensorRef(read.tensor, tuple(subscripts))
        statement = self.at.statement
        if read.tensor == statement.target:
            if ref.subscripts != self._own_indices():
                self.sequential = f"it reads other elements of {read.tensor}, which it writes"
            elif statement.reduction:
                self.sequential = f"it reads {read.tensor} while reducing into it"
        return ir.Load(ref, read.type, total)

    def _stays_inside(self, subscript: ir.Computed, layout: ir.Layout, axis: int) -> bool:
        """Whether it is an index of the tensor at every point, whatever the data."""
        if isinstance(layout.extents[axis], Size):
            return False
        of = subscript.value, self.by_dim, {let.name: let.value for let in self.lets}
        first, end = layout.origin[axis], layout.origin[axis] + layout.extents[axis]

        def holds(found: tuple[int, int] | None) -> bool:
            if found is None or any(isinstance(x, Size) for x in found):
                return False
            return first <= found[0] and found[1] < end

        # An interval says too little of ``i % 2 == 0 ? i + 1 : i - 1``.
        by_parts = not subscript.check and holds(interval_of(*of))
        return by_parts or holds(interval_at_points(*of))

    def _computed(self, read: ck.Read, axis: int, expr: ck.Expr) -> ir.Computed:
        """A subscript that depends on data, or has to be checked."""
        check = self.at.needs_check(read, axis)
        huge = check and expr.type == UINT64
        # A huge value is reported as it is.
        return ir.Computed(self.value(expr) if huge else _as_value(self.exact(expr)), check)

    # Exact integers, for subscripts.

    def exact(self, expr: ck.Expr) -> ir.Affine | ir.Value:
        """The value of an integral expression as an index expression, or as an int64."""
        if not is_exact(expr):
            return _widened(self.value(expr))
        match expr:
            case ck.Const(value=value):
                return ir.Affine((), int(value))
            case ck.Index(name=name):
                return ir.Affine.variable(self.dims[name].name)
            case ck.Size() | ck.Dimension():
                return ir.Affine((), self._size(expr))
            case ck.LetRef(name=name):
                return self._exact_let(name)
            case ck.Unary(op="-", operand=operand):
                inner = self.exact(operand)
                if isinstance(inner, ir.Affine):
                    return inner.scaled(-1)
                return ir.Unary("-", inner, INT64)
            case ck.Binary(op=op, left=left, right=right) if op in _EXACT_OPS:
                return _exact_binary(op, self.exact(left), self.exact(right))
            case ck.Select(condition=c, then=then, otherwise=otherwise):
                sides = _as_value(self.exact(then)), _as_value(self.exact(otherwise))
                return ir.Select(self.value(c), *sides, INT64)
            case ck.Cast(operand=operand):
                return self.exact(operand)
            case _:
                return _widened(self.value(expr))

    def _exact_let(self, name: str) -> ir.Affine | ir.Value:
        if name not in self.exact_lets:
            exact = self.exact(self.let_values[name])
            if not isinstance(exact, ir.Affine):
                wide = f"{name}.exact"
                self.lets.append(ir.Let(wide, exact))
                exact = ir.Variable(wide, INT64)
            self.exact_lets[name] = exact
        return self.exact_lets[name]


_EXACT_OPS = ("+", "-", "*", "/", "%", "min", "max")


def _as_value(exact: ir.Affine | ir.Value) -> ir.Value:
    return ir.Position(exact, INT64) if isinstance(exact, ir.Affine) else exact


def _exact_binary(
    op: str, left: ir.Affine | ir.Value, right: ir.Affine | ir.Value
) -> ir.Affine | ir.Value:
    if isinstance(left, ir.Affine) and isinstance(right, ir.Affine):
        if op == "+":
            return left + right
        if op == "-":
            return left + right.scaled(-1)
        if op == "*" and not right.terms:
            return left.scaled(right.constant)
        if op == "*" and not left.terms:
            return right.scaled(left.constant)
        if op in ("/", "%") and not left.terms and not right.terms:
            return ir.Affine((), OPERATIONS[op](left.constant, right.constant))
    return ir.Binary(op, _as_value(left), _as_value(right), INT64)


def _widened(value: ir.Value) -> ir.Value:
    if value.type == UINT64:
        # Values beyond int64 stay out of range of every tensor.
        value = ir.Binary("min", value, ir.Const(INT64.limits[1], UINT64), UINT64)
    return value if value.type == INT64 else ir.Cast(value, INT64)


def _constant(value: int | float | bool, type_: ScalarType) -> int | float | bool:
    match type_.kind:
        case Kind.BOOL:
            return bool(value)
        case Kind.FLOAT:
            try:
                return float(value)
            except OverflowError:  # an integer literal of more than 308 digits
                return float("inf") if value > 0 else float("-inf")
        case Kind.INT | Kind.UINT:
            return wrapped(int(value), type_)
        case _:
            assert_never(type_.kind)
