"""Conversions between scalar types, as CUDA C++."""

from __future__ import annotations

from tcl.codegen.cuda.cpp.pieces import Binds, Piece, call, converted, infix
from tcl.codegen.cuda.cpp.types import c_type, constant, is_half, is_small
from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import FLOAT16, FLOAT32, FLOAT64, ScalarType


def cast(operand: Piece, source: ScalarType, target: ScalarType) -> Piece:
    """A value of type ``source`` as ``target``, by the rules of ``checked.Cast``."""
    if is_half(target):
        single = as_single(operand, source, target)
        exact = not source.is_float and source.bits <= 8
        return single if exact else call(f"round_to_{_short(target)}", single)
    if c_type(source) == c_type(target):
        return operand
    if target.is_bool:
        zero = Piece("0" if is_small(source) else constant(0, source))
        return infix("!=", operand, zero, Binds.COMPARISON)
    if source.is_float and target.is_integral:
        return call(f"to_{target.name}", operand)
    return converted(c_type(target), operand)


def as_single(operand: Piece, source: ScalarType, target: ScalarType) -> Piece:
    """A float that rounds to the 16-bit float ``target`` as the value itself does."""
    if source.compute == FLOAT32:
        return operand
    if source == FLOAT64:
        return call("odd_float", operand)
    if source.bits <= 16:
        return converted("float", operand)
    if source.bits == 32:
        return call("odd_float", converted("double", operand))
    return call("odd_float", call("odd_double", operand))


def bits_of(single: Piece, target: ScalarType) -> Piece:
    """A float, rounded to the bits of a 16-bit float."""
    return call(f"float_to_{_short(target)}", single)


def _short(t: ScalarType) -> str:
    return "half" if t == FLOAT16 else "bfloat"


def bare(value: ir.Value) -> ir.Value:
    """The value without conversions that change nothing in registers."""
    while isinstance(value, ir.Cast) and not is_half(value.type):
        if c_type(value.type) != c_type(value.operand.type):
            break
        value = value.operand
    return value


def is_rounded(value: ir.Value, target: ScalarType) -> bool:
    """Whether it is known to be a value of this 16-bit float. What is read is not: a panel may
    hold wider values of the type."""
    value = bare(value)
    return isinstance(value, ir.Cast) and value.type == target
