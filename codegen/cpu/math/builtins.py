"""The built-in functions: formulas of ``vector``, LLVM's own, expansions of ``special`` in float64,
or functions of one instruction or a few. All work on all lanes at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcl.codegen.cpu.llvm.builder import Builder, Val, register_type
from tcl.codegen.cpu.llvm.expanded import ROUNDINGS, rounded
from tcl.codegen.cpu.math import special, vector
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.tools import (
    bits,
    exponent,
    is_nan,
    layout,
    negative,
    normal,
)
from tcl.grammar.syntax.types import ScalarType

_INTRINSICS = {
    "sqrt": "sqrt",
    "fabs": "fabs",
    "copysign": "copysign",
    "fma": "fma",
    "fmin": "minnum",
    "fmax": "maxnum",
}


def call(b: Builder, name: str, arguments: Sequence[Val], type_: ScalarType) -> Val:
    """The built-in ``name`` on arguments of type ``type_``."""
    real = register_type(type_)
    if vector.covers(name, real):
        return vector.call(b, name, arguments, real)
    if name in ROUNDINGS:
        return rounded(b, name, *arguments)
    if name in _INTRINSICS:
        return b.intrinsic(_INTRINSICS[name], *arguments)
    if name in _INLINE:
        return _INLINE[name](*(Number(b, a) for a in b.level(*arguments))).value
    wide = [b.convert("fpext", a, "double") for a in arguments]
    return b.convert("fptrunc", special.call(b, name, wide), real)


# One instruction or a few. These take Numbers of float32 or float64, scalars or lanes.


def _norm(*xs: Number) -> Number:
    """The length of a vector; infinite if any part is, whatever the others are."""
    if xs[0].type == "float":  # squares of float32 do not overflow in float64
        wide = [x.to("double") for x in xs]
        total = sum((x * x for x in wide[1:]), wide[0] * wide[0])
        result = total.sqrt().to("float")
    else:
        # Scaled by a power of two near the largest part, so that no square over- or underflows.
        largest = xs[0].abs()
        for x in xs[1:]:
            largest = largest.maxnum(x.abs())
        scale = largest.power_of_two()
        scaled = [x / scale for x in xs]
        total = sum((x * x for x in scaled[1:]), scaled[0] * scaled[0])
        result = total.sqrt() * scale
    infinity = xs[0].like(float("inf"))
    for x in xs:
        result = (x.abs() == infinity).choose(infinity, result)
    return result


def _rnorm(*xs: Number) -> Number:
    if xs[0].type == "float":
        infinity = xs[0].to("double").like(float("inf"))
        wide = [x.to("double") for x in xs]
        total = sum((x * x for x in wide[1:]), wide[0] * wide[0])
        result = total.like(1.0) / total.sqrt()
        for x in wide:
            result = (x.abs() == infinity).choose(infinity.like(0.0), result)
        return result.to("float")
    return xs[0].like(1.0) / _norm(*xs)


def _remainder(x: Number, y: Number) -> Number:
    """By the exact remainder of twice the divisor, as fdlibm does it (Sun Microsystems, 1993)."""
    size = y.abs()
    rest = x.abs() % (size + size)
    less = rest - size
    less = (less + less >= size).choose(less - size, less)
    rest = (rest + rest > size).choose(less, rest)
    return negative(x).choose(-rest, rest)


def _nextafter(x: Number, y: Number) -> Number:
    """Numbers of one sign are in order as integers."""
    zero, raw = x.like(0.0), bits(x)
    grows = (y > x) & (x > zero) | (y < x) & (x < zero)
    result = grows.choose((raw + 1).number(), (raw - 1).number())
    least = 2.0 ** (1 - layout(x).bias - layout(x).digits)
    result = (x == zero).choose(x.like(least).copysign(y), result)
    result = (x == y).choose(y, result)
    return (is_nan(x) | is_nan(y)).choose(x + y, result)


def _logb(x: Number) -> Number:
    a = x.abs()
    scaled, less = normal(a)
    result = exponent(scaled) + less
    result = (a == x.like(0.0)).choose(x.like(-math.inf), result)
    return (a < math.inf).choose(result, a)


_INLINE: dict[str, Callable[..., Number]] = {
    "fdim": lambda x, y: (x <= y).choose(x.like(0.0), x - y),
    "fdivide": lambda x, y: x / y,
    "fmod": lambda x, y: x % y,
    "hypot": _norm,
    "logb": _logb,
    "nextafter": _nextafter,
    "norm3d": _norm,
    "norm4d": _norm,
    "remainder": _remainder,
    "rhypot": _rnorm,
    "rnorm3d": _rnorm,
    "rnorm4d": _rnorm,
}
