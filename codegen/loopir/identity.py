"""The values from which reductions start."""

from __future__ import annotations

import math

from tcl.codegen.loopir import ir
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
    """Whether reducing this value, too, changes nothing. Lowering makes the constant of whatever
    else the language has for it."""
    constant = value.operand if isinstance(value, ir.Cast) else value
    return isinstance(constant, ir.Const) and constant.value == identity(op, value.type).value
