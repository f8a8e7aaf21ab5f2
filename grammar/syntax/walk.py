"""Traversals of the AST that need no recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tcl.grammar.syntax import ast
from tcl.grammar.syntax.source import Span


def children(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The direct sub-expressions, left to right."""
    match expr:
        case ast.Number() | ast.Name() | ast.Dimension():
            return ()
        case ast.Apply(arguments=arguments):
            return arguments
        case ast.Unary(operand=operand) | ast.Cast(operand=operand):
            return (operand,)
        case ast.Binary(left=left, right=right):
            return (left, right)
        case ast.Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case _:
            assert_never(expr)


def walk(expr: ast.Expr) -> Iterator[ast.Expr]:
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
