"""Rules over all statements of a def: what depends on what, what starts from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from tcl.grammar.check.scope import DefScope, recurrence
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.tree.checked import Index, Statement
from tcl.grammar.tree.traverse import reads, walk


def check_dependencies(statements: Sequence[Statement], scope: DefScope) -> None:
    """Tensors may depend on each other only in a directed acyclic graph.

    A tensor may depend on itself: that is an update in place.
    """
    edges: dict[str, dict[str, Statement]] = {}
    for statement in statements:
        for read in reads(statement):
            if read.tensor != statement.target and read.tensor not in scope.inputs:
                edges.setdefault(statement.target, {}).setdefault(read.tensor, statement)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]  # [a, b, ..., a], each of which depends on the next
    else:
        return
    steps = [edges[a][b] for a, b in pairwise(cycle)]
    first = min(steps, key=lambda s: s.span)
    names = " -> ".join(reversed(cycle))
    advice, section = "write the later value to another output", Section.STATEMENTS
    if any(map(_shifted, steps, cycle[1:])):
        advice, section = recurrence(first.target), Section.CUMSUM
    scope.problems.append(
        Diagnostic(
            f"the tensors {names} depend on each other in a cycle; {advice}",
            first.span,
            tuple(
                (s.span, f"here {s.target} depends on {b}")
                for s, b in sorted(zip(steps, cycle[1:], strict=True), key=lambda p: p[0].span)
            ),
            section,
        )
    )


def _shifted(statement: Statement, tensor: str) -> bool:
    """Whether the statement reads the tensor at an index that it computes from others."""
    return any(
        not isinstance(subscript, Index) and any(isinstance(e, Index) for e in walk(subscript))
        for read in reads(statement)
        if read.tensor == tensor
        for subscript in read.subscripts
    )


def uninitialised(statements: Sequence[Statement], scope: DefScope) -> frozenset[str]:
    """Outputs whose first statement reduces into whatever they hold; warns about each."""
    seen: set[str] = set()
    found: set[str] = set()
    for statement in statements:
        name = statement.target
        if name not in seen and statement.op != "=" and not statement.initialise:
            found.add(name)
            scope.warnings.append(
                Diagnostic(
                    f"'{name}' is reduced into but never initialised; write {statement.op}=! to "
                    "start from the value of no terms, or pass outputs= to add to existing "
                    "arrays",
                    statement.span,
                    section=Section.REDUCTIONS,
                )
            )
        seen.add(name)
    return frozenset(found)
