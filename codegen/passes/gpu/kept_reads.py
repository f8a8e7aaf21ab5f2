"""Operands that do not move along a reduction, read before its loops where these fill panels; and
factors of products that a condition chooses, computed before the condition is asked.

Copies to panels and barriers keep compilers from doing the first, as other memory changes there:
they read the same elements again for each tile, and wait for them. What is under a condition they
compute under that condition alone, again for each result that has another one. What each thread
makes of an operand takes the registers of the operand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import loads, replaced, walk
from tcl.codegen.passes.building import wrap
from tcl.codegen.passes.fusion.epilogues import Epilogue
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least


@dataclass(frozen=True, slots=True)
class SharedFactors:
    """Statements of one point, and the factors that they share."""

    declared: tuple[ir.Declare, ...]
    before: tuple[ir.Statement, ...]
    """What computes the factors, for all points of the loops."""
    statements: tuple[ir.Statement, ...]

    @staticmethod
    def of(
        statements: Sequence[ir.Statement], loops: Sequence[ir.Loop], threads: Sequence[ir.Fold]
    ) -> SharedFactors:
        """``loops``: those around the statements that are written out. A factor is shared if it
        does not change along one of them. Each of the ``threads`` around them has its own."""
        declared, before, found = list[ir.Declare](), list[ir.Statement](), list[ir.Statement]()
        names: dict[ir.Value, ir.Variable] = {}
        for statement in statements:
            for factor in _guarded_factors(statement):
                own = _loops_of(factor, loops)
                if factor not in names and own is not None and len(own) < len(loops):
                    variable = ir.Variable(f"factor{len(names)}", factor.type)
                    names[factor] = variable
                    over = (*threads, *(x.fold for x in own))
                    declared.append(ir.Declare(variable.name, variable.type, over))
                    before.append(wrap(own, ir.Accumulate(variable.name, "=", factor)))
            if isinstance(statement, ir.Accumulate):
                for factor, variable in names.items():
                    value = replaced(statement.value, factor, variable)
                    statement = replace(statement, value=value)
            found.append(statement)
        return SharedFactors(tuple(declared), tuple(before), tuple(found))


def _guarded_factors(statement: ir.Statement) -> tuple[ir.Value, ...]:
    """The factors of a product under a condition that is added up."""
    if not isinstance(statement, ir.Accumulate):
        return ()
    condition, value = guard(statement.op, statement.value)
    if condition is None or not isinstance(value, ir.Binary) or value.op != "*":
        return ()
    return value.left, value.right


def _loops_of(factor: ir.Value, loops: Sequence[ir.Loop]) -> list[ir.Loop] | None:
    """Those along which a value changes, if it is made of one operand by instructions that may be
    executed whatever a condition says; None for others."""
    inner = list(walk(factor))
    read = set(loads(factor))
    known = (ir.Load, ir.Const, ir.Unary, ir.Binary, ir.Select, ir.Call)
    if len(read) != 1 or len(inner) == 1 or not all(isinstance(v, known) for v in inner):
        return None
    (load,) = read
    if not load.total or not load.ref.is_affine:
        return None
    if factor.type.compute != factor.type or load.type.bits < factor.type.bits:
        return None  # who computes with it may want it unrounded; it would take more registers
    names = load.ref.names
    return [x for x in loops if x.fold.dim in names or x.fold.name in names]


_MOST = 16
"""32-bit words of a thread, at most: registers are short where panels are."""


@dataclass(frozen=True, slots=True)
class KeptReads:
    """Statements of one point and what is made of its results, and what is read before for both."""

    declared: tuple[ir.Declare, ...]
    before: tuple[ir.Statement, ...]
    statements: tuple[ir.Statement, ...]
    epilogues: tuple[Epilogue, ...]

    @staticmethod
    def of(
        group: FusionGroup, statements: Sequence[ir.Statement], loops: Sequence[ir.Loop]
    ) -> KeptReads:
        """``statements``: those of a point of the group's leader that may read panels; ``loops``:
        over its results."""
        nest, epilogues = group.leader, group.epilogues
        declared, before, found = list[ir.Declare](), list[ir.Statement](), list(statements)
        panels = {staged.panel.tensor for staged in nest.staged}
        reduced = {d.name for d in nest.dims if d.reduction}
        reduced |= {x.fold.name for x in nest.loops if x.fold.dim in reduced}
        values = [
            s.value
            for s in statements
            if panels and isinstance(s, ir.Accumulate) and guard(s.op, s.value)[0] is None
        ]
        if panels and not any(x.fold.level == "mma" for x in nest.loops):
            values += [e.value for e in epilogues if not _asks(e.value)]
        words = 0
        for load in dict.fromkeys(load for value in values for load in loads(value)):
            names = load.ref.names
            own = [
                x
                for x in loops
                if x.kind is ir.Kind.THREAD or x.fold.dim in names or x.fold.name in names
            ]
            counts = [x.fold.count for x in own if x.kind is not ir.Kind.THREAD]
            kept = math.prod(counts) * max(1, load.type.compute.bits // 32)
            if (
                not load.total
                or not load.ref.is_affine
                or load.ref.tensor in (*panels, *group.written)
                or names & reduced
                or load.type.compute != load.type
                or not provably_at_least(_MOST, words + kept)
            ):
                continue
            words += kept
            variable = ir.Variable(f"kept{len(declared)}", load.type)
            declared.append(ir.Declare(variable.name, variable.type, tuple(x.fold for x in own)))
            before.append(wrap(own, ir.Accumulate(variable.name, "=", load)))
            found = [
                ir.Accumulate(s.name, s.op, replaced(s.value, load, variable))
                if isinstance(s, ir.Accumulate)
                else s
                for s in found
            ]
            epilogues = tuple(
                replace(e, value=replaced(e.value, load, variable)) for e in epilogues
            )
        return KeptReads(tuple(declared), tuple(before), tuple(found), epilogues)


def _asks(value: ir.Value) -> bool:
    """Whether some of what a value reads is under a condition."""
    return any(isinstance(v, ir.Select) for v in walk(value))
