"""The values from which reductions start."""

from __future__ import annotations

import math

from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import Kind, ScalarType


def identity(op: str, type_: ScalarType) -> ir.Const:
    """The value from which a reduction starts."""
    match op, type_.kind:
        case "+", Kind.BOOL:
            return ir.Const(False, type_)
        case "*", Kind.BOOL:
            return ir.Const(True, type_)
        case "+", kind:
            return ir.Const(0.0 if kind is Kind.FLOAT else 0, type_)
        case "*", kind:
            return ir.Const(1.0 if kind is Kind.FLOAT else 1, type_)
        case "min", Kind.FLOAT:
            return ir.Const(math.inf, type_)
        case "max", Kind.FLOAT:
            return ir.Const(-math.inf, type_)
        case "min", Kind.BOOL:
            return ir.Const(True, type_)
        case "max", Kind.BOOL:
            return ir.Const(False, type_)
        case "min", _:
            return ir.Const(type_.limits[1], type_)
        case "max", _:
            return ir.Const(type_.limits[0], type_)
    raise ir.IRError(f"{op} is no reduction")
