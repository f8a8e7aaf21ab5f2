"""Integer expressions as linear forms, and bounds on their values.

A linear form is ``constant + sum of coefficient * atom``. An atom is an index variable (by its
name) or a sub-expression that is not linear, such as a tensor read. Forms are exact: arithmetic
on indices and sizes does not wrap, and arithmetic on other values counts as linear only where
its bounds show that it cannot wrap either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tcl.grammar import checked as c
from tcl.grammar.traverse import walk
from tcl.grammar.types import INDEX, INT64, ScalarType

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

    @property
    def primitive(self) -> tuple[Mapping[Atom, int], int]:
        """The terms divided by the greatest common divisor of their coefficients, and that."""
        divisor = math.gcd(*self.terms.values()) or 1
        return {a: k // divisor for a, k in self.terms.items()}, divisor


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What the conditions around an expression say: each form is >= 0, or is not 0.

    Compared by identity, so that bounds can be remembered by the facts they hold under.
    """

    at_least_zero: tuple[Linear, ...] = ()
    not_zero: tuple[Linear, ...] = ()
    mentioned: frozenset[str] = frozenset()
    """Indices that some condition speaks of, whether its meaning was understood or not."""
    complete: bool = True
    """Whether the facts say all that the conditions say."""
    depth: int = 0
    """Number of conditions these facts were put together from."""

    def also(self, other: Facts) -> Facts:
        """Both hold."""
        at_least_zero = self.at_least_zero + other.at_least_zero
        not_zero = self.not_zero + other.not_zero
        return Facts(
            at_least_zero[:_MOST_FACTS],
            not_zero[:_MOST_FACTS],
            self.mentioned | other.mentioned,
            self.complete
            and other.complete
            and max(len(at_least_zero), len(not_zero)) <= _MOST_FACTS,
            self.depth + 1,
        )

    def guards(self, form: Linear) -> tuple[bool, bool]:
        """Whether some fact bounds a multiple of this form, up to a constant: below, above."""
        terms, _ = form.primitive
        negated = {a: -k for a, k in terms.items()}
        found = [f.terms for f in self.at_least_zero]
        return terms in found, negated in found

    @property
    def rectangular(self) -> bool:
        """Whether the facts say all, about one index each: then bounds are values that occur."""
        return (
            self.complete
            and not self.not_zero
            and all(len(f.terms) <= 1 and f.is_affine for f in self.at_least_zero)
        )


_MOST_FACTS = 64
"""Facts beyond these are forgotten, and conditions nested deeper than the next number ignored:
both are sound, and keep the time within bounds."""
_MOST_CONDITIONS = 6

NO_FACTS = Facts()


