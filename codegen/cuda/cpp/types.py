"""Scalar types in CUDA C++: their names, in registers and in memory, and their constants."""

from __future__ import annotations

import math

import numpy as np

from tcl.grammar.syntax.types import FLOAT16, FLOAT64, Kind, ScalarType

_NAMES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "float32": "float",
    "float64": "double",
}
_SUFFIXES = {"uint32": "u", "int64": "LL", "uint64": "ULL"}


def c_type(t: ScalarType) -> str:
    """The type of values, in registers: ``float`` for the 16-bit floats."""
    return _NAMES[t.compute.name]


def memory_type(t: ScalarType) -> str:
    """The type of elements in memory: bits for the 16-bit floats, a byte for a bool."""
    if t.is_bool:
        return "unsigned char"
    return "unsigned short" if is_half(t) else _NAMES[t.name]


def is_half(t: ScalarType) -> bool:
    """Whether it is one of the 16-bit floats."""
    return t.is_float and t.bits == 16


def is_small(t: ScalarType) -> bool:
    """Whether C++ computes with values of this integer type as ``int``."""
    return t.is_integral and t.bits < 32


def from_memory(text: str, t: ScalarType) -> str:
    """An element that is read, by the text of its place in memory, as a value."""
    if t.is_bool:
        return f"{text} != 0"
    if is_half(t):
        return f"half_to_float({text})" if t == FLOAT16 else f"bfloat_to_float({text})"
    return text


def to_memory(text: str, t: ScalarType) -> str:
    """A value, by its text, as an element to write."""
    if is_half(t):
        return f"float_to_half({text})" if t == FLOAT16 else f"float_to_bfloat({text})"
    return text


def constant(value: int | float | bool, t: ScalarType) -> str:
    """A constant, exactly; negative ones start with a minus sign."""
    if t.is_bool:
        return "true" if value else "false"
    return _real(float(value), t) if t.is_float else _integer(int(value), t)


def _integer(value: int, t: ScalarType) -> str:
    low, high = t.limits
    value = (value - low) % (high - low + 1) + low
    suffix = _SUFFIXES.get(t.name, "")
    if t.kind is Kind.INT and t.bits >= 32 and value == low:
        # Without its sign, it is a number too large for the type.
        return f"(-{high}{suffix} - 1)"
    return f"({_NAMES[t.name]}){value}" if is_small(t) else f"{value}{suffix}"


def _real(value: float, t: ScalarType) -> str:
    """The shortest decimal that reads as this value."""
    double = t == FLOAT64
    with np.errstate(over="ignore"):
        number = np.float64(value) if double else np.float32(value)
    if math.isfinite(number):
        return repr(float(number)) if double else f"{number!s}f"
    text = "not_a_number()" if math.isnan(number) else "infinity()"
    text = f"(double){text}" if double else text
    return f"-{text}" if number < 0 else text
