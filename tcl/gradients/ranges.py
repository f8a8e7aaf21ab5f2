"""Ranges of indices in formulas: what ``tcl.grammar.ranges.inference`` finds for all sizes at once.

The same rounds, on polynomials. What depends on which of two formulas is smaller is written as a
``min`` or ``max`` of them; what cannot be written is refused, and known sizes help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.polynomials import (
    ONE,
    ZERO,
    Poly,
    Range,
    never_negative,
    of_atom,
    of_number,
    poly_tree,
)
from tcl.gradients.trees import binary, cast, number
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.printer import expr_text
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.size_expressions import OPERATIONS, no_size
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import children, computed, subscripts

Box: TypeAlias = tuple[Range, ...]
"""The indices that a tensor has, dimension by dimension."""

_NEGATION = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(slots=True)
class Formulas:
    """Sizes and shapes of a def, as polynomials in the sizes of its inputs."""

    checked: c.CheckedDef
    sizes: dict[str, Poly] = field(default_factory=dict)
    """Size symbol → its formula: a number where it is known."""
    boxes: dict[str, Box] = field(default_factory=dict)

    @staticmethod
    def of(checked: c.CheckedDef, known: Mapping[str, Poly]) -> Formulas:
        """Those of a def's inputs; ``known``: size symbol → what is known of it."""
        found = Formulas(checked)
        for symbol in checked.sizes:
            found.sizes[symbol] = known.get(symbol, of_atom(symbol))
        for tensor in checked.inputs:
            extents = [
                found.sizes[d] if isinstance(d, str) else of_number(d) for d in tensor.dims or ()
            ]
            found.define(tensor.name, tuple((ZERO, extent) for extent in extents))
        return found

    def define(self, tensor: str, box: Box) -> None:
        """Give a tensor its indices, and with them the sizes that its dimensions are."""
        self.boxes[tensor] = box
        for binding in self.checked.bindings:
            if binding.tensor == tensor and isinstance(binding.size, str):
                first, stop = box[binding.axis]
                self.sizes.setdefault(binding.size, stop - first)

    def written(self, statement: c.Statement, ranges: Mapping[str, Range]) -> Box:
        """The elements that a statement writes, the first of a tensor that has no box yet. Raises
        ``ArgumentError`` for one whose size has no formula."""
        if statement.place is None:
            return tuple(ranges[i] for i in statement.indices)
        if statement.target in self.boxes:
            return self.boxes[statement.target]
        found = self.declared(statement.target)
        if len(found) < len(statement.axes):
            raise ArgumentError(
                f"the size of '{statement.target}' has no formula that can be found; give the "
                "sizes: grad(..., sizes=...)"
            )
        return tuple((ZERO, found[axis]) for axis in range(len(statement.axes)))

    def declared(self, tensor: str) -> dict[int, Poly]:
        """The extents that a declaration gives a tensor, as far as they are known."""
        found: dict[int, Poly] = {}
        for binding in self.checked.bindings:
            if binding.tensor == tensor:
                size = binding.size
                if isinstance(size, int):
                    found[binding.axis] = of_number(size)
                elif size in self.sizes:
                    found[binding.axis] = self.sizes[size]
        return found

    def poly(self, expr: c.Expr, lets: Mapping[str, c.Expr]) -> Poly | None:
        """An integer expression as a polynomial; None if it is none."""
        match expr:
            case c.Const(value=value, type=type_) if type_.is_integral:
                return of_number(int(value))
            case c.Index(name=index):
                return of_atom(index)
            case c.Size(name=size):
                return self.sizes[size]
            case c.Dimension(tensor=tensor, axis=axis):
                first, stop = self.boxes[tensor][axis]
                return stop - first
            case c.LetRef(name=let) if expr.type.is_integral:
                return self.poly(lets[let], lets)
            case c.Unary(op="-", operand=operand) if expr.type.is_integral:
                inner = self.poly(operand, lets)
                return None if inner is None else inner.scaled(-1)
            case c.Binary(op="+" | "-" | "*" as op, left=left, right=right) if (
                expr.type.is_integral
            ):
                a, b = self.poly(left, lets), self.poly(right, lets)
                if a is None or b is None:
                    return None
                return a.times(b) if op == "*" else a.plus(b, 1 if op == "+" else -1)
            case c.Cast(operand=operand, type=type_) if operand.type.is_integral and type_.name in (
                "int32",
                "int64",
            ):
                return self.poly(operand, lets)
            case _:
                return self._opaque(expr, lets)

    def _opaque(self, expr: c.Expr, lets: Mapping[str, c.Expr]) -> Poly | None:
        """A size expression that is no polynomial, as an atom; a number if it is one."""
        if not expr.type.is_integral or no_size(expr, {}) is not None:
            return None
        if any(isinstance(n, c.LetRef) and no_size(lets[n.name], {}) for n in _nodes(expr, lets)):
            return None
        tree = self.tree(expr, lets)
        folded = _folded(tree)
        return of_atom(expr_text(tree)) if folded is None else of_number(folded)

    def tree(self, expr: c.Expr, lets: Mapping[str, c.Expr]) -> ast.Expr:
        """A size expression, written in the sizes of the inputs."""
        poly = None if expr.type.is_bool else self._polynomial(expr, lets)
        if poly is not None:
            return poly_tree(poly)
        match expr:
            case c.Const(value=value):
                return number(int(value))
            case c.LetRef(name=let):
                return self.tree(lets[let], lets)
            case c.Unary(op=op, operand=operand):
                return ast.Unary(op, self.tree(operand, lets), expr.span)
            case c.Binary(op=op, left=left, right=right):
                return binary(op, self.tree(left, lets), self.tree(right, lets))
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = self.tree(condition, lets)
                sides = self.tree(then, lets), self.tree(otherwise, lets)
                return ast.Select(holds, *sides, expr.span)
            case c.Cast(operand=operand, type=type_):
                return cast(type_.name, self.tree(operand, lets))
            case _:
                raise AssertionError("no size expression")

    def _polynomial(self, expr: c.Expr, lets: Mapping[str, c.Expr]) -> Poly | None:
        simple = c.Const | c.Size | c.Dimension
        plain = isinstance(expr, simple) or (isinstance(expr, c.Binary) and expr.op in "+-*")
        return self.poly(expr, lets) if plain and expr.type.is_integral else None


