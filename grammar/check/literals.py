"""Literals: weak constants, how they fold, and how they take the type of what they meet."""

from __future__ import annotations

import math
import operator
from dataclasses import replace

from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree.checked import Binary, Cast, Const, Expr, Select, Unary
from tcl.grammar.tree.size_expressions import OPERATIONS


def converted(expr: Expr, type_: ScalarType) -> Expr:
    """``expr`` as a value of ``type_``, by re-typing literals and casting the rest."""
    if expr.type == type_:
        return expr
    match expr:
        case Const(type=ScalarType(weak=True), value=value):
            python = float if type_.is_float else bool if type_.is_bool else int
            return Const(python(value), type_, expr.span)
        case Select(type=ScalarType(weak=True)):
            then, otherwise = converted(expr.then, type_), converted(expr.otherwise, type_)
            return replace(expr, then=then, otherwise=otherwise, type=type_)
        case _:
            return Cast(expr, type_, expr.span)


def settle(expr: Expr) -> Expr:
    """``expr`` with a concrete type: literals that met nothing become int32 or float32."""
    if not expr.type.weak:
        return expr
    if expr.type.is_float:
        return converted(expr, t.FLOAT32)
    return converted(expr, _int_type_for(expr))


def meet(a: Expr, b: Expr) -> ScalarType:
    """The type in which two operands meet. A literal too large for the other's type widens it."""
    type_ = t.promote(a.type, b.type)
    if type_.is_integral and not type_.weak:
        for literal in (a, b):
            if literal.type.weak and not fits(literal, type_):
                type_ = t.promote(type_, _int_type_for(literal))
    return type_


def fits(literal: Expr, type_: ScalarType) -> bool:
    """Whether every value a weak integer can take is a value of integer type ``type_``."""
    match literal:
        case Const(value=value):
            low, high = type_.limits
            return low <= int(value) <= high
        case Select(then=then, otherwise=otherwise):
            return fits(then, type_) and fits(otherwise, type_)
        case _:
            return True


def _int_type_for(literal: Expr) -> ScalarType:
    return next((type_ for type_ in (t.INT32, t.INT64) if fits(literal, type_)), t.UINT64)


def fold(expr: Unary | Binary) -> Expr | str:
    """The value of an operation on literals, or a sentence that says why it has none.

    Any other operation comes back unchanged, or as such a sentence if it divides an integer by 0.
    """
    operands = [expr.operand] if isinstance(expr, Unary) else [expr.left, expr.right]
    values = [o.value for o in operands if isinstance(o, Const) and o.type.weak]
    if len(values) < len(operands):
        return _OF_INTEGERS_BY_ZERO if _divides_by_zero(expr) else expr
    if isinstance(expr, Unary):
        result: int | float | bool = -values[0]
    elif expr.op in "/%" and values[1] == 0:
        return "division of a number by zero; write another divisor"
    else:
        of_integers = isinstance(values[0], int) and isinstance(values[1], int)
        result = (OPERATIONS if of_integers else _OF_FLOATS)[expr.op](values[0], values[1])
    if isinstance(result, float) and not math.isfinite(result):
        return "the value of this expression is too large for a float64"
    if isinstance(result, int) and not -(2**63) <= result < 2**64:
        return "the value of this expression does not fit in 64 bits"
    return Const(result, expr.type, expr.span)


def _divides_by_zero(expr: Unary | Binary) -> bool:
    """Whether integers are divided by a literal 0, which may be cast."""
    if not (isinstance(expr, Binary) and expr.op in "/%" and expr.type.is_integral):
        return False
    divisor = expr.right
    while isinstance(divisor, Cast):
        divisor = divisor.operand
    return isinstance(divisor, Const) and divisor.value == 0


_OF_INTEGERS_BY_ZERO = (
    "division of an integer by zero, which gives 0 for every value; write another divisor, or 0.0 "
    "to divide as floats"
)
_OF_FLOATS = {**OPERATIONS, "/": operator.truediv, "%": math.fmod}
