"""Running minima and maxima that are none, because what stands for no term counts.

``O(i) max=! (j <= i) ? X(j) : log(0.0)`` takes one pass; with 0, each element takes all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.size_expressions import NoValueError, SizeValues
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import made_of_indices, rebuild, walk


def all_pairs(statement: c.Statement, source: Source) -> Iterator[Diagnostic]:
    """A warning of a value that counts where a condition such as ``j <= i`` is false, so that a
    minimum or maximum does not run. If it counts once, afterwards, the result is the same there."""
    op, chosen = statement.op, statement.rhs
    while isinstance(chosen, c.Cast):
        chosen = chosen.operand
    if op not in ("min", "max") or statement.lets or statement.place is not None:
        return
    if not isinstance(chosen, c.Select) or chosen.type.is_bool or term(statement)[0] is not None:
        return
    reduced = [set(_names(s)) & {*statement.reduction} for s in (chosen.then, chosen.otherwise)]
    if all(reduced):
        return
    value, other = chosen.then, chosen.otherwise
    parts = [*_parts(chosen.condition)]
    if not reduced[0]:
        value, other, parts = other, value, [chosen.condition]
    used = [*_names(chosen.condition), *_names(value)]
    triangles = ((part, pair) for part in parts for pair in _triangle(part, statement))
    for part, (run, of) in triangles:
        # With the terms on either side of an element, as of j <= i + 1, none of them run.
        sides = {_value(part, {run: 0, of: step}) for step in (-1, 1)}
        if sides != {bool(reduced[0])} and used.count(run) == 1 and of in _names(value):
            text = source.one_line(other.span)
            element = f"{statement.target}({', '.join(statement.indices)})"
            yield Diagnostic(
                f"this running {op}imum computes all pairs of '{run}' and '{of}', because {text} "
                f"counts where the condition is false; write {_no_terms(op, statement.rhs.type)} "
                f"instead, and if {text} is meant to count, {element} = {op}({element}, {text}) "
                "in the next statement",
                other.span,
                section=Section.CUMSUM,
            )


def _parts(condition: c.Expr) -> Iterator[c.Expr]:
    """Conditions all of which hold where this one does."""
    if isinstance(condition, c.Binary) and condition.op == "&&":
        yield from _parts(condition.left)
        yield from _parts(condition.right)
    else:
        yield condition


def _triangle(condition: c.Expr, statement: c.Statement) -> Iterator[tuple[str, str]]:
    """The index of the result and the one that is reduced over, if a condition compares them."""
    ops = {node.op for node in walk(condition) if isinstance(node, c.Unary | c.Binary)}
    if not isinstance(condition, c.Binary) or not ops <= {"<", "<=", ">", ">=", "+", "-"}:
        return
    sides = [_names(condition.left), _names(condition.right)]
    if made_of_indices(condition, ()) and [len(names) for names in sides] == [1, 1]:
        for (run,), (of,) in (sides, sides[::-1]):
            if run in statement.indices and of in statement.reduction:
                yield run, of


def _value(condition: c.Expr, at: Mapping[str, int]) -> int | None:
    """What a condition of indices is at some values of these; None where sizes decide."""

    def known(expr: c.Expr) -> c.Expr:
        return c.Size(expr.name, expr.span) if isinstance(expr, c.Index) else expr

    with suppress(NoValueError):
        return SizeValues(at, {}, {}).value(rebuild(condition, known))
    return None


def _names(expr: c.Expr) -> list[str]:
    """The indices in an expression, as often as each stands there."""
    return [node.name for node in walk(expr) if isinstance(node, c.Index)]


def _no_terms(op: str, type_: ScalarType) -> str:
    """From what such a reduction starts, as a def says it."""
    if not type_.is_float:
        return str(type_.limits[op == "min"])
    text = "-log(0.0)" if op == "min" else "log(0.0)"
    return text if type_ in (FLOAT32, FLOAT64) else f"{type_}({text})"
