"""Integer expressions as linear forms, and bounds on their values.

A linear form is ``constant + sum of coefficient * atom``. An atom is an index variable (by its
name) or a sub-expression that is not linear, such as a tensor read. Forms are exact: arithmetic
on indices and sizes does not wrap, and arithmetic on other values counts as linear only where
its bounds show that it cannot wrap either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tcl.grammar import checked as c
from tcl.grammar.traverse import walk
from tcl.grammar.types import ScalarType

Atom: TypeAlias = str | c.Expr
Bounds: TypeAlias = tuple[float, float]
"""Smallest and largest value, both possible; infinite where nothing is known. Integers else."""

UNBOUNDED: Bounds = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum(coefficient * atom)``; no coefficient is 0."""

    terms: Mapping[Atom, int]
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """``self + factor * other``."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        terms = {a: k for a, k in terms.items() if k}
        return Linear(terms, self.constant + factor * other.constant)

    @property
    def indices(self) -> frozenset[str]:
        """The index variables among the atoms."""
        return frozenset(a for a in self.terms if isinstance(a, str))

    @property
    def is_affine(self) -> bool:
        """Whether all atoms are index variables."""
        return all(isinstance(a, str) for a in self.terms)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the conditions around an expression say: each form is >= 0, or is not 0."""

    at_least_zero: tuple[Linear, ...] = ()
    not_zero: tuple[Linear, ...] = ()
    mentioned: frozenset[str] = frozenset()
    """Indices that some condition speaks of, whether its meaning was understood or not."""

    def also(self, other: Facts) -> Facts:
        """Both hold."""
        return Facts(
            self.at_least_zero + other.at_least_zero,
            self.not_zero + other.not_zero,
            self.mentioned | other.mentioned,
        )

    def speaks_of(self, form: Linear) -> bool:
        """Whether some fact bounds exactly this form, up to sign and constant."""
        negated = {a: -k for a, k in form.terms.items()}
        return any(f.terms in (form.terms, negated) for f in self.at_least_zero)


