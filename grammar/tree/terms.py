"""What a reduction makes of a point: a value, perhaps under a condition."""

from __future__ import annotations

import math
import struct

from tcl.grammar.syntax.types import BOOL
from tcl.grammar.tree import checked as c


def term(statement: c.Statement) -> tuple[c.Expr | None, c.Expr]:
    """The condition under which a point of a reduction counts, and its value then: of
    ``p ? x : y`` with a ``y`` that the reduction ignores, ``p`` and ``x``; of ``p ? y : x``, ``!p``
    and ``x``. A conversion of either, as to the type of a wider output, is one of ``x``."""
    rhs = statement.rhs
    if statement.op == "=":
        return None, rhs
    chosen = _converted(rhs)
    if isinstance(chosen, c.Select):
        if _neutral(statement.op, chosen.otherwise):
            return chosen.condition, chosen.then
        if _neutral(statement.op, chosen.then):
            return c.Unary("!", chosen.condition, BOOL, chosen.condition.span), chosen.otherwise
    return None, rhs


def _converted(value: c.Expr) -> c.Expr:
    """A conversion of a choice as the choice between conversions."""
    match value:
        case c.Cast(operand=c.Select() as chosen, type=type_, span=span):
            then, otherwise = (
                _converted(c.Cast(side, type_, span)) for side in (chosen.then, chosen.otherwise)
            )
            return c.Select(chosen.condition, then, otherwise, type_, chosen.span)
    return value


def _neutral(op: str, value: c.Expr) -> bool:
    """Whether reducing this value, too, changes nothing: it is that from which a reduction starts,
    written as a literal, or as ``log(0.0)`` for minus infinity."""
    low, high = (-math.inf, math.inf) if value.type.is_float else value.type.limits
    return _constant(value) == {"+": 0, "*": 1, "min": high, "max": low}[op]


def _constant(value: c.Expr) -> float | None:
    """The value of a constant expression; None for what is not known to be one."""
    match value:
        case c.Const(value=number, type=type_):
            return _float32(number) if type_.is_float and type_.compute.bits == 32 else number
        case c.Call(name="log", arguments=(argument,)):
            return -math.inf if _constant(argument) == 0 else None
        case c.Cast(operand=operand, type=type_) if type_.is_float or not operand.type.is_float:
            inner = _constant(operand)
            fits = type_.is_float or (
                inner is not None and type_.limits[0] <= inner <= type_.limits[1]
            )
            return inner if fits else None
        case c.Unary(op="-", operand=operand):
            inner = _constant(operand)
            return None if inner is None else -inner
        case c.Binary(op="-", left=left, right=right):
            one, other = _constant(left), _constant(right)
            return None if one is None or other is None else one - other
    return None


def _float32(number: float) -> float:
    """The nearest float32; infinite if there is none."""
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)