def _nodes(expr: c.Expr, lets: Mapping[str, c.Expr]) -> Iterator[c.Expr]:
    """Everything below an expression, and below the names that it uses."""
    yield expr
    for child in (lets[expr.name],) if isinstance(expr, c.LetRef) else children(expr):
        yield from _nodes(child, lets)


def _folded(tree: ast.Expr) -> int | None:
    """The value of an expression of numbers alone, as C computes it; None of any other."""
    match tree:
        case ast.Number(value=int() as value):
            return value
        case ast.Unary(op=op, operand=operand):
            inner = _folded(operand)
            return None if inner is None else -inner if op == "-" else int(not inner)
        case ast.Binary(op=op, left=left, right=right):
            a, b = _folded(left), _folded(right)
            if a is None or b is None or (op in "/%" and b == 0):
                return None
            if op in ("&&", "||"):
                return int(bool(a and b) if op == "&&" else bool(a or b))
            return int(OPERATIONS[op](a, b))
        case ast.Select(condition=condition, then=then, otherwise=otherwise):
            holds = _folded(condition)
            return None if holds is None else _folded(then if holds else otherwise)
        case ast.Cast(type="int32" | "int64" | "bool" as type_, operand=operand):
            inner = _folded(operand)
            return int(inner != 0) if type_ == "bool" and inner is not None else inner
        case _:
            return None


def _is_negative(poly: Poly) -> bool:
    """Whether this is a negative number."""
    value = poly.constant
    return value is not None and value < 0


