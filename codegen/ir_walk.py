"""Walks over values of the loop IR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tcl.codegen import ir


def children(value: ir.Value) -> tuple[ir.Value, ...]:
    """The values directly inside a value, those of computed subscripts included."""
    match value:
        case ir.Const() | ir.Position() | ir.Variable():
            return ()
        case ir.Load(ref=ref):
            return tuple(s.value for s in ref.subscripts if isinstance(s, ir.Computed))
        case ir.Unary(operand=operand) | ir.Cast(operand=operand):
            return (operand,)
        case ir.Binary(left=left, right=right):
            return left, right
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            return condition, then, otherwise
        case ir.Call(arguments=arguments):
            return arguments
        case _:
            assert_never(value)


def walk(value: ir.Value) -> Iterator[ir.Value]:
    """``value`` and everything inside it; deep trees need no recursion."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def loads(value: ir.Value) -> Iterator[ir.Load]:
    """All reads inside ``value``."""
    return (v for v in walk(value) if isinstance(v, ir.Load))


def values_of(point: ir.Point) -> tuple[ir.Value, ...]:
    """The values that a point computes."""
    return (*(let.value for let in point.lets), point.value)


def indices(value: ir.Value) -> Iterator[ir.Affine]:
    """All index expressions inside ``value``."""
    for v in walk(value):
        if isinstance(v, ir.Position):
            yield v.index
        elif isinstance(v, ir.Load):
            yield from (s for s in v.ref.subscripts if isinstance(s, ir.Affine))


def statements(statement: ir.Statement) -> Iterator[ir.Statement]:
    """``statement`` and everything inside it, in order."""
    yield statement
    if isinstance(statement, ir.For):
        yield from statements(statement.body)
    elif isinstance(statement, ir.First):
        yield from statements(statement.then)
        yield from statements(statement.otherwise)
    elif isinstance(statement, ir.Block):
        for s in statement.body:
            yield from statements(s)
