"""Sums of quotients by a number, as of means, which add products with its reciprocal.

An accumulation takes any rounding in between. A product and the addition are one instruction, which
does not round the product: it is off by the rounding of the reciprocal alone, which is no more than
that of a quotient. Quotients take a division each, or several instructions.
"""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.grammar.syntax.types import FLOAT32, FLOAT64

_WITHIN = 2.0**-100, 2.0**100
"""Divisors whose reciprocal is neither subnormal, with fewer digits, nor infinite."""


def added(op: str, value: ir.Value) -> ir.Value:
    """What is added up instead of ``value``."""
    if op != "+":
        return value
    condition, quotient = guard(op, value)
    match quotient:
        case ir.Binary(op="/", left=left, right=right, type=type_) if type_ in (FLOAT32, FLOAT64):
            divisor = known_number(right)
            if divisor is None or not _WITHIN[0] <= abs(divisor) <= _WITHIN[1]:
                return value
            product = ir.Binary("*", left, ir.Const(1.0 / divisor, type_), type_)
            if condition is not None and isinstance(value, ir.Select):
                return replace(value, then=product)
            return product
    return value


def known_number(value: ir.Value) -> float | None:
    """A value that is a known number, exactly; None for others, as sizes that vary."""
    found: float | None = None
    match value:
        case ir.Const(value=int() | float() as number):
            found = number
        case ir.Cast(operand=operand):
            found = known_number(operand)
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            one, other = known_number(left), known_number(right)
            if one is None or other is None:
                return None
            found = one * other if op == "*" else one + other if op == "+" else one - other
    if found is None or not value.type.is_integral:
        return found
    low, high = value.type.limits
    return found if low <= found <= high and found == int(found) else None
