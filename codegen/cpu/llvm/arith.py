"""Operators on registers: ``+ - * / % min max``, comparisons, unary ``- !``."""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.division import quotient
from tcl.grammar.syntax.types import Kind, ScalarType

_INTEGER = {"+": "add", "-": "sub", "*": "mul"}
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "%": "frem"}
_BOOL = {"+": "or", "*": "and", "min": "and", "max": "or"}
_FLOAT_TESTS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_INTEGER_TESTS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
COMPARISONS = frozenset(_FLOAT_TESTS)


def arithmetic(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """``left op right``, both of type ``t``."""
    if t.is_bool:
        return b.binary(_BOOL[op], left, right)
    if op in ("min", "max"):
        return _extreme(b, op, left, right, t)
    if op == "/" and t.is_float and left.lanes > right.lanes and b.fused:
        return quotient(b, left, right)
    if t.is_float:
        return b.binary(_FLOAT[op], left, right)
    if op in ("/", "%"):
        return _divide(b, op, left, right, t)
    return b.binary(_INTEGER[op], left, right)


def compare(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """A comparison of two values of type ``t``."""
    if t.is_float:
        return b.compare(f"fcmp {_FLOAT_TESTS[op]}", left, right)
    test = _INTEGER_TESTS[op]
    sign = "" if test in ("eq", "ne") else "s" if t.kind is Kind.INT else "u"
    return b.compare(f"icmp {sign}{test}", left, right)


def unary(b: Builder, op: str, value: Val, t: ScalarType) -> Val:
    """``-`` or ``!``."""
    if op == "!":
        return b.negation(value)
    if t.is_float:
        return b.op(f"fneg {value}", value.type, value.lanes)
    return b.binary("sub", b.constant(0, value.type), value)


def _extreme(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """min and max: NaN if either is; of 0 and -0, either."""
    if not t.is_float:
        name = ("s" if t.kind is Kind.INT else "u") + op
        return b.intrinsic(name, left, right)
    # x86 asks whether the first one is NaN: of an accumulator that would make each step wait.
    return b.intrinsic(f"{op}imum", right, left, flags="nsz")


def _divide(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """Integer / and %. They never trap: x / 0 and x % 0 are 0, and MIN / -1 wraps."""
    signed = t.kind is Kind.INT
    zero = b.compare("icmp eq", right, b.constant(0, right.type))
    unsafe = zero
    if signed:
        least = b.compare("icmp eq", left, b.constant(t.limits[0], left.type))
        minus = b.compare("icmp eq", right, b.constant(-1, right.type))
        unsafe = b.binary("or", zero, b.binary("and", least, minus))
    # By 1 instead, MIN / -1 gives MIN and both remainders 0.
    divisor = b.select(unsafe, b.constant(1, right.type), right)
    if t.bits < 64 and left.lanes > 1 and right.text.startswith("%"):
        result = _by_floats(b, op, left, divisor, t)
    else:
        name = ("s" if signed else "u") + ("div" if op == "/" else "rem")
        result = b.binary(name, left, divisor)
    return b.select(zero, b.constant(0, left.type), result) if op == "/" else result


def _by_floats(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """Integer / and % of vectors, which no processor divides: by a division of floats that hold
    both exactly, cut off. Below an integer m, ``left / right`` is less by ``1 / right`` at least,
    and ``left < 2**digits``: rounding to nearest does not reach m."""
    real, through = ("float", "i32") if t.bits <= 16 else ("double", left.type)
    left, right = b.level(left, right)
    to_float, to_integer = ("sitofp", "fptosi") if t.kind is Kind.INT else ("uitofp", "fptoui")
    ratio = b.binary("fdiv", b.convert(to_float, left, real), b.convert(to_float, right, real))
    result = b.convert("trunc", b.convert(to_integer, ratio, through), left.type)
    return result if op == "/" else b.binary("sub", left, b.binary("mul", result, right))
