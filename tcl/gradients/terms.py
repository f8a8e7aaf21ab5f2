"""Sums of guarded terms, as one expression, and integer arithmetic in it as people write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

from tcl.grammar.syntax import ast, walk
from tcl.gradients.polynomials import Poly, of_atom, of_number, poly_tree
from tcl.gradients.propagate import Conditions
from tcl.gradients.trees import NOWHERE, all_of, is_number, name, number, opposite, plus

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
    return reduce(plus, addends)


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


def tidied(
    tree: ast.Expr, integers: frozenset[str], order: Sequence[str], symbols: Mapping[Poly, str]
) -> ast.Expr:
    """The expression with its sums of indices and sizes in normal form: ``h - kh + kh`` is ``h``.

    ``integers``: the names of indices and sizes; ``symbols``: formula → the size that it is.
    """
    poly = integer_poly(tree, integers)
    if poly is not None:
        found = symbols.get(poly)
        if found is not None:
            return name(found)
        return tree if isinstance(tree, ast.Number | ast.Name) else poly_tree(poly, order)
    return _with_parts(tree, lambda part: tidied(part, integers, order, symbols))


def _with_parts(tree: ast.Expr, change: Callable[[ast.Expr], ast.Expr]) -> ast.Expr:
    changed: dict[str, Any] = {}
    for part in walk.parts(type(tree)):
        inner = getattr(tree, part)
        changed[part] = tuple(map(change, inner)) if isinstance(inner, tuple) else change(inner)
    return replace(tree, **changed) if changed else tree


def integer_poly(tree: ast.Expr, integers: frozenset[str]) -> Poly | None:
    """An expression of indices, sizes and whole numbers as a polynomial; None of any other."""
    match tree:
        case ast.Number(value=int() as value):
            return of_number(value)
        case ast.Name(name=atom) if atom in integers:
            return of_atom(atom)
        case ast.Unary(op="-", operand=operand):
            inner = integer_poly(operand, integers)
            return None if inner is None else inner.scaled(-1)
        case ast.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            a, b = integer_poly(left, integers), integer_poly(right, integers)
            if a is None or b is None:
                return None
            return a.times(b) if op == "*" else a.plus(b, 1 if op == "+" else -1)
        case _:
            return None
