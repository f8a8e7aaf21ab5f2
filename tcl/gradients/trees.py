"""Expressions of derived defs: made as a person would write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.source import Span

NOWHERE = Span(0, 0, 1, 1)
"""Where what is derived stands: it is printed, and parsed again."""

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def number(value: float) -> ast.Expr:
    """A literal; of a negative number the opposite of one."""
    if value < 0:
        return ast.Unary("-", ast.Number(-value, NOWHERE), NOWHERE)
    return ast.Number(value, NOWHERE)


def name(text: str) -> ast.Expr:
    """An index, a size or a scalar."""
    return ast.Name(text, NOWHERE)


def apply(function: str, *arguments: ast.Expr) -> ast.Expr:
    """A call of a built-in function, or an element of a tensor; of one without dimensions it."""
    if not arguments:
        return name(function)
    return ast.Apply(function, arguments, NOWHERE, NOWHERE)


def binary(op: str, left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """An operation as it stands."""
    return ast.Binary(op, left, right, NOWHERE)


def cast(type_: str, operand: ast.Expr) -> ast.Expr:
    """A conversion."""
    return ast.Cast(type_, operand, NOWHERE)


@lru_cache(1024)
def expression_of(text: str) -> ast.Expr:
    """The expression of a text."""
    statement = parse(f"def f() -> (O) {{ O = {text} }}").defs[0].statements[0]
    assert isinstance(statement, ast.Assign)
    return statement.rhs


def is_number(tree: ast.Expr, value: float) -> bool:
    """Whether this is a literal of that value."""
    return isinstance(tree, ast.Number) and tree.value == value


def is_literal(tree: ast.Expr) -> bool:
    """Whether the value is made of literals alone, so that it has the type of what it meets."""
    match tree:
        case ast.Number():
            return True
        case ast.Unary(operand=operand):
            return is_literal(operand)
        case ast.Binary(left=left, right=right):
            return is_literal(left) and is_literal(right)
        case ast.Select(then=then, otherwise=otherwise):
            return is_literal(then) and is_literal(otherwise)
        case _:
            return False


def of_type(type_: str, tree: ast.Expr) -> ast.Expr:
    """The value with this type, if it is made of literals: a cast would make them float32 first."""
    return times(tree, cast(type_, number(1))) if is_literal(tree) else tree


# --- arithmetic that leaves out what changes nothing ---


def negative(tree: ast.Expr) -> ast.Expr:
    """``-tree``."""
    if isinstance(tree, ast.Unary) and tree.op == "-":
        return tree.operand
    if isinstance(tree, ast.Binary) and tree.op in "*/":
        return replace(tree, left=negative(tree.left))
    return ast.Unary("-", tree, NOWHERE)


def _split_sign(tree: ast.Expr) -> tuple[bool, ast.Expr]:
    """Whether a minus stands in front, and what is behind it."""
    match tree:
        case ast.Unary(op="-", operand=operand):
            return True, operand
        case ast.Binary(op="*" | "/", left=left):
            minus, rest = _split_sign(left)
            return minus, replace(tree, left=rest) if minus else tree
        case _:
            return False, tree


def times(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left * right``, of floats: grouped from the left."""
    if isinstance(right, ast.Binary) and right.op in "*/":
        inner = times(left, right.left)
        return times(inner, right.right) if right.op == "*" else over(inner, right.right)
    if is_number(left, 1):
        return right
    if is_number(right, 1):
        return left
    (one, left), (two, right) = _split_sign(left), _split_sign(right)
    found = left if is_number(right, 1) else right if is_number(left, 1) else None
    if found is None:
        found = binary("*", left, right)
    return negative(found) if one != two else found


def over(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left / right``."""
    if is_number(right, 1):
        return left
    (one, left), (two, right) = _split_sign(left), _split_sign(right)
    found = binary("/", left, right)
    return negative(found) if one != two else found


def plus(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    """``left + right``."""
    if left == right:
        return times(number(2), left)
    minus, rest = _split_sign(right)
    if minus:
        return binary("-", left, rest)
    minus, rest = _split_sign(left)
    return binary("-", right, rest) if minus else binary("+", left, right)


def opposite(condition: ast.Expr, *, of_integers: bool = False) -> ast.Expr:
    """What holds where a condition does not. A comparison of floats is turned only if a NaN makes
    no difference: ``==`` and ``!=``."""
    match condition:
        case ast.Unary(op="!", operand=operand):
            return operand
        case ast.Binary(op=op) if op in _OPPOSITE and (of_integers or op in ("==", "!=")):
            return replace(condition, op=_OPPOSITE[op])
        case _:
            return ast.Unary("!", condition, NOWHERE)


def all_of(conditions: list[ast.Expr]) -> ast.Expr | None:
    """All conditions, in this order, each once; None if there are none."""
    once = list(dict.fromkeys(part for each in conditions for part in conjuncts(each)))
    return reduce(lambda a, b: binary("&&", a, b), once) if once else None


def conjuncts(condition: ast.Expr) -> Iterator[ast.Expr]:
    """The parts of ``a && b && c``."""
    if isinstance(condition, ast.Binary) and condition.op == "&&":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def guarded(conditions: list[ast.Expr], value: ast.Expr) -> ast.Expr:
    """The value where all conditions hold, else 0, which is never computed from it."""
    condition = all_of(conditions)
    if condition is None:
        return value
    return ast.Select(condition, value, number(0), NOWHERE)


# --- changing ---


def rebuilt(tree: ast.Expr, change: Callable[[ast.Expr], ast.Expr]) -> ast.Expr:
    """``tree`` with ``change`` applied to every node, children first."""
    changed: dict[str, Any] = {}
    for part in walk.parts(type(tree)):
        inner = getattr(tree, part)
        if isinstance(inner, tuple):
            changed[part] = tuple(rebuilt(each, change) for each in inner)
        else:
            changed[part] = rebuilt(inner, change)
    return change(replace(tree, **changed) if changed else tree)


def put(tree: ast.Expr, values: Mapping[str, ast.Expr]) -> ast.Expr:
    """Expressions in the place of names."""

    def leaf(node: ast.Expr) -> ast.Expr:
        return values.get(node.name, node) if isinstance(node, ast.Name) else node

    return rebuilt(tree, leaf) if values else tree


def size_of(tree: ast.Expr) -> int:
    """Number of nodes."""
    return sum(1 for _ in walk.walk(tree))
