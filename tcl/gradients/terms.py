"""Sums of guarded terms, as one expression, and integer arithmetic in it as people write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.gradients.polynomials import (
    ONE,
    Poly,
    Range,
    never_negative,
    of_atom,
    of_number,
    poly_tree,
)
from tcl.gradients.propagate import Conditions
from tcl.gradients.trees import (
    NOWHERE,
    all_of,
    conjuncts,
    is_literal,
    is_number,
    name,
    number,
    opposite,
    size_of,
    summed,
    with_parts,
)
from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax.printer import expr_text

Guarded: TypeAlias = tuple[Conditions, ast.Expr]
"""A value where all conditions hold, else 0."""


def combined(terms: Sequence[Guarded]) -> ast.Expr:
    """The sum of the terms. Conditions that they share are asked for once, and of two that exclude
    each other no second one where the first holds."""
    bare = [value for conditions, value in terms if not conditions]
    groups: dict[ast.Expr, list[Guarded]] = {}
    for conditions, value in terms:
        if conditions:
            groups.setdefault(conditions[0], []).append((conditions[1:], value))
    parts = {condition: combined(inner) for condition, inner in groups.items()}
    addends = list(bare)
    while parts:
        condition, value = next(iter(parts.items()))
        del parts[condition]
        others = [(o, parts.pop(o)) for o in list(parts) if _exclusive(condition, o)]
        addends.append(_selected([(condition, value), *others[:1]]))
        parts |= dict(others[1:])
    return summed(addends)


def _selected(cases: list[tuple[ast.Expr, ast.Expr]]) -> ast.Expr:
    """The value of the first condition that holds, else 0."""
    (condition, value), *more = cases
    if not more:
        return under([condition], value)
    other, otherwise = more[0]
    if value == otherwise and _complementary(condition, other):
        return value
    if not _complementary(condition, other):
        otherwise = ast.Select(other, otherwise, number(0), NOWHERE)
    elif isinstance(condition, ast.Unary):  # p ? a : b rather than !p ? b : a
        condition, value, otherwise = other, otherwise, value
    return ast.Select(condition, value, otherwise, NOWHERE)


def under(conditions: Sequence[ast.Expr], value: ast.Expr) -> ast.Expr:
    """The value where all conditions hold, else 0, in one ``? :``."""
    found = list(conditions)
    if not found:
        return value
    if isinstance(value, ast.Select) and is_number(value.otherwise, 0):
        found.append(value.condition)
        value = value.then
    condition = all_of(found)
    assert condition is not None, "there are some"
    return ast.Select(condition, value, number(0), NOWHERE)


def _complementary(one: ast.Expr, other: ast.Expr) -> bool:
    """Whether just one of two conditions holds. Of floats only what ``!`` says is known."""
    return opposite(one) == other or opposite(other) == one


_APART = {
    frozenset(pair)
    for pair in (("<", "=="), (">", "=="), ("<", ">"), ("<", ">="), (">", "<="), ("==", "!="))
}


def _exclusive(one: ast.Expr, other: ast.Expr) -> bool:
    """Whether two conditions never hold at once."""
    if _complementary(one, other):
        return True
    if isinstance(one, ast.Binary) and one.op == "||":  # a > b || b != b: with a NaN no tie
        nan = isinstance(one.right, ast.Binary) and one.right.left == one.right.right
        tie = isinstance(other, ast.Binary) and other.op == "=="
        return nan and tie and _exclusive(one.left, other)
    match one, other:
        case ast.Binary(op=a, left=x, right=y), ast.Binary(op=b, left=z, right=w):
            return (x, y) == (z, w) and frozenset((a, b)) in _APART
        case _:
            return False


# --- integers ---


@dataclass(frozen=True, slots=True)
class Integers:
    ranges: Mapping[str, Range]
    """Of its indices."""
    sizes: frozenset[str]
    symbols: Mapping[Poly, str]
    """Formula → the size that it is."""
    known: Sequence[Poly] = ()
    """Formulas that are not negative."""

    def tidied(self, tree: ast.Expr) -> ast.Expr:
        """The expression with sums of indices and sizes in normal form, ``h - kh + kh`` as ``h``,
        and without conditions that always hold."""
        poly = self.poly(tree)
        if poly is not None:
            return self._sum(tree, poly)
        if isinstance(tree, ast.Select):
            kept = [each for each in conjuncts(tree.condition) if self._holds(each) is not True]
            never = any(self._holds(each) is False for each in kept)
            # A literal would no longer have the type of what it meets.
            if never and not is_literal(tree.otherwise):
                return self.tidied(tree.otherwise)
            kept = self._needed(kept)
            condition = all_of([self.tidied(each) for each in kept])
            if condition is None and is_literal(tree.then):
                return with_parts(tree, self.tidied)
            if condition is None:
                return self.tidied(tree.then)
            then, otherwise = self.tidied(tree.then), self.tidied(tree.otherwise)
            return ast.Select(condition, then, otherwise, NOWHERE)
        return with_parts(tree, self.tidied)

    def _sum(self, tree: ast.Expr, poly: Poly) -> ast.Expr:
        if poly in self.symbols:
            return name(self.symbols[poly])
        normal = poly_tree(poly, list(self.ranges))
        # As it was written, if that is no longer.
        size = size_of(tree)
        return tree if size <= size_of(normal) and not self._has_symbol(tree) else normal

    def _has_symbol(self, tree: ast.Expr) -> bool:
        return any(isinstance(node, ast.Binary) and node.op in "/%" for node in walk.walk(tree))

    def difference(self, condition: ast.Expr) -> Poly | None:
        """A comparison of integers as what is then at least 0; None of any other condition."""
        if not isinstance(condition, ast.Binary) or condition.op not in _AS_DIFFERENCE:
            return None
        a, b = self.poly(condition.left), self.poly(condition.right)
        if a is None or b is None:
            return None
        sign, least = _AS_DIFFERENCE[condition.op]
        return (a - b).scaled(sign) - of_number(least)

    def _needed(self, conditions: list[ast.Expr]) -> list[ast.Expr]:
        """The conditions without those that follow from another one, asked before or, where
        nothing is read in between, after it."""
        found = [(each, self.difference(each)) for each in conditions]
        for each in conditions:
            place = next(k for k, (other, _) in enumerate(found) if other is each)
            difference = found[place][1]
            for k, (_, other) in enumerate(found):
                between = found[place + 1 : k]
                if k == place or other is None or difference is None:
                    continue
                simple = all(d is not None for _, d in between)
                # Only of the same sum: inference, too, has to see that it suffices.
                slack = difference - other
                alike = not slack.atoms & self.ranges.keys()
                if simple and alike and never_negative(slack, {}, self.known):
                    del found[place]
                    break
        return [each for each, _ in found]

    def _holds(self, condition: ast.Expr) -> bool | None:
        """Whether a comparison of integers holds at all points, or at none."""
        difference = self.difference(condition)
        if difference is None:
            return None
        if never_negative(difference, self.ranges, self.known):
            return True
        if never_negative(difference.scaled(-1) - ONE, self.ranges, self.known):
            return False
        return None

    def poly(self, tree: ast.Expr) -> Poly | None:
        """An expression of indices, sizes and whole numbers as a polynomial; None of any other."""
        match tree:
            case ast.Number(value=int() as value):
                return of_number(value)
            case ast.Name(name=atom) if atom in self.sizes or atom in self.ranges:
                return of_atom(atom)
            case ast.Unary(op="-", operand=operand):
                inner = self.poly(operand)
                return None if inner is None else inner.scaled(-1)
            case ast.Binary(op="+" | "-" | "*" as op, left=left, right=right):
                a, b = self.poly(left), self.poly(right)
                if a is None or b is None:
                    return None
                return a.times(b) if op == "*" else a.plus(b, 1 if op == "+" else -1)
            case ast.Binary(op="/" | "%" | "min" | "max") | ast.Select() if self._of_sizes(tree):
                return of_atom(expr_text(tree))
            case _:
                return None

    def _of_sizes(self, tree: ast.Expr) -> bool:
        """Whether this is made of sizes and whole numbers."""
        leaves = [n for n in walk.walk(tree) if not walk.children(n)]
        names = [n.name for n in leaves if isinstance(n, ast.Name)]
        whole = all(isinstance(n.value, int) for n in leaves if isinstance(n, ast.Number))
        simple = all(isinstance(n, ast.Name | ast.Number) for n in leaves)
        return bool(names) and whole and simple and all(n in self.sizes for n in names)


_AS_DIFFERENCE = {
    ">=": (1, 0),
    ">": (1, 1),
    "<=": (-1, 0),
    "<": (-1, 1),
}
"""Comparison → sign, least value of the difference."""
