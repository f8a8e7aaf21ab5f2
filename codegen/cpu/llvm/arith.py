"""Operators on registers: ``+ - * / % min max``, comparisons, unary ``- !``."""

from __future__ import annotations

import operator

from tcl.codegen.cpu.llvm.branches import rarely
from tcl.codegen.cpu.llvm.builder import Builder, Val, literals
from tcl.codegen.cpu.llvm.division import modulo, quotient
from tcl.codegen.cpu.llvm.expanded import rounded
from tcl.grammar.syntax.types import Kind, ScalarType

_INTEGER = {"+": "add", "-": "sub", "*": "mul"}
_EXACT = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
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
    if op == "%" and t.is_float:
        return modulo(b, left, right)
    if t.is_float:
        return b.binary(_FLOAT[op], left, right)
    if op in ("/", "%"):
        return _divide(b, op, left, right, t)
    if known := literals(left, right):  # as of sizes: division asks whether a divisor is known
        (wrapped,) = literals(Val(str(_EXACT[op](*known)), left.type)) or known
        return b.constant(wrapped, left.type)
    return b.binary(_INTEGER[op], left, right)


def compare(b: Builder, op: str, left: Val, right: Val, t: ScalarType) -> Val:
    """A comparison of two values of type ``t``."""
    if t.is_float:
        return b.compare(f"fcmp {_FLOAT_TESTS[op]}", left, right)
    test = _INTEGER_TESTS[op]
    sign = "" if test in ("eq", "ne") else "s" if t.kind is Kind.INT else "u"
    return b.compare(f"icmp {sign}{test}", left, right)


def settled(op: str, left: tuple[int, int], right: tuple[int, int]) -> bool | None:
    """Whether a comparison holds of all integers in two intervals; None if that depends on them."""
    if op in (">", ">="):
        left, right, op = right, left, {">": "<", ">=": "<="}[op]
    apart = left[1] < right[0] or right[1] < left[0]
    match op:
        case "<":
            return True if left[1] < right[0] else False if left[0] >= right[1] else None
        case "<=":
            return True if left[1] <= right[0] else False if left[0] > right[1] else None
        case "==":
            return False if apart else None
        case _:
            return True if apart else None


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
    name = ("s" if signed else "u") + ("div" if op == "/" else "rem")
    inverted = b.select(zero, b.constant(1, right.type), right) if right.lanes == 1 else None
    lanes = max(left.lanes, right.lanes)
    if lanes > 1 and t.bits == 64 and not _is_power_of_two(right):
        short, long = _by_short_floats(b, op, left, inverted or divisor, signed)
        result = rarely(b, long, short, lambda: b.binary(name, left, divisor))
    elif lanes > 1 and t.bits < 64 and right.text.startswith("%"):
        result = _by_floats(b, op, left, divisor, t, inverted)
    else:
        result = b.binary(name, left, divisor)
    return b.select(zero, b.constant(0, left.type), result) if op == "/" else result


def _by_floats(
    b: Builder, op: str, left: Val, right: Val, t: ScalarType, inverted: Val | None
) -> Val:
    """Integer / and % of vectors, which no processor divides: by a division of floats that hold
    both exactly, cut off. Below an integer m, ``left / right`` is less by ``1 / right`` at least,
    and ``left < 2**digits``: rounding to nearest does not reach m. By ``inverted``, one divisor of
    all lanes but those in which ``right`` is 1, it is a product with its inverse:
    ``(left + 1/2) / right`` is no integer, and as far from one as ``1/2`` is beside ``left``,
    against which both roundings are small (2**-17 beside 2**-23, 2**-33 beside 2**-52)."""
    real, through = ("float", "i32") if t.bits <= 16 else ("double", left.type)
    left, right = b.level(left, right)
    signed = t.kind is Kind.INT
    to_float, to_integer = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    number = b.convert(to_float, left, real)
    if inverted is None:
        ratio = b.binary("fdiv", number, b.convert(to_float, right, real))
    else:
        one, half = b.constant(1.0, real), b.constant(0.5, real)
        inverse = b.binary("fdiv", one, b.convert(to_float, inverted, real))
        if signed:  # MIN / -1 is MIN / 1
            alike = b.compare("icmp eq", right, inverted)
            inverse = b.select(alike, inverse, one)
            half = b.intrinsic("copysign", *b.level(half, number))
        ratio = b.binary("fmul", b.binary("fadd", number, half), inverse)
    result = b.convert("trunc", b.convert(to_integer, ratio, through), left.type)
    return result if op == "/" else b.binary("sub", left, b.binary("mul", result, right))


_SHORT_BITS = 50
"""Magnitudes of integers whose quotients are taken by floats, as a power of two."""
_UNITS, _UNITS_BITS = 1.5 * 2.0**52, 0x4338 << 48
"""A float64 whose last digit counts ones: the bits of its sum with a short integer are its own,
and the integer added to them."""


def _by_short_floats(b: Builder, op: str, left: Val, right: Val, signed: bool) -> tuple[Val, Val]:
    """64-bit / and % of vectors as of ``_by_floats``, and in which lanes it holds not: where a
    number has more bits than can be told apart (2**-52 beside ``1/2``, beside 2**50). Quotients and
    remainders of the others are exact in float64, and so are the conversions."""
    bits, integer = _SHORT_BITS + signed, left.type
    above_zero = b.constant(1 << _SHORT_BITS, integer)
    any_bit = b.binary(
        "or", *(b.binary("add", v, above_zero) if signed else v for v in (left, right))
    )
    long = b.compare("icmp ugt", any_bit, b.constant((1 << bits) - 1, integer))
    units, units_bits = b.constant(_UNITS, "double"), b.constant(_UNITS_BITS, integer)
    number, divisor = (
        b.binary("fsub", b.convert("bitcast", b.binary("add", v, units_bits), "double"), units)
        for v in (left, right)
    )
    if right.lanes == 1:
        half = b.intrinsic("copysign", *b.level(b.constant(0.5, "double"), number))
        inverse = b.binary("fdiv", b.constant(1.0, "double"), divisor)
        ratio = b.binary("fmul", b.binary("fadd", number, half), inverse)
    else:
        ratio = b.binary("fdiv", number, divisor)
    result = rounded(b, "trunc", ratio)
    if op == "%":
        result = b.binary("fsub", number, b.binary("fmul", result, divisor))
    whole = b.convert("bitcast", b.binary("fadd", result, units), integer)
    return b.binary("sub", whole, units_bits), long


def _is_power_of_two(divisor: Val) -> bool:
    """Whether it is a constant for which LLVM needs no product."""
    size = abs(int(divisor.text)) if divisor.text.lstrip("-").isdecimal() else 3
    return not size & (size - 1)
