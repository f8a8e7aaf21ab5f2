"""The C library's float64 functions, callable from Python and from Numba-compiled code."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Callable
from typing import Any, cast

from tcl.codegen.common.errors import CompileError

_UNARY = """acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs
            floor j0 j1 lgamma log log10 log1p log2 logb round sin sinh sqrt tan tanh tgamma
            trunc y0 y1"""
_BINARY = "atan2 copysign fmod hypot nextafter pow remainder"


def _load() -> ctypes.CDLL:
    name = "ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m")
    return ctypes.CDLL(name)  # None, where there is no separate libm, means this process


def _symbol(library: ctypes.CDLL, name: str) -> Any:
    for candidate in (name, f"_{name}"):  # Windows spells the Bessel functions _j0
        try:
            return getattr(library, candidate)
        except AttributeError:
            continue
    raise CompileError(f"this system's C library has no function {name}; the reference needs it")


def _function(library: ctypes.CDLL, name: str, arity: int, number: type) -> Callable[..., float]:
    function = _symbol(library, name)
    function.restype = number
    function.argtypes = [number] * arity
    return cast(Callable[..., float], function)


_LIBRARY = _load()

LIBM: dict[str, Callable[..., float]] = {
    **{name: _function(_LIBRARY, name, 1, ctypes.c_double) for name in _UNARY.split()},
    **{name: _function(_LIBRARY, name, 2, ctypes.c_double) for name in _BINARY.split()},
    "fma": _function(_LIBRARY, "fma", 3, ctypes.c_double),
}
"""Name in C → the float64 function."""

LIBM_FLOAT32: dict[str, Callable[..., float]] = {
    "fma": _function(_LIBRARY, "fmaf", 3, ctypes.c_float),
    "nextafter": _function(_LIBRARY, "nextafterf", 2, ctypes.c_float),
}
"""Functions whose float32 result cannot be had by rounding the float64 one."""