def rounded_down(value: Poly, by: int) -> Poly:
    """``value / by`` as the language has it: for what is not negative, rounded down."""
    constant = value.constant
    if constant is not None:
        return of_number(constant // by)
    if all(k % by == 0 for _, k in value.terms):
        return Poly(tuple((m, k // by) for m, k in value.terms))
    return of_atom(expr_text(binary("/", poly_tree(value), number(by))))


# --- the rounds ---


@dataclass(frozen=True, slots=True)
class _FormulaBound:
    """``first <= form < stop``; a side that a condition bounds is left to it."""

    form: Poly
    first: Poly
    stop: Poly
    low: bool = True
    high: bool = True


def infer(
    statement: c.Statement, formulas: Formulas, without: frozenset[str] = frozenset()
) -> dict[str, Range]:
    """Index → its range. Raises ``ArgumentError`` where no formula is found. ``without``: indices
    whose ``where`` is left aside."""
    return _FormulaInference(statement, formulas, without).solved()


class _FormulaInference:
    def __init__(self, statement: c.Statement, formulas: Formulas, without: frozenset[str]) -> None:
        self.statement, self.formulas = statement, formulas
        self.lets = {let.name: let.value for let in statement.lets}
        self.indices = frozenset(statement.all_indices)
        self.ranges: dict[str, Range] = {}
        self.agreeing = bool(without)
        """Whether dimensions that an index runs over have to be alike by their formulas."""
        self.plain: list[_FormulaBound] = []
        """Of guarded subscripts that are an index alone."""
        for clause in statement.ranges:
            if clause.index not in without:
                ends = (formulas.poly(e, self.lets) for e in (clause.start, clause.stop))
                first, stop = ends
                assert first is not None and stop is not None, "checked"
                self.ranges[clause.index] = first, stop

    def solved(self) -> dict[str, Range]:
        bounds = list(self._bounds())
        further = [self._declared(), self.plain]
        while missing := [i for i in self.statement.all_indices if i not in self.ranges]:
            found: dict[str, list[_FormulaBound]] = {}
            for bound in bounds:
                free = [i for i in missing if i in bound.form.atoms]
                if len(free) == 1:
                    found.setdefault(free[0], []).append(bound)
            solved = {i: self._solve(i, its) for i, its in found.items()}
            known = {i: range_ for i, range_ in solved.items() if range_ is not None}
            self.ranges |= known
            if known:
                continue
            if not further:
                raise self._refused(missing[0])
            bounds += further.pop(0)
        return {i: self.ranges[i] for i in self.statement.all_indices}

    def _refused(self, index: str) -> ArgumentError:
        return ArgumentError(
            f"the range of '{index}' in the statement that writes '{self.statement.target}' has "
            "no formula that can be found; give it with where, or give the sizes:  grad(..., "
            "sizes=...)"
        )

    def _bounds(self) -> Iterator[_FormulaBound]:
        statement, nothing = self.statement, frozenset[Poly]()
        for expr in (*self.lets.values(), statement.rhs, *statement.exists):
            yield from self._below(expr, nothing)
        condition, _ = term(statement)  # what does not count is not written
        facts = nothing if condition is None else self._facts(condition, True)
        for expr in computed(statement):
            yield from self._below(expr, facts)
        target = self.statement.target
        for axis, index in enumerate(self.statement.axes):
            if target in self.formulas.boxes and index is not None:
                yield _FormulaBound(of_atom(index), *self.formulas.boxes[target][axis])

    def _declared(self) -> list[_FormulaBound]:
        target, axes = self.statement.target, self.statement.axes
        if target in self.formulas.boxes:
            return []
        found = ((axes[axis], stop) for axis, stop in self.formulas.declared(target).items())
        return [_FormulaBound(of_atom(i), ZERO, stop) for i, stop in found if i is not None]

    def _below(self, expr: c.Expr, facts: frozenset[Poly]) -> Iterator[_FormulaBound]:
        """The bounds by subscripts below ``expr``; ``facts``: forms that conditions bound below."""

        def under(known: frozenset[Poly], condition: c.Expr, holds: bool) -> frozenset[Poly]:
            return known | self._facts(condition, holds)

        for read, axis, known in subscripts(expr, facts, under):
            yield from self._subscript(read.tensor, axis, read.subscripts[axis], known)

    def _subscript(
        self, tensor: str, axis: int, subscript: c.Expr, facts: frozenset[Poly]
    ) -> Iterator[_FormulaBound]:
        form = self.formulas.poly(subscript, self.lets)
        if form is None:
            return
        if any(form.coefficient(i) is None for i in self.indices & form.atoms):
            return
        up = self._direction(form)
        bound = _FormulaBound(form, *self.formulas.boxes[tensor][axis])
        if any(form == of_atom(index) for index in self.indices):
            self.plain.append(bound)
        low, high = up not in facts, up.scaled(-1) not in facts
        yield _FormulaBound(form, bound.first, bound.stop, low, high)

    def _direction(self, form: Poly) -> Poly:
        """The terms with indices, divided by the divisor that they share."""
        terms = [(m, k) for m, k in form.terms if self.indices & set(m)]
        divisor = math.gcd(*(k for _, k in terms)) or 1
        return Poly(tuple((m, k // divisor) for m, k in terms))

    def _facts(self, condition: c.Expr, holds: bool) -> frozenset[Poly]:
        match condition:
            case c.Unary(op="!", operand=operand):
                return self._facts(operand, not holds)
            case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == holds:
                return self._facts(left, holds) | self._facts(right, holds)
            case c.LetRef(name=name):
                return self._facts(self.lets[name], holds)
            case c.Binary(op=op, left=left, right=right) if (
                op in _NEGATION and left.type.is_integral
            ):
                a, b = self.formulas.poly(left, self.lets), self.formulas.poly(right, self.lets)
                if a is None or b is None:
                    return frozenset()
                up, op = self._direction(a - b), op if holds else _NEGATION[op]
                ups = {">": [up], ">=": [up], "<": [up.scaled(-1)], "<=": [up.scaled(-1)]}
                return frozenset(ups.get(op, [up, up.scaled(-1)] if op == "==" else []))
            case _:
                return frozenset()

    def _solve(self, index: str, bounds: Sequence[_FormulaBound]) -> Range | None:
        lows: list[Poly] = []
        stops: list[Poly] = []
        for bound in bounds:
            k = bound.form.coefficient(index)
            if not k:
                raise self._refused(index)
            rest = bound.form.without(index)
            least, most = self._ends(rest)
            above, below = bound.first - least, bound.stop - ONE - most
            low, high = (bound.low, bound.high) if k > 0 else (bound.high, bound.low)
            if k < 0:
                above, below = below.scaled(-1), above.scaled(-1)
            if low:
                lows.append(self._rounded(above, abs(k), index, up=True))
            if high:
                stops.append(self._rounded(below, abs(k), index, up=False) + ONE)
        if not lows or not stops:
            return None
        plain = [b for b in bounds if b.form == of_atom(index)]
        agree = {b.first for b in plain if b.low}, {b.stop for b in plain if b.high}
        if self.agreeing and max(map(len, agree)) > 1:
            raise self._refused(index)
        first, stop = self._extreme_formula("max", lows), self._extreme_formula("min", stops)
        if self.agreeing and _is_negative(stop - first - ONE):
            raise self._refused(index)  # as inference does, unless a dimension is empty
        return first, first if _is_negative(stop - first) else stop

    def _ends(self, rest: Poly) -> Range:
        """Smallest and largest value, for the ranges that are known."""
        least: dict[str, Poly] = {}
        most: dict[str, Poly] = {}
        for index in rest.atoms & self.ranges.keys():
            first, stop = self.ranges[index]
            # An empty range counts as its first index, as far as it is known to be one.
            last = first if _is_negative(stop - first - ONE) else stop - ONE
            rises = (rest.coefficient(index) or 0) > 0
            least[index], most[index] = (first, last) if rises else (last, first)
        return rest.put(least), rest.put(most)

    def _rounded(self, value: Poly, by: int, index: str, *, up: bool) -> Poly:
        """``value / by``, rounded."""
        if by == 1:
            return value
        constant = value.constant
        if constant is not None:
            return of_number(-(-constant // by) if up else constant // by)
        if all(k % by == 0 for m, k in value.terms if m):
            rest = dict(value.terms).get((), 0)
            whole = Poly(tuple((m, k // by) for m, k in value.terms if m))
            return whole + of_number(-(-rest // by) if up else rest // by)
        if up and not never_negative(value, {}):
            raise self._refused(index)
        if up:
            value = value + of_number(by - 1)
            return of_atom(expr_text(binary("/", poly_tree(value), number(by))))
        # No range is shorter than empty: what is divided is at least -by.
        return rounded_down(value + of_number(by), by) - ONE

    def _extreme_formula(self, op: str, found: Iterable[Poly]) -> Poly:
        once = list(dict.fromkeys(found))
        best = once[0]
        for other in once[1:]:
            if never_negative(other - best if op == "min" else best - other, {}):
                continue
            if never_negative(best - other if op == "min" else other - best, {}):
                best = other
            else:
                best = of_atom(expr_text(binary(op, poly_tree(best), poly_tree(other))))
        return best
