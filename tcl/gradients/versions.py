"""The statements of a def, and which value of a tensor each of them reads and makes.

A tensor that is assigned several times has as many versions. Version 0 of an output is what it
holds before its first statement; of an input it is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.gradients.polynomials import Range
from tcl.gradients.propagate import smooth_reads
from tcl.gradients.ranges import Formulas, infer
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads

Version: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, with the versions around it."""

    statement: c.Statement
    """A reduction over no index is written as an assignment."""
    ranges: Mapping[str, Range]
    versions: Mapping[str, int]
    """Tensor → its version before the statement."""
    whole: bool
    """Whether it writes every element of its target."""

    @property
    def before(self) -> Version:
        """What the target held."""
        return self.statement.target, self.versions[self.statement.target]

    @property
    def after(self) -> Version:
        """What it holds then."""
        return self.statement.target, self.versions[self.statement.target] + 1

    @property
    def lets(self) -> dict[str, c.Expr]:
        """Name → what ``where`` binds it to."""
        return {let.name: let.value for let in self.statement.lets}

    def version(self, tensor: str) -> Version:
        """What a read of the tensor reads."""
        return tensor, self.versions[tensor]

    @property
    def keeps(self) -> bool:
        """Whether something of what the target held is still in what it holds then."""
        accumulates = self.statement.op != "=" and not self.statement.initialise
        return self.before[1] > 0 and (accumulates or not self.whole)

    @property
    def keeps_value(self) -> bool:
        """Whether what the target held is one of the terms of a reduction."""
        return self.statement.op != "=" and not self.statement.initialise

    @property
    def needs_old(self) -> bool:
        """Whether the statement needs what the target held, at all."""
        own = any(read.tensor == self.statement.target for read in reads(self.statement))
        return own or self.keeps or self.keeps_value


def steps_of(checked: c.CheckedDef, formulas: Formulas) -> list[Step]:
    """All statements in order; gives the tensors that they write their boxes. Raises
    ``ArgumentError`` for a range without a formula."""
    versions = {t.name: 0 for t in (*checked.inputs, *checked.outputs)}
    steps = []
    for statement in checked.statements:
        ranges = infer(statement, formulas)
        region = formulas.written(statement, ranges)
        if statement.target not in formulas.boxes:
            formulas.define(statement.target, region)
        whole = region == formulas.boxes[statement.target]
        if statement.place is not None:  # only what it begins with is in all elements
            whole = statement.initialise
        steps.append(Step(_plain(statement), ranges, dict(versions), whole))
        versions[statement.target] += 1
    return steps


def _plain(statement: c.Statement) -> c.Statement:
    """The statement; a reduction of a single term as the assignment that it is."""
    if statement.op == "=" or statement.reduction or statement.place is not None:
        return statement
    rhs = statement.rhs
    if not statement.initialise:
        subscripts = tuple(c.Index(i, statement.span) for i in statement.indices)
        old = c.Read(statement.target, subscripts, rhs.type, statement.span)
        rhs = c.Binary(statement.op, old, rhs, rhs.type, statement.span)
    return replace(statement, op="=", initialise=False, rhs=rhs)


def depending(
    steps: list[Step], wrt: tuple[str, ...], but: frozenset[Version] = frozenset()
) -> frozenset[Version]:
    """The versions that depend smoothly on inputs, and not through those of ``but`` alone."""
    found = {(name, 0) for name in wrt}
    for step in steps:
        reads = smooth_reads(step.statement.rhs, step.lets)
        through = any(step.version(read.tensor) in found for read in reads)
        if step.after not in but and (through or (step.keeps and step.before in found)):
            found.add(step.after)
    return frozenset(found)