@dataclass(slots=True)
class Analysis:
    """Linear forms and bounds of one statement's expressions."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    lets: Mapping[str, c.Expr]
    ranges: dict[str, Bounds] = field(default_factory=dict)
    """Index → smallest and largest value, for the indices whose range is known."""
    _forms: dict[str, Linear] = field(default_factory=dict)

    # --- linear forms ---

    def linear(self, expr: c.Expr) -> Linear:
        """The linear form of an integer expression."""
        match expr:
            case c.Const(value=value):
                return Linear({}, int(value))
            case c.Index(name=name):
                return Linear({name: 1})
            case c.Size(name=name) if name in self.sizes:
                return Linear({}, self.sizes[name])
            case c.Dimension(tensor=tensor, axis=axis) if tensor in self.shapes:
                return Linear({}, self.shapes[tensor][axis])
            case c.LetRef(name=name):
                if name not in self._forms:
                    self._forms[name] = self.linear(self.lets[name])
                return self._forms[name]
            case c.Unary(op="-", operand=operand):
                return self._exact(expr, Linear({}).plus(self.linear(operand), -1))
            case c.Binary(op="+" | "-" as op, left=left, right=right):
                sign = 1 if op == "+" else -1
                return self._exact(expr, self.linear(left).plus(self.linear(right), sign))
            case c.Binary(op="*", left=left, right=right):
                a, b = self.linear(left), self.linear(right)
                if a.terms and b.terms:
                    return Linear({expr: 1})
                form, factor = (b, a.constant) if not a.terms else (a, b.constant)
                return self._exact(expr, Linear({}).plus(form, factor))
            case c.Binary(op="/" | "%" | "min" | "max"):
                low, high = self.bounds_of_operation(expr, Facts())
                return Linear({}, int(low)) if low == high else Linear({expr: 1})
            case c.Cast(operand=operand, type=type_) if operand.type.is_integral:
                form = self.linear(operand)
                return form if _within(self.bounds(form), type_) else Linear({expr: 1})
            case _:
                return Linear({expr: 1})

    def _exact(self, expr: c.Unary | c.Binary, form: Linear) -> Linear:
        """The form, unless it contains values whose arithmetic may wrap."""
        if form.is_affine or _within(self.bounds(form), expr.type):
            return form
        return Linear({expr: 1})

    # --- bounds ---

    def bounds(self, form: Linear, facts: Facts | None = None) -> Bounds:
        """Smallest and largest value of a form, given what surrounding conditions say.

        An impossible combination of facts gives bounds with low > high.
        """
        facts = facts or Facts()
        low: float = form.constant  # an int: exact beyond 2**53
        high: float = form.constant
        for atom, coefficient in form.terms.items():
            a, b = self._atom_bounds(atom, facts)
            if a > b:
                return math.inf, -math.inf
            low += min(coefficient * a, coefficient * b)
            high += max(coefficient * a, coefficient * b)
        negated = {a: -k for a, k in form.terms.items()}
        for fact in facts.at_least_zero:
            if fact.terms == form.terms:
                low = max(low, form.constant - fact.constant)
            if fact.terms == negated:
                high = min(high, form.constant + fact.constant)
        return low, high

    def _atom_bounds(self, atom: Atom, facts: Facts) -> Bounds:
        if isinstance(atom, str):
            low, high = self.ranges.get(atom, UNBOUNDED)
        else:
            low, high = self.bounds_of_operation(atom, facts)
        for fact in facts.at_least_zero:
            if len(fact.terms) == 1 and atom in fact.terms:
                k = fact.terms[atom]
                if k > 0:
                    low = max(low, -(fact.constant // k))
                else:
                    high = min(high, fact.constant // -k)
        for fact in facts.not_zero:
            if len(fact.terms) == 1 and atom in fact.terms:
                k = fact.terms[atom]
                low += k * low + fact.constant == 0
                high -= k * high + fact.constant == 0
        return low, high

    def bounds_of_operation(self, expr: c.Expr, facts: Facts) -> Bounds:
        """Bounds of an expression that is not linear; at worst those of its type."""

        def of(e: c.Expr) -> Bounds:
            return self.bounds(self.linear(e), facts)

        match expr:
            case c.Binary(op="min", left=left, right=right):
                (a, b), (x, y) = of(left), of(right)
                found = min(a, x), min(b, y)
            case c.Binary(op="max", left=left, right=right):
                (a, b), (x, y) = of(left), of(right)
                found = max(a, x), max(b, y)
            case c.Binary(op="*", left=left, right=right):
                found = _product(of(left), of(right))
            case c.Binary(op="/", left=left, right=right):
                found = _quotient(of(left), of(right))
            case c.Binary(op="%", left=left, right=right):
                found = _remainder(of(left), of(right))
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                yes = self.bounds(self.linear(then), facts.also(self.facts(condition, True)))
                no = self.bounds(self.linear(otherwise), facts.also(self.facts(condition, False)))
                found = min(yes[0], no[0]), max(yes[1], no[1])
            case _:
                found = UNBOUNDED
        if expr.type.is_float:
            return UNBOUNDED
        low, high = expr.type.limits
        if not (low <= found[0] and found[1] <= high) and _wraps(expr):
            return low, high
        return max(low, found[0]), min(high, found[1])

    # --- facts ---

    def facts(self, condition: c.Expr, holds: bool) -> Facts:
        """What follows from a condition being true (or false)."""
        found = self._facts(condition, holds)
        names = frozenset(n.name for n in walk(condition) if isinstance(n, c.Index))
        for node in walk(condition):
            if isinstance(node, c.LetRef) and node.type.is_integral:
                names |= self.linear(node).indices
        return Facts(found.at_least_zero, found.not_zero, found.mentioned | names)

    def _facts(self, condition: c.Expr, holds: bool) -> Facts:
        match condition:
            case c.Unary(op="!", operand=operand):
                return self._facts(operand, not holds)
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                if (op == "&&") == holds:
                    return self._facts(left, holds).also(self._facts(right, holds))
                return Facts()
            case c.LetRef(name=name):
                return self._facts(self.lets[name], holds)
            case c.Binary(op=op, left=left, right=right) if left.type.is_integral:
                return _comparison(op, self.linear(left), self.linear(right), holds)
            case _:
                return Facts()


_NEGATION = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _comparison(op: str, left: Linear, right: Linear, holds: bool) -> Facts:
    if op not in _NEGATION:
        return Facts()
    if not holds:
        op = _NEGATION[op]
    difference = left.plus(right, -1)
    opposite = right.plus(left, -1)
    one = Linear({}, 1)
    match op:
        case "<":
            return Facts((opposite.plus(one, -1),))
        case "<=":
            return Facts((opposite,))
        case ">":
            return Facts((difference.plus(one, -1),))
        case ">=":
            return Facts((difference,))
        case "==":
            return Facts((difference, opposite))
        case _:
            return Facts((), (difference,))


def _within(bounds: Bounds, type_: ScalarType) -> bool:
    if not type_.is_integral:
        return False
    low, high = type_.limits
    return low <= bounds[0] and bounds[1] <= high


def _wraps(expr: c.Expr) -> bool:
    """Whether an operation can leave its type's range (min, max and ?: cannot)."""
    return isinstance(expr, c.Binary) and expr.op not in ("min", "max")


def _corners(values: Iterable[float]) -> Bounds:
    known = list(values)
    return (min(known), max(known)) if not any(map(math.isnan, known)) else UNBOUNDED


def _product(a: Bounds, b: Bounds) -> Bounds:
    return _corners(x * y if x and y else 0 for x in a for y in b)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    """C's division by a constant; by anything else nothing is known."""
    if b[0] != b[1] or math.isinf(b[0]) or b[0] == 0:
        return UNBOUNDED
    return _corners(_truncated(x, int(b[0])) for x in a)


def _truncated(x: float, by: int) -> float:
    if math.isinf(x):
        return x if by > 0 else -x
    return abs(int(x)) // abs(by) * (1 if (x < 0) == (by < 0) else -1)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    """C's remainder by a constant: it has the sign of the dividend."""
    if b[0] != b[1] or math.isinf(b[0]) or b[0] == 0:
        return UNBOUNDED
    by = abs(int(b[0]))
    if 0 <= a[0] <= a[1] < math.inf and int(a[0]) // by == int(a[1]) // by:
        return int(a[0]) % by, int(a[1]) % by
    return (0 if a[0] >= 0 else max(a[0], 1 - by)), (0 if a[1] <= 0 else min(a[1], by - 1))
