"""Counts of conjunctions, as of ``X(b, i) && Y(b, j)``, which add products.

A sum of products has dot products, and panels with the values of its factors.
"""

from __future__ import annotations

from collections.abc import Collection

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import all_of, is_free, parts
from tcl.codegen.loopir.walk import dims_of_values, loads, walk
from tcl.grammar.sizes.varying import provably_equal


def counted(value: ir.Value, reduced: Collection[str]) -> ir.Value:
    """What is added up instead of ``value`` over the dimensions ``reduced``: a product, where it
    is 1 if two conditions hold that are like operands of a matrix product. Of others, bits are
    faster than products."""
    match value:
        case ir.Cast(operand=condition):
            pass
        case ir.Select(condition, ir.Const(value=one), ir.Const(value=zero)) if provably_equal(
            one, 1
        ) and provably_equal(zero, 0):
            pass
        case _:
            return value
    both = _operands(condition, reduced)
    if both is None:
        return value
    left, right = (ir.Cast(each, value.type) for each in both)
    return ir.Binary("*", left, right, value.type)


def _operands(condition: ir.Value, reduced: Collection[str]) -> tuple[ir.Value, ir.Value] | None:
    """Two conditions that hold where one does, with a reduced dimension in common, and each with
    one of its own; None where there are none, or a part of it guards another."""
    each = list(parts(condition))
    if not all(any(loads(p)) and is_free(p) for p in each):
        return None
    if any(isinstance(v, ir.Variable) for v in walk(condition)):
        return None
    most = max((dims_of_values([p]) for p in each), key=len)
    own, rest = (
        all_of(p for p in each if (dims_of_values([p]) <= most) is inside)
        for inside in (True, False)
    )
    if own is None or rest is None:
        return None
    others = dims_of_values([rest])
    return (own, rest) if most - others and (most & others).intersection(reduced) else None
