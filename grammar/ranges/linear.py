"""Integer expressions as linear forms, and bounds on their values.

A linear form is ``constant + sum of coefficient * atom``. An atom is an index variable (by its
name) or a sub-expression that is not linear, such as a tensor read. Arithmetic on indices and sizes
does not wrap, and arithmetic on other values counts as linear only where its bounds show that it
cannot wrap either, or where it is that of a subscript, in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias, cast

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.intervals import UNBOUNDED, Bounds, either, of_type, operation, within
from tcl.grammar.sizes.varying import common_divisor, largest, smallest
from tcl.grammar.syntax.types import INT64
from tcl.grammar.tree import checked as c
from tcl.grammar.tree import traverse
from tcl.grammar.tree.size_expressions import NoValueError, SizeValues
from tcl.grammar.tree.terms import term


@dataclass(frozen=True, slots=True)
class Exact:
    """An expression as a subscript computes it (``is_exact``), where that may not be its value."""

    expr: c.Expr


Atom: TypeAlias = str | c.Expr | Exact


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
        divisor = common_divisor(self.terms.values()) or 1
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
"""Facts beyond these are forgotten,"""
_MOST_BRANCHES = 4
"""conditions of ``? :`` inside each other say nothing beyond these,"""
_MOST_LEVELS = 50
"""and operations nested deeper have the bounds of their type: all sound, and all quick."""

NO_FACTS = Facts()


@dataclass(slots=True)
class Analysis:
    """Linear forms and bounds of one statement's expressions."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    lets: Mapping[str, c.Expr]
    ranges: dict[str, Bounds] = field(default_factory=dict)
    """Index → smallest and largest value, for the indices whose range is known."""
    _sizes: SizeValues = field(init=False)
    _index_lets: frozenset[str] = field(init=False)
    _forms: dict[str, Linear] = field(default_factory=dict)
    """``let`` binding → its form."""
    _exact_forms: dict[str, Linear] = field(default_factory=dict)
    _let_facts: dict[tuple[str, bool], Facts] = field(default_factory=dict)
    _let_indices: dict[str, frozenset[str]] = field(default_factory=dict)
    _known: dict[int, tuple[c.Expr, Linear]] = field(default_factory=dict)
    _known_exact: dict[int, tuple[c.Expr, Linear]] = field(default_factory=dict)
    _own_value: dict[int, bool] = field(default_factory=dict)
    _own_value_lets: set[str] = field(default_factory=set)
    _congruent: dict[int, bool] = field(default_factory=dict)
    _congruent_lets: set[str] = field(default_factory=set)
    _bounds: dict[tuple[int, Facts, bool], tuple[c.Expr, Bounds]] = field(default_factory=dict)
    """Forms and bounds of expressions (by identity), for the present ranges: lets make
    expressions share their parts, and without these the time would double with each let."""
    _level: int = 0
    """How deep the search for bounds is inside operations,"""
    _branches: int = 0
    """and inside the sides of ``? :``."""
    _stale: bool = True
    """Whether what is kept of the lets was worked out for other ranges."""

    def __post_init__(self) -> None:
        self._sizes = SizeValues(self.sizes, self.shapes, self.lets)
        self._index_lets = traverse.index_lets(self.lets)

    def _prepare_lets(self) -> None:
        """Work out the lets in order, so that no chain of them is followed more than a step."""
        self._stale = False
        for name, value in self.lets.items():
            self._let_indices[name] = self._mentioned(value)
            if value.type.is_integral:
                self._forms[name] = self.linear(value)
                self._exact_forms[name] = self.exact(value)
                if self._is_its_value(value):
                    self._own_value_lets.add(name)
                if self._is_congruent(value):
                    self._congruent_lets.add(name)
            elif value.type.is_bool:
                for holds in (True, False):
                    self._let_facts[name, holds] = self._facts(value, holds)

    def resolve(self, index: str, bounds: Bounds) -> None:
        """Fix the smallest and largest value of an index."""
        self.ranges[index] = bounds
        self._known.clear()
        self._known_exact.clear()
        self._own_value.clear()
        self._own_value_lets.clear()
        self._congruent.clear()
        self._congruent_lets.clear()
        self._bounds.clear()
        self._stale = True

    # --- linear forms ---

    def linear(self, expr: c.Expr) -> Linear:
        """The linear form of an integer expression."""
        if id(expr) not in self._known:
            value = self._size_value(expr)
            form = self._linear(expr) if value is None else Linear({}, value)
            self._known[id(expr)] = expr, form
        return self._known[id(expr)][1]

    def _size_value(self, expr: c.Expr) -> int | None:
        """The value of an expression of sizes alone; None of any other, or if it has none."""
        try:
            return self._sizes.value(expr)
        except NoValueError:
            return None

    def _linear(self, expr: c.Expr) -> Linear:
        match expr:
            case c.Index(name=name):
                return Linear({name: 1})
            case c.LetRef(name=name) if expr.type.is_integral:
                if self._stale:
                    self._prepare_lets()
                return self._forms[name]
            case c.Unary(op="-", operand=operand):
                return self._unless_it_wraps(expr, Linear({}).plus(self.linear(operand), -1))
            case c.Binary(op="+" | "-" | "*" as op, left=left, right=right):
                form = _combined(op, self.linear(left), self.linear(right))
                return Linear({expr: 1}) if form is None else self._unless_it_wraps(expr, form)
            case c.Binary(op="/" | "%" | "min" | "max"):
                low, high = self.bounds_of_operation(expr, NO_FACTS)
                return Linear({}, cast(int, low)) if low == high else Linear({expr: 1})
            case c.Cast(operand=operand, type=type_) if operand.type.is_integral:
                form = self.linear(operand)
                kept = type_.holds(operand.type) or within(self.bounds(form), type_)
                return form if kept else Linear({expr: 1})
            case _:
                return Linear({expr: 1})

    def _unless_it_wraps(self, expr: c.Unary | c.Binary, form: Linear) -> Linear:
        """The form, unless it contains values whose arithmetic may wrap."""
        plain = form.is_affine and traverse.is_index_arithmetic(expr, self._index_lets)
        if plain or within(self.bounds(form), expr.type):
            return form
        return Linear({expr: 1})

    def exact(self, expr: c.Expr) -> Linear:
        """The linear form of a subscript: that of its value where no part can wrap."""
        if id(expr) not in self._known_exact:
            found = form = self.linear(expr)
            if not self._is_its_value(expr):
                found = self._exact(expr)
            self._known_exact[id(expr)] = expr, form if found == form else found
        return self._known_exact[id(expr)][1]

    def _exact(self, expr: c.Expr) -> Linear:
        form: Linear | None = None
        match expr:
            case c.LetRef(name=name):
                return self._exact_forms[name]
            case c.Cast(operand=operand):
                return self.exact(operand)
            case c.Unary(operand=operand):
                form = Linear({}).plus(self.exact(operand), -1)
            case c.Binary(op=op, left=left, right=right):
                form = _combined(op, self.exact(left), self.exact(right))
        if form is not None and (form.is_affine or within(self.bounds(form), INT64)):
            return form
        return Linear({Exact(expr): 1})

    def _is_its_value(self, expr: c.Expr) -> bool:
        """Whether a subscript is what the expression is elsewhere, as no part can wrap."""
        if not traverse.is_exact(expr):
            return True
        if id(expr) not in self._own_value:
            match expr:
                case c.LetRef(name=name):
                    if self._stale:
                        self._prepare_lets()
                    found = name in self._own_value_lets
                case c.Select(then=then, otherwise=otherwise):
                    found = self._is_its_value(then) and self._is_its_value(otherwise)
                case _:
                    found = all([self._is_its_value(side) for side in traverse.children(expr)])
                    found = found and (expr.type == INT64 or not self._can_wrap(expr))
            self._own_value[id(expr)] = found
        return self._own_value[id(expr)]

    def _can_wrap(self, expr: c.Expr) -> bool:
        """Whether a value may be none of its type though its operands are."""
        if not isinstance(expr, c.Unary | c.Binary) or expr.op in ("%", "min", "max"):
            return False
        if isinstance(expr, c.Binary) and expr.op == "/" and isinstance(expr.right, c.Const):
            return expr.right.value == -1
        return not within(self._operation(expr, NO_FACTS), expr.type)

    def _is_congruent(self, expr: c.Expr) -> bool:
        """Whether a subscript is its value in its type, but for multiples of the values that the
        type has."""
        if id(expr) not in self._congruent:
            found = self._is_its_value(expr)
            if not found and isinstance(expr, c.LetRef):
                found = expr.name in self._congruent_lets
            elif not found and isinstance(expr, c.Unary | c.Binary) and expr.op in ("+", "-", "*"):
                sides = traverse.children(expr)
                found = all(s.type == expr.type and self._is_congruent(s) for s in sides)
            self._congruent[id(expr)] = found
        return self._congruent[id(expr)]

    # --- bounds ---

    def bounds_of_subscript(self, access: Access) -> Bounds:
        """Smallest and largest value of a subscript, given what surrounding conditions say: also of
        its value, which is the same where no other one is congruent to it."""
        low, high = self.bounds(access.form, access.facts)
        expr = access.read.subscripts[access.axis]
        if access.value is access.form or not self._is_congruent(expr):
            return low, high
        least, most = self.bounds(access.value, access.facts)
        period = 1 << expr.type.bits
        if high - period < least and most < low + period:
            return largest(low, least), smallest(high, most)
        return low, high

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
            low += smallest(coefficient * a, coefficient * b)
            high += largest(coefficient * a, coefficient * b)
        if facts.at_least_zero and form.terms:
            terms, factor = form.primitive
            negated = {a: -k for a, k in terms.items()}
            for fact in facts.at_least_zero:
                if fact.terms == terms:
                    low = largest(low, form.constant - factor * fact.constant)
                if fact.terms == negated:
                    high = smallest(high, form.constant + factor * fact.constant)
        return low, high

    def _atom_bounds(self, atom: Atom, facts: Facts) -> Bounds:
        if isinstance(atom, str):
            low, high = self.ranges.get(atom, UNBOUNDED)
        elif isinstance(atom, Exact):
            low, high = self.bounds_of_operation(atom.expr, facts, exact=True)
        else:
            low, high = self.bounds_of_operation(atom, facts)
        for fact in facts.at_least_zero:
            if len(fact.terms) == 1 and atom in fact.terms:
                k = fact.terms[atom]
                if k > 0:
                    low = largest(low, -(fact.constant // k))
                else:
                    high = smallest(high, fact.constant // -k)
        for fact in facts.not_zero:
            if len(fact.terms) == 1 and atom in fact.terms:
                k = fact.terms[atom]
                low += k * low + fact.constant == 0
                high -= k * high + fact.constant == 0
        return low, high

    def bounds_of_operation(self, expr: c.Expr, facts: Facts, exact: bool = False) -> Bounds:
        """Bounds of an expression that is not linear; at worst those of its type. ``exact``: as a
        subscript, at worst those of int64."""
        key = id(expr), facts, exact
        if key not in self._bounds:
            self._level += 1
            known = self._level < _MOST_LEVELS
            found = self._operation(expr, facts, exact) if known else UNBOUNDED
            self._level -= 1
            if not exact:
                found = of_type(expr, found)
            elif not within(found, INT64):
                found = INT64.limits
            self._bounds[key] = expr, found
        return self._bounds[key][1]

    def before_wrapping(self, expr: c.Expr, exact: bool = False) -> Bounds:
        """Bounds of an operation on integers that do not wrap: before it wraps, if it does.
        ``exact``: as a subscript."""
        form = self.exact(expr) if exact else self.linear(expr)
        return self.bounds(form) if form.is_affine else self._operation(expr, NO_FACTS, exact)

    def _operation(self, expr: c.Expr, facts: Facts, exact: bool = False) -> Bounds:
        form_of = self.exact if exact else self.linear

        def bounds_of(e: c.Expr) -> Bounds:
            return self.bounds(form_of(e), facts)

        match expr:
            # A sum has no form if it was asked for before ranges showed that it cannot wrap.
            case c.Binary(
                op="+" | "-" | "min" | "max" | "*" | "/" | "%" as op, left=left, right=right
            ):
                return operation(op, bounds_of(left), bounds_of(right))
            case c.Unary(op="-", operand=operand):
                return operation("-", (0, 0), bounds_of(operand))
            case c.Cast(operand=operand) if operand.type.is_bool:
                return operand.type.limits
            case c.Select() if self._branches < _MOST_BRANCHES:
                self._branches += 1
                then, otherwise = (
                    self.bounds(form_of(side), self.under(facts, expr.condition, holds))
                    for side, holds in ((expr.then, True), (expr.otherwise, False))
                )
                self._branches -= 1
                return either(then, otherwise)
            case c.Select(then=then, otherwise=otherwise):
                return either(bounds_of(then), bounds_of(otherwise))
            case _:
                return UNBOUNDED

    # --- facts ---

    def impossible(self, facts: Facts) -> bool:
        """Whether the facts contradict each other or the ranges: nothing is evaluated there."""
        found = (self.bounds(f, facts) for f in facts.at_least_zero)
        return any(high < 0 or low > high for low, high in found)

    def under(self, facts: Facts, condition: c.Expr, holds: bool) -> Facts:
        """``facts``, and what follows from a condition being true (or false)."""
        found = self._facts(condition, holds)
        return facts.also(replace(found, mentioned=self._mentioned(condition)))

    def _mentioned(self, condition: c.Expr) -> frozenset[str]:
        """The index variables below a condition, and below the lets that it uses."""
        found: frozenset[str] = frozenset()
        for node in traverse.walk(condition):
            if isinstance(node, c.Index):
                found |= {node.name}
            elif isinstance(node, c.LetRef):
                if self._stale:
                    self._prepare_lets()
                found |= self._let_indices[node.name]
        return found

    def _facts(self, condition: c.Expr, holds: bool) -> Facts:
        match condition:
            case c.Unary(op="!", operand=operand):
                return self._facts(operand, not holds)
            case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == holds:
                return self._facts(left, holds).also(self._facts(right, holds))
            case c.LetRef(name=name):
                if self._stale:
                    self._prepare_lets()
                return self._let_facts.get((name, holds), _NOT_UNDERSTOOD)
            case c.Binary(op=op, left=left, right=right) if (
                op in _NEGATION and left.type.is_integral
            ):
                return _comparison(op, self.linear(left), self.linear(right), holds)
            case _:
                return _NOT_UNDERSTOOD


def _combined(op: str, one: Linear, other: Linear) -> Linear | None:
    """A sum, difference or product as a linear form, if it is one."""
    if op in ("+", "-"):
        return one.plus(other, 1 if op == "+" else -1)
    if op != "*" or (one.terms and other.terms):
        return None
    rest, factor = (other, one) if not one.terms else (one, other)
    return Linear({}).plus(rest, factor.constant)


_NOT_UNDERSTOOD = Facts(complete=False)

_NEGATION = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _comparison(op: str, left: Linear, right: Linear, holds: bool) -> Facts:
    if not holds:
        op = _NEGATION[op]
    difference, opposite, one = left.plus(right, -1), right.plus(left, -1), Linear({}, 1)
    if op == "!=":
        return Facts((), (difference,))
    at_least_zero = {
        "<": [opposite.plus(one, -1)],
        "<=": [opposite],
        ">": [difference.plus(one, -1)],
        ">=": [difference],
        "==": [difference, opposite],
    }
    return Facts(tuple(map(_at_least_zero, at_least_zero[op])))


def _at_least_zero(form: Linear) -> Linear:
    """The form divided by its common divisor, rounded down: it is >= 0 just when ``form`` is."""
    terms, divisor = form.primitive
    return Linear(terms, form.constant // divisor)


@dataclass(frozen=True, slots=True)
class Access:
    """One subscript, with its linear form and what is known where it stands."""

    read: c.Read
    axis: int
    form: Linear
    value: Linear
    """What conditions know it as: ``form``, unless it may wrap where it is no subscript."""
    facts: Facts
    evaluated: bool
    """False inside ``exists``."""


def accesses(statement: c.Statement, analysis: Analysis) -> Iterator[Access]:
    """Every subscript of a statement: of its lets, its right-hand side, its ``exists``, and those
    that say where it writes."""
    condition, _ = term(statement)
    facts = NO_FACTS
    if condition is not None:  # what does not count is not written
        facts = analysis.under(facts, condition, True)
    for expr in (*(let.value for let in statement.lets), statement.rhs):
        yield from _below(expr, analysis, NO_FACTS, evaluated=True)
    for expr in traverse.computed(statement):
        yield from _below(expr, analysis, facts, evaluated=True)
    if statement.place is not None:
        for axis, subscript in enumerate(statement.place.subscripts):
            form, value = analysis.exact(subscript), analysis.linear(subscript)
            yield Access(statement.place, axis, form, value, facts, evaluated=True)
    for expr in statement.exists:
        yield from _below(expr, analysis, NO_FACTS, evaluated=False)


def _below(expr: c.Expr, analysis: Analysis, facts: Facts, *, evaluated: bool) -> Iterator[Access]:
    """Every subscript below ``expr``."""
    for read, axis, known in traverse.subscripts(expr, facts, analysis.under):
        subscript = read.subscripts[axis]
        form, value = analysis.exact(subscript), analysis.linear(subscript)
        yield Access(read, axis, form, value, known, evaluated)
