"""The values from which reductions start."""

from __future__ import annotations

import math

import numpy as np

from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.types import Kind, ScalarType


def identity(op: str, type_: ScalarType) -> ir.Const:
    """The value from which a reduction starts."""
    low, high = (-math.inf, math.inf) if type_.is_float else type_.limits
    starts = {"+": 0, "*": 1, "min": high, "max": low}
    if op not in starts:
        raise ir.IRError(f"{op} is no reduction")
    plain = {Kind.BOOL: bool, Kind.FLOAT: float}.get(type_.kind, int)
    return ir.Const(plain(starts[op]), type_)


def neutral(op: str, value: ir.Value) -> bool:
    """Whether reducing this value, too, changes nothing: it is that from which a reduction starts,
    written as a literal, or as ``log(0.0)`` for minus infinity."""
    return _constant(value) == identity(op, value.type).value


def _constant(value: ir.Value) -> float | None:
    """The value of a constant expression; None for what is not known to be one."""
    match value:
        case ir.Const(value=number, type=type_) if not isinstance(number, Size):
            if type_.is_float and type_.compute.bits == 32:
                with np.errstate(over="ignore"):
                    return float(np.float32(number))
            return number
        case ir.Call(name="log", arguments=(argument,)):
            return -math.inf if _constant(argument) == 0 else None
        case ir.Cast(operand=operand, type=type_) if type_.is_float or not operand.type.is_float:
            inner = _constant(operand)
            fits = type_.is_float or (
                inner is not None and type_.limits[0] <= inner <= type_.limits[1]
            )
            return inner if fits else None
        case ir.Unary(op="-", operand=operand):
            inner = _constant(operand)
            return None if inner is None else -inner
        case ir.Binary(op="-", left=left, right=right):
            one, other = _constant(left), _constant(right)
            return None if one is None or other is None else one - other
    return None
