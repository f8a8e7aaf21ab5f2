"""Conditions of values as tests of index expressions."""

from __future__ import annotations

from tcl.codegen.loopir import ir

Bound = tuple[ir.Affine, int]
"""An index expression that is less than a number."""


def bounds_of(condition: ir.Value) -> list[Bound] | None:
    """The bounds that hold together where a condition does; None for one that is no such thing."""
    match condition:
        case ir.Binary(op="&&", left=left, right=right):
            first, second = bounds_of(left), bounds_of(right)
            return None if first is None or second is None else first + second
        case ir.Binary(op="<" | "<=" | ">" | ">=" | "==" as op, left=left, right=right):
            one, other = index_of(left), index_of(right)
            if one is None or other is None:
                return None
            less, more = one + other.scaled(-1), other + one.scaled(-1)
            return {
                "<": [(less, 0)],
                "<=": [(less, 1)],
                ">": [(more, 0)],
                ">=": [(more, 1)],
                "==": [(less, 1), (more, 1)],
            }[op]
        case ir.Unary(op="!", operand=operand):
            bounds = bounds_of(operand)
            if bounds is not None and len(bounds) == 1:
                ((affine, bound),) = bounds
                return [(affine.scaled(-1), 1 - bound)]
    return None


def index_of(value: ir.Value) -> ir.Affine | None:
    """A value as an index expression; None where it is none."""
    match value:
        case ir.Position(index=index):
            return index
        case ir.Const(value=int() as number) if not isinstance(number, bool):
            return ir.Affine((), number)
        case ir.Cast(operand=operand, type=type_) if not (
            type_.is_float or operand.type.is_float or type_.bits < operand.type.bits
        ):
            return index_of(operand)
        case ir.Unary(op="-", operand=operand):
            found = index_of(operand)
            return None if found is None else found.scaled(-1)
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            one, other = index_of(left), index_of(right)
            if one is None or other is None:
                return None
            return one + (other if op == "+" else other.scaled(-1))
    return None