@dataclass(slots=True)
class Analysis:
    """Linear forms and bounds of one statement's expressions."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    lets: Mapping[str, c.Expr]
    ranges: dict[str, Bounds] = field(default_factory=dict)
    """Index → smallest and largest value, for the indices whose range is known."""
    _forms: dict[str, Linear] = field(default_factory=dict)
    """``let`` binding → its form."""
    _let_facts: dict[tuple[str, bool], Facts] = field(default_factory=dict)
    _let_indices: dict[str, frozenset[str]] = field(default_factory=dict)
    _bounds: dict[tuple[c.Expr, Facts], Bounds] = field(default_factory=dict)
    """Bounds of operations, for the present ranges: lets make expressions share their parts."""

    def resolve(self, index: str, bounds: Bounds) -> None:
        """Fix the smallest and largest value of an index."""
        self.ranges[index] = bounds
        self._bounds.clear()

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
                low, high = self.bounds_of_operation(expr, NO_FACTS)
                return Linear({}, int(low)) if low == high else Linear({expr: 1})
            case c.Cast(operand=operand, type=type_) if operand.type.is_integral:
                form = self.linear(operand)
                return form if _within(self.bounds(form), type_) else Linear({expr: 1})
            case _:
                return Linear({expr: 1})

    def _exact(self, expr: c.Unary | c.Binary, form: Linear) -> Linear:
        """The form, unless it contains values whose arithmetic may wrap."""
        plain = form.is_affine and expr.type in (INDEX, INT64)
        if plain or _within(self.bounds(form), expr.type):
            return form
        return Linear({expr: 1})

    # --- bounds ---

    def bounds(self, form: Linear, facts: Facts = NO_FACTS) -> Bounds:
        """Smallest and largest value of a form, given what surrounding conditions say.

        An impossible combination of facts gives bounds with low > high.
        """
        low: float = form.constant  # an int: exact beyond 2**53
        high: float = form.constant
        for atom, coefficient in form.terms.items():
            a, b = self._atom_bounds(atom, facts)
            if a > b:
                return math.inf, -math.inf
            low += min(coefficient * a, coefficient * b)
            high += max(coefficient * a, coefficient * b)
        if facts.at_least_zero and form.terms:
            terms, factor = form.primitive
            negated = {a: -k for a, k in terms.items()}
            for fact in facts.at_least_zero:
                if fact.terms == terms:
                    low = max(low, form.constant - factor * fact.constant)
                if fact.terms == negated:
                    high = min(high, form.constant + factor * fact.constant)
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
        key = expr, facts
        if key not in self._bounds:
            self._bounds[key] = self._operation(expr, facts)
        return self._bounds[key]

    def _operation(self, expr: c.Expr, facts: Facts) -> Bounds:
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
                found = product(of(left), of(right))
            case c.Binary(op="/", left=left, right=right):
                found = _quotient(of(left), of(right))
            case c.Binary(op="%", left=left, right=right):
                found = _remainder(of(left), of(right))
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                yes = self.bounds(self.linear(then), self.under(facts, condition, True))
                no = self.bounds(self.linear(otherwise), self.under(facts, condition, False))
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

    def impossible(self, facts: Facts) -> bool:
        """Whether the facts contradict each other or the ranges: nothing is evaluated there."""
        found = (self.bounds(f, facts) for f in facts.at_least_zero)
        return any(high < 0 or low > high for low, high in found)

    def under(self, facts: Facts, condition: c.Expr, holds: bool) -> Facts:
        """``facts``, and what follows from a condition being true (or false)."""
        if facts.depth >= _MOST_CONDITIONS:
            mentioned = facts.mentioned | self._mentioned(condition)
            return replace(facts, mentioned=mentioned, complete=False)
        found = self._facts(condition, holds)
        return facts.also(replace(found, mentioned=self._mentioned(condition)))

    def _mentioned(self, condition: c.Expr) -> frozenset[str]:
        """The index variables below a condition, and below the lets that it uses."""
        found: frozenset[str] = frozenset()
        for node in walk(condition):
            if isinstance(node, c.Index):
                found |= {node.name}
            elif isinstance(node, c.LetRef):
                if node.name not in self._let_indices:
                    self._let_indices[node.name] = self._mentioned(self.lets[node.name])
                found |= self._let_indices[node.name]
        return found

    def _facts(self, condition: c.Expr, holds: bool) -> Facts:
        match condition:
            case c.Unary(op="!", operand=operand):
                return self._facts(operand, not holds)
            case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == holds:
                return self._facts(left, holds).also(self._facts(right, holds))
            case c.LetRef(name=name):
                if (name, holds) not in self._let_facts:
                    self._let_facts[name, holds] = self._facts(self.lets[name], holds)
                return self._let_facts[name, holds]
            case c.Binary(op=op, left=left, right=right) if (
                op in _NEGATION and left.type.is_integral
            ):
                return _comparison(op, self.linear(left), self.linear(right), holds)
            case _:
                return _NOT_UNDERSTOOD


_NOT_UNDERSTOOD = Facts(complete=False)

_NEGATION = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _comparison(op: str, left: Linear, right: Linear, holds: bool) -> Facts:
    if not holds:
        op = _NEGATION[op]
    difference = left.plus(right, -1)
    opposite = right.plus(left, -1)
    one = Linear({}, 1)
    match op:
        case "<":
            return Facts((_at_least_zero(opposite.plus(one, -1)),))
        case "<=":
            return Facts((_at_least_zero(opposite),))
        case ">":
            return Facts((_at_least_zero(difference.plus(one, -1)),))
        case ">=":
            return Facts((_at_least_zero(difference),))
        case "==":
            return Facts((_at_least_zero(difference), _at_least_zero(opposite)))
        case _:
            return Facts((), (difference,))


def _at_least_zero(form: Linear) -> Linear:
    """The form divided by its common divisor, rounded down: it is >= 0 just when ``form`` is."""
    terms, divisor = form.primitive
    return Linear(terms, form.constant // divisor)


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


def product(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of a product of two independent values."""
    return _corners(x * y if x and y else 0 for x in a for y in b)


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    """C's division by a constant, 0 by zero; by anything else nothing is known."""
    if b[0] != b[1] or math.isinf(b[0]):
        return UNBOUNDED
    if b[0] == 0:
        return 0, 0
    return _corners(_truncated(x, int(b[0])) for x in a)


def _truncated(x: float, by: int) -> float:
    if math.isinf(x):
        return x if by > 0 else -x
    return abs(int(x)) // abs(by) * (1 if (x < 0) == (by < 0) else -1)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    """C's remainder by a constant: it has the sign of the dividend; 0 by zero."""
    if b[0] != b[1] or math.isinf(b[0]):
        return UNBOUNDED
    if b[0] == 0:
        return 0, 0
    by = abs(int(b[0]))
    if 0 <= a[0] <= a[1] < math.inf and int(a[0]) // by == int(a[1]) // by:
        return int(a[0]) % by, int(a[1]) % by
    return (0 if a[0] >= 0 else max(a[0], 1 - by)), (0 if a[1] <= 0 else min(a[1], by - 1))
