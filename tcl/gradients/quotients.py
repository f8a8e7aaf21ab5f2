"""Quotients that the derived def is given: it reads them, and does not divide again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tcl.common.dataclass import dataclass
from tcl.gradients.forward import Forward
from tcl.gradients.propagate import Conditions, Term
from tcl.gradients.trees import Product, name
from tcl.gradients.versions import Step
from tcl.grammar.syntax import ast
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads


@dataclass(frozen=True, slots=True)
class Quotient:
    """A quotient that is known where conditions hold."""

    factors: Product
    conditions: Conditions
    there: ast.Expr


def known_quotients(step: Step, steps: Iterable[Step], forward: Forward) -> list[Quotient]:
    """Quotients that the derived def is given, as read at the points of a step:
    ``exp(X(n, d) - m(n)) / total(n)`` is the softmax itself."""
    found = []
    for other in steps:
        statement = other.statement
        rhs, writer = statement.rhs, forward.writer(other)
        conditions: tuple[ast.Expr, ...] = ()
        if isinstance(rhs, c.Select):
            conditions, rhs = (writer.tree(rhs.condition),), rhs.then
        if statement.op != "=" or not (isinstance(rhs, c.Binary) and rhs.op == "/"):
            continue
        known = all(forward.is_kept(other.version(r.tensor)) for r in reads(statement))
        alike = all(step.ranges.get(i) == other.ranges[i] for i in statement.indices)
        plain = not forward.renamed(other) and rhs.type.bits != 16
        if known and alike and plain and other.whole and forward.is_kept(other.after):
            there = forward.read(other.after, [name(i) for i in statement.indices])
            found.append(Quotient(Product.of(writer.tree(rhs)), conditions, there))
    return found


def with_quotients(term: Term, known: list[Quotient]) -> ast.Expr:
    """A term's value with quotients that are known in the place of what they are."""
    value = term.value
    for quotient in known:
        rest = Product.of(value).without(quotient.factors)
        if rest is not None and {*quotient.conditions} <= {*term.conditions}:
            value = replace(rest, above=(*rest.above, quotient.there)).tree()
    return value
