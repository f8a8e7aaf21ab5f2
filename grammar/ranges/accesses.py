"""The subscripts of a statement, each with the conditions that it stands under."""

from __future__ import annotations

from collections.abc import Iterator

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.linear import NO_FACTS, Analysis, Facts, Linear
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.terms import term
from tcl.grammar.tree.traverse import children, computed, evaluated


@dataclass(frozen=True, slots=True)
class Access:
    """One subscript, with its linear form and what is known where it stands."""

    read: c.Read
    axis: int
    form: Linear
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
    where = computed(statement)
    for expr in evaluated(statement):
        own = facts if expr in where else NO_FACTS
        yield from _below(expr, analysis, own, evaluated=True)
    if statement.place is not None:
        for axis, subscript in enumerate(statement.place.subscripts):
            form = analysis.linear(subscript)
            yield Access(statement.place, axis, form, facts, evaluated=True)
    for expr in statement.exists:
        yield from _below(expr, analysis, NO_FACTS, evaluated=False)


def _below(expr: c.Expr, analysis: Analysis, facts: Facts, *, evaluated: bool) -> Iterator[Access]:
    """Every subscript below ``expr``."""
    match expr:
        case c.Read(subscripts=subscripts):
            for axis, subscript in enumerate(subscripts):
                yield Access(expr, axis, analysis.linear(subscript), facts, evaluated)
                yield from _below(subscript, analysis, facts, evaluated=evaluated)
        case c.Select(condition=condition, then=then, otherwise=otherwise):
            yield from _below(condition, analysis, facts, evaluated=evaluated)
            for side, holds in ((then, True), (otherwise, False)):
                inner = analysis.under(facts, condition, holds)
                yield from _below(side, analysis, inner, evaluated=evaluated)
        case c.Binary(op="&&" | "||" as op, left=left, right=right):
            yield from _below(left, analysis, facts, evaluated=evaluated)
            inner = analysis.under(facts, left, op == "&&")
            yield from _below(right, analysis, inner, evaluated=evaluated)
        case _:
            for child in children(expr):
                yield from _below(child, analysis, facts, evaluated=evaluated)
