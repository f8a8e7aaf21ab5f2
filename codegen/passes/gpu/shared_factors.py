"""Factors of products that a condition chooses, computed before the condition is asked.

Compilers compute what is under a condition under that condition alone, again for each result that
has another one. What each thread makes of an operand takes the registers of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import loads, replaced, walk
from tcl.codegen.passes.building import wrap
from tcl.common.dataclass import dataclass


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
    affine = [s for s in load.ref.subscripts if isinstance(s, ir.Affine)]
    if not load.total or len(affine) < len(load.ref.subscripts):
        return None
    if factor.type.compute != factor.type or load.type.bits < factor.type.bits:
        return None  # who computes with it may want it unrounded; it would take more registers
    names = {name for a in affine for name, _ in a.terms}
    return [x for x in loops if x.fold.dim in names or x.fold.name in names]
