"""The built-in functions: formulas of ``vector``, LLVM's own, the C library's, or expansions
of ``special``.

Formulas, expansions and functions of one instruction or a few work on all lanes at once; those of
the C library are called lane by lane. Where its float32 function is less exact than two units in
the last place, the float64 one is called and its result rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcl.codegen.cpu.llvm.builder import Builder, Val, register_type
from tcl.codegen.cpu.llvm.expanded import ROUNDINGS, rounded
from tcl.codegen.cpu.math import special, vector
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.tools import PURE
from tcl.grammar.syntax.types import ScalarType

_INTRINSICS = {
    "sqrt": "sqrt",
    "fabs": "fabs",
    "copysign": "copysign",
    "fma": "fma",
    "fmin": "minnum",
    "fmax": "maxnum",
}
SHORT = (frozenset(_INTRINSICS) | ROUNDINGS) - {"sqrt"}
"""Functions that may as well be computed in vain."""
_LIBM = frozenset(
    """acos acosh asin asinh atan atan2 atanh erfc j0 j1 lgamma logb nextafter remainder tan tgamma
    y0 y1""".split()
)
"""The C library's functions, among those that lack a formula in one of the types."""
_BY_DOUBLE = frozenset("j0 j1 lgamma tgamma y0 y1".split())
"""float32 calls that use the float64 function."""


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
    if name not in _LIBM:
        wide = [b.convert("fpext", a, "double") for a in arguments]
        return b.convert("fptrunc", special.call(b, name, wide), real)
    results = []
    for k in range(max(a.lanes for a in arguments)):
        each = [b.lane(a, k) for a in arguments]
        if real == "float" and name not in _BY_DOUBLE:
            results.append(b.call(f"{name}f", real, 1, *each, note=PURE))
            continue
        wide = [b.convert("fpext", a, "double") for a in each]
        results.append(b.convert("fptrunc", b.call(name, "double", 1, *wide, note=PURE), real))
    return b.gather_lanes(results)


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


_INLINE: dict[str, Callable[..., Number]] = {
    "fdim": lambda x, y: (x <= y).choose(x.like(0.0), x - y),
    "fdivide": lambda x, y: x / y,
    "fmod": lambda x, y: x % y,
    "hypot": _norm,
    "norm3d": _norm,
    "norm4d": _norm,
    "rhypot": _rnorm,
    "rnorm3d": _rnorm,
    "rnorm4d": _rnorm,
}
