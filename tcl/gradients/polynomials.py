"""Integer expressions as polynomials in indices and sizes, and where their values lie.

An atom is the name of an index or a size, or the text of a size expression that is no polynomial,
such as ``(N + 1) / 2``. Sizes are at least 0; such an expression is if its operands show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.gradients.trees import binary, expression_of, name, number
from tcl.grammar.syntax import ast

Monomial: TypeAlias = tuple[str, ...]
"""Atoms that are multiplied, sorted."""


@dataclass(frozen=True, slots=True)
class Poly:
    """``sum(coefficient * monomial)``; no coefficient is 0."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Poly) -> Poly:
        return self.plus(other)

    def __sub__(self, other: Poly) -> Poly:
        return self.plus(other, -1)

    def plus(self, other: Poly, factor: int = 1) -> Poly:
        """``self + factor * other``."""
        found = dict(self.terms)
        for monomial, k in other.terms:
            found[monomial] = found.get(monomial, 0) + factor * k
        return _made(found)

    def times(self, other: Poly) -> Poly:
        found: dict[Monomial, int] = {}
        for one, k in self.terms:
            for two, m in other.terms:
                key = tuple(sorted(one + two))
                found[key] = found.get(key, 0) + k * m
        return _made(found)

    def scaled(self, factor: int) -> Poly:
        """``factor * self``."""
        return ZERO.plus(self, factor)

    @property
    def constant(self) -> int | None:
        """The number that it is; None if it depends on something."""
        if not self.terms:
            return 0
        (monomial, k), *more = self.terms
        return k if not monomial and not more else None

    @property
    def atoms(self) -> frozenset[str]:
        """Everything that it depends on."""
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    def coefficient(self, atom: str) -> int | None:
        """What ``atom`` is multiplied with; None if that is no number."""
        found = 0
        for monomial, k in self.terms:
            if monomial == (atom,):
                found = k
            elif atom in monomial:
                return None
        return found

    def without(self, atom: str) -> Poly:
        """The terms in which ``atom`` does not stand."""
        return Poly(tuple((m, k) for m, k in self.terms if atom not in m))

    def put(self, values: Mapping[str, Poly]) -> Poly:
        """Polynomials in the place of atoms."""
        if not self.atoms & values.keys():
            return self
        total = ZERO
        for monomial, k in self.terms:
            factors = (values.get(atom, of_atom(atom)) for atom in monomial)
            total = total.plus(reduce(Poly.times, factors, ONE), k)
        return total


def _made(found: Mapping[Monomial, int]) -> Poly:
    return Poly(tuple(sorted((m, k) for m, k in found.items() if k)))


ZERO = Poly(())


def of_number(value: int) -> Poly:
    return Poly((((), value),)) if value else ZERO


ONE = of_number(1)


def of_atom(atom: str) -> Poly:
    """An index, a size, or another size expression by its text."""
    return Poly((((atom,), 1),))


Range: TypeAlias = tuple[Poly, Poly]
"""First value and stop."""


def never_negative(poly: Poly, ranges: Mapping[str, Range], known: Iterable[Poly] = ()) -> bool:
    """Whether a polynomial is at least 0 for all values of the indices in their ranges, as far as
    is easily told; ``known``: others that are at least 0. Sizes are."""
    for index in sorted(poly.atoms & ranges.keys()):
        k = poly.coefficient(index)
        if k is None:
            return False
        first, stop = ranges[index]
        poly = poly.put({index: first if k > 0 else stop - ONE})
    return any(
        all(k > 0 and all(map(_at_least_0, atoms)) for atoms, k in (poly - fact).terms)
        for fact in (ZERO, *known)
    )


def _at_least_0(atom: str) -> bool:
    return re.fullmatch(r"\w+", atom) is not None or _is_at_least_0(expression_of(atom))


def _is_at_least_0(tree: ast.Expr) -> bool:
    match tree:
        case ast.Number(value=value):
            return value >= 0
        case ast.Binary(op="max", left=left, right=right):
            return _is_at_least_0(left) or _is_at_least_0(right)
        case ast.Binary(op="%", left=left):
            return _is_at_least_0(left)
        case ast.Binary(op="+" | "*" | "/" | "min", left=left, right=right):
            return _is_at_least_0(left) and _is_at_least_0(right)
        case ast.Select(then=then, otherwise=otherwise):
            return _is_at_least_0(then) and _is_at_least_0(otherwise)
        case _:
            return isinstance(tree, ast.Name)


def poly_tree(poly: Poly, order: Iterable[str] = ()) -> ast.Expr:
    """The polynomial as an expression: the atoms of ``order`` first, numbers last."""
    first = {atom: place for place, atom in enumerate(order)}

    def rank(term: tuple[Monomial, int]) -> tuple[bool, bool, int, Monomial]:
        monomial, k = term
        places = [first[a] for a in monomial if a in first]
        return not monomial, k < 0 and not places, min(places, default=len(first)), monomial

    terms = sorted(poly.terms, key=rank)
    if terms and terms[0][1] < 0:  # N - 1 - i rather than -i + N - 1
        positive = next((t for t in terms if t[1] > 0 and t[0]), None)
        if positive is not None:
            terms.remove(positive)
            terms.insert(0, positive)
    tree: ast.Expr | None = None
    for monomial, k in terms:
        factors: list[ast.Expr] = [_atom_tree(a) for a in monomial]
        if abs(k) != 1 or not factors:
            factors.insert(0, number(abs(k)))
        term = reduce(lambda a, b: binary("*", a, b), factors)
        if tree is None:
            tree = term if k > 0 else ast.Unary("-", term, term.span)
        else:
            tree = binary("+" if k > 0 else "-", tree, term)
    return tree or number(0)


def _atom_tree(atom: str) -> ast.Expr:
    return name(atom) if re.fullmatch(r"\w+", atom) else expression_of(atom)
