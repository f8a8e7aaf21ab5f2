"""Arithmetic on indices and sizes alone does not wrap: for sizes that would make it, say so.

That holds for values of int32 and int64. In a subscript such arithmetic is in int64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from tcl.grammar.ranges.intervals import within
from tcl.grammar.ranges.linear import Analysis
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.types import INDEX, INT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import children, computed, index_lets, is_index_arithmetic, walk


def overflows(statement: c.Statement, analysis: Analysis) -> Iterator[Diagnostic]:
    """A problem for each smallest part made of indices and sizes whose values leave its type. What
    only ranges use is computed exactly."""
    check = _Overflows(analysis, index_lets(analysis.lets))
    used = {e.name for x in (*computed(statement), statement.rhs) for e in walk(x) if _is_let(e)}
    for let in reversed(statement.lets):
        if let.name in used:
            used |= {e.name for e in walk(let.value) if _is_let(e)}
    for let in statement.lets:
        if let.name not in used:
            continue
        found = list(check.in_value(let.value))
        yield from found
        if found:
            check.lets -= {let.name}
    for expr in computed(statement):
        yield from check.in_subscript(expr)
    yield from check.in_value(statement.rhs)


def _is_let(expr: c.Expr) -> TypeGuard[c.LetRef]:
    return isinstance(expr, c.LetRef)


class _Overflows:
    def __init__(self, analysis: Analysis, lets: frozenset[str]) -> None:
        self.analysis = analysis
        self.lets = lets
        """Those made of indices and sizes alone, without a problem."""

    def in_value(self, expr: c.Expr) -> Iterator[Diagnostic]:
        """The problems in what is computed in its own type."""
        if isinstance(expr, c.Read):
            for subscript in expr.subscripts:
                yield from self.in_subscript(subscript)
            return
        inner = [problem for child in children(expr) for problem in self.in_value(child)]
        yield from inner
        if not inner and _can_leave(expr) and is_index_arithmetic(expr, self.lets):
            yield from self._of_arithmetic(expr, expr.type)

    def _of_arithmetic(
        self, expr: c.Expr, type_: ScalarType, exact: bool = False
    ) -> Iterator[Diagnostic]:
        low, high = self.analysis.before_wrapping(expr, exact)
        if within((low, high), type_):
            return
        values = f"the value {low}" if low == high else f"values from {low} to {high}"
        better = f"{INT64} or to float" if type_ == INDEX else "float"
        remedy = "" if exact else f"; convert a part of it to {better} first"
        yield Diagnostic(
            f"this index arithmetic takes {values} for these sizes, which {type_} cannot hold"
            f"{remedy}",
            expr.span,
            section=Section.ARITHMETIC,
        )

    def in_subscript(self, expr: c.Expr) -> Iterator[Diagnostic]:
        """The problems in a subscript: in conditions and in casts that may change a value, and
        where it leaves int64."""
        if _can_leave(expr) and is_index_arithmetic(expr, self.lets):
            found = list(self._of_arithmetic(expr, INT64, exact=True))
            yield from found
            if found:
                return
        match expr:
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                yield from self.in_value(condition)
                exact: tuple[c.Expr, ...] = (then, otherwise)
            case c.Cast(operand=operand, type=type_) if not type_.holds(operand.type):
                yield from self.in_value(operand)
                exact = ()
            case _:
                exact = children(expr)
        for part in exact:
            yield from self.in_subscript(part)


def _can_leave(expr: c.Expr) -> bool:
    """Whether a value may be none of its type though its operands are: ``/`` has one such value,
    -2147483648 / -1, and sizes may be as large as they like."""
    operation = isinstance(expr, c.Unary | c.Binary) and expr.op in ("+", "-", "*")
    return operation or isinstance(expr, c.Index | c.Size | c.Dimension)
