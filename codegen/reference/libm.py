"""The C library's float64 functions, callable from Python and from Numba-compiled code."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any, cast

from tcl.common.errors import CompileError

_UNARY = """acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs
            floor j0 j1 lgamma log log10 log1p log2 logb round sin sinh sqrt tan tanh tgamma
            trunc y0 y1"""
_BINARY = "atan2 copysign fmod hypot nextafter pow remainder"


# None, where there is no separate libm, means this process.
_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))


def _libm_function(name: str, arity: int, number: type) -> Callable[..., float]:
    function: Any = getattr(_LIBRARY, name, None)
    if function is None:
        raise CompileError(
            f"this system's C library has no function {name}; the reference needs it"
        )
    function.restype = number
    function.argtypes = [number] * arity
    return cast(Callable[..., float], function)


LIBM: dict[str, Callable[..., float]] = {
    **{name: _libm_function(name, 1, ctypes.c_double) for name in _UNARY.split()},
    **{name: _libm_function(name, 2, ctypes.c_double) for name in _BINARY.split()},
    "fma": _libm_function("fma", 3, ctypes.c_double),
}
"""Name in C → the float64 function."""

LIBM_FLOAT32: dict[str, Callable[..., float]] = {
    "fma": _libm_function("fmaf", 3, ctypes.c_float),
    "nextafter": _libm_function("nextafterf", 2, ctypes.c_float),
}
"""Functions whose float32 result cannot be had by rounding the float64 one."""
