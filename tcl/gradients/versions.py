"""The statements of a def, and which value of a tensor each of them reads and makes.

A tensor that is assigned several times has as many versions. Version 0 of an output is what it
holds before its first statement; of an input it is the only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.gradients.polynomials import Range
from tcl.gradients.propagate import smooth_reads
from tcl.gradients.ranges import Formulas, infer
from tcl.grammar.syntax.types import BOOL
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads, rebuild, walk

Version: TypeAlias = tuple[str, int]

MANY = 120
"""Elements that a statement reads with its names written out, beyond which those that are used
twice are stored: before, what is read costs more than what is computed again."""


_FEW = 12
"""Nodes of a condition of indices that is written wherever the name is that has it."""


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
        known = infer(statement, formulas)
        for part in _with_names_stored(statement, formulas):
            ranges = {i: known[i] for i in part.all_indices}
            region = formulas.written(part, ranges)
            if part.target not in formulas.boxes:
                formulas.define(part.target, region)
            whole = region == formulas.boxes[part.target]
            if part.place is not None:  # only what it begins with is in all elements
                whole = part.initialise
            versions.setdefault(part.target, 0)
            steps.append(Step(_plain(part), ranges, dict(versions), whole))
            versions[part.target] += 1
    return steps


def _with_names_stored(statement: c.Statement, formulas: Formulas) -> Iterator[c.Statement]:
    """The statement. If it is long with its names written out, names that are used several times
    are tensors of statements before it, so that each is differentiated once."""
    reads_, conditions, uses = dict[str, int](), dict[str, int](), Counter[str]()
    for let in (*statement.lets, c.Let("", statement.rhs)):
        nodes = [*walk(let.value)]
        used = [node for node in nodes if isinstance(node, c.LetRef)]
        uses.update(node.name for node in used)
        floats = [node.name for node in used if node.type.is_float]
        own = sum(isinstance(node, c.Read | c.Cast) and node.type.is_float for node in nodes)
        reads_[let.name] = own + sum(reads_[name] for name in floats)
        bools = [node.name for node in used if node.type.is_bool]
        own = sum(node.type.is_bool for node in nodes) - len(bools)
        conditions[let.name] = own + sum(conditions[name] for name in bools)
    long_floats, long_bools = reads_[""] > MANY, max(conditions.values()) > MANY
    if not long_floats and not long_bools:
        yield statement
        return
    values: dict[str, c.Expr] = {}

    def put(expr: c.Expr) -> c.Expr:
        return rebuild(expr, lambda n: values[n.name] if isinstance(n, c.LetRef) else n)

    for name, value in ((let.name, put(let.value)) for let in statement.lets):
        values[name] = value
        again = uses[name] > 1 and not isinstance(value, c.Read | c.Const)
        wide = value.type.is_float and value.type.bits > 16
        if again and ((long_floats and wide) or (long_bools and value.type.is_bool)):
            found = {node.name for node in walk(value) if isinstance(node, c.Index)}
            indices = tuple(i for i in statement.all_indices if i in found)
            tensor = name
            while tensor in formulas.boxes or tensor in formulas.checked.tensors:
                tensor += "_"
            at = tuple(c.Index(i, statement.span) for i in indices)
            read: c.Expr = c.Read(tensor, at, value.type, statement.span)
            known = _of_indices(value) if value.type.is_bool else []
            values[name] = reduce(_both, [*known, read])
            yield c.Statement(tensor, indices, "=", False, value, (), (), (), (), statement.span)
    place = statement.place
    if place is not None:
        place = replace(place, subscripts=tuple(map(put, place.subscripts)))
    yield replace(statement, rhs=put(statement.rhs), lets=(), place=place)


def _of_indices(condition: c.Expr) -> list[c.Expr]:
    """What a condition says of indices alone in few words, which may guard accesses where it is
    used."""
    match condition:
        case c.Binary(op="&&", left=left, right=right):
            return [*dict.fromkeys((*_of_indices(left), *_of_indices(right)))]
        case _:
            nodes = [*walk(condition)]
            long = len(nodes) > _FEW or any(isinstance(node, c.Read) for node in nodes)
            return [] if long else [condition]


def _both(one: c.Expr, other: c.Expr) -> c.Expr:
    return c.Binary("&&", one, other, BOOL, one.span)


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
