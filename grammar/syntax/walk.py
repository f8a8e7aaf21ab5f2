"""Traversals of both trees that need no recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar, assert_never

from tcl.grammar.syntax import ast
from tcl.grammar.syntax.source import Span

_Expr = TypeVar("_Expr")


_parts: dict[type, tuple[str, ...]] = {}


def parts(class_: Any) -> tuple[str, ...]:
    """The fields of a class that hold expressions of its tree, in their order."""
    if class_ not in _parts:
        holding = (f.name for f in fields(class_) if f.type in ("Expr", "tuple[Expr, ...]"))
        _parts[class_] = tuple(holding)
    return _parts[class_]


def children(expr: Any) -> tuple[Any, ...]:
    """The direct sub-expressions, left to right; also of the checked tree."""
    found: list[Any] = []
    for name in parts(type(expr)):
        part = getattr(expr, name)
        found += part if type(part) is tuple else (part,)
    return tuple(found)


def walk(expr: _Expr) -> Iterator[_Expr]:
    """``expr`` and everything below it, left to right, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def expressions(statement: ast.Statement) -> Iterator[ast.Expr]:
    """The expressions a statement is made of: indices, right-hand side, where clauses."""
    match statement:
        case ast.Call(value=value):
            yield value
        case ast.Assign():
            yield from statement.indices
            yield statement.rhs
            if statement.equivalent is not None:
                yield from statement.equivalent.arguments
            for clause in statement.where:
                match clause:
                    case ast.Range(start=start, stop=stop):
                        yield from (start, stop)
                    case ast.Let(value=value) | ast.Exists(value=value):
                        yield value
                    case _:
                        assert_never(clause)
        case _:
            assert_never(statement)


def targets(statement: ast.Statement) -> tuple[str, ...]:
    """The tensors that a statement assigns."""
    if isinstance(statement, ast.Call):
        return tuple(target.name for target in statement.targets)
    return (statement.target,)


def deepest(statement: ast.Statement) -> tuple[int, Span]:
    """Depth of the deepest expression of a statement, and where that is."""
    depth, span = 0, statement.span
    stack = [(e, 1) for e in expressions(statement)]
    while stack:
        expr, level = stack.pop()
        if level > depth:
            depth, span = level, expr.span
        stack.extend((c, level + 1) for c in children(expr))
    return depth, span
