"""Loops whose last iteration is as long as the others: it begins where it ends with the range, and
does some points that the iteration before has done. A shorter one would have code of its own.

Points of results may be done again if what they read is still there: if nothing in the loop reads
what it writes, but from a panel that each iteration fills first.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import divides_index
from tcl.codegen.loopir.walk import indices, loads, statements, values_in

_PLAIN = (
    ir.Block | ir.For | ir.Within | ir.Let | ir.Declare | ir.Accumulate | ir.Store | ir.Prefetch
)
_SHARE = 0.01
"""The part of a loop's points that may be done again for less code."""


def adds_little(fold: ir.Fold, body: ir.Statement, span: int) -> bool:
    """Whether a last iteration of full length does few points more than a shorter one, in which
    lanes are switched off."""
    inner = (s.loop for s in statements(body) if isinstance(s, ir.For))
    widths = (x.fold.count for x in inner if (x.kind, x.fold.dim) == (ir.Kind.VECTOR, fold.dim))
    lanes = next(widths, 1)
    again = fold.step // lanes - -(-(span % fold.step) // lanes)
    return again * lanes <= _SHARE * span


def may_be_done_again(program: ir.Built, fold: ir.Fold, body: ir.Statement) -> bool:
    """Whether an iteration may do points along a dimension of results that another one has done,
    and begin anywhere."""
    inner = list(statements(body))
    declared = {s.name for s in inner if isinstance(s, ir.Declare)}
    for s in inner:
        if not isinstance(s, _PLAIN) or (isinstance(s, ir.Accumulate) and s.name not in declared):
            return False
        if isinstance(s, ir.Store) and s.streamed:
            return False
        special = isinstance(s, ir.For) and (s.pause, s.loop.alignment, s.loop.compacted)
        if special and any(special):
            return False
    if any(_names(index, fold.name) for s in inner for index in _indices(s)):
        return False  # as of panels that are filled outside of the loop
    if any(_names(index, fold.dim) for s in inner for index, _ in _bounds(s)):
        return False  # shorter iterations may have less to do
    if any(divides_index(value) for s in inner for value in values_in(s)):
        return False  # quotients are the same for many points where whole steps begin
    written = {s.ref.tensor for s in inner if isinstance(s, ir.Store)}
    filled: set[str] = set()
    for s in inner:
        for load in (x for value in values_in(s) for x in loads(value)):
            if load.ref.tensor in written - filled:
                return False
        if isinstance(s, ir.Store) and _is_panel(program, fold, s.ref):
            filled.add(s.ref.tensor)
    return True


def _is_panel(program: ir.Built, fold: ir.Fold, ref: ir.TensorRef) -> bool:
    """Whether all iterations write to the same place of memory that is nobody else's."""
    scratch = program.tensor(ref.tensor).role is ir.Role.SCRATCH
    moved = any(_names(index, fold.dim) for index in ref.affine)
    return scratch and ref.is_affine and not moved


def _names(index: ir.Affine, name: str) -> bool:
    return any(each == name for each, _ in index.terms)


def _indices(statement: ir.Statement) -> Iterator[ir.Affine]:
    """The index expressions of a statement itself."""
    for value in values_in(statement):
        yield from indices(value)
    if isinstance(statement, ir.Store | ir.Prefetch):
        yield from statement.ref.affine


def _bounds(statement: ir.Statement) -> tuple[tuple[ir.Affine, int], ...]:
    """Those within which a statement leaves nothing out, or asks for nothing."""
    match statement:
        case ir.Within(bounds=bounds) | ir.For(loop=ir.Loop(cut=ir.Cut(bounds=bounds))):
            return bounds
    return ()
