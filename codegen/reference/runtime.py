"""What generated code may call: the names it is run with, for Numba or for plain Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tcl.codegen.reference.libm import LIBM, LIBM_FLOAT32
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax.types import SCALAR_TYPES

numbers, special = (import_module(f"{__package__}.{name}") for name in ("numbers", "special"))
"""The modules themselves, whose functions generated code calls by their names."""

_TYPES = [t.name for t in SCALAR_TYPES.values() if not t.is_bool and t.name != "bfloat16"]


@cache
def namespace(jit: bool) -> dict[str, Any]:
    """Global names of generated code: ``float32`` and its like, ``b_`` with the name of a
    built-in for its float64 function, ``s_`` for the float32 ones, and the number helpers."""
    helpers = _compile_helpers() if jit else {**vars(numbers), **vars(special)}
    public = (name for name in _functions(numbers) if not name.startswith("_"))
    names: dict[str, Any] = {name: helpers[name] for name in public}
    names |= {"nan": np.nan, "inf": np.inf, "ndindex": np.ndindex}
    for name in _TYPES:
        scalar = getattr(np, name)
        names[name] = scalar if jit else _wrapping(scalar)
    for name in BUILTINS:
        function = helpers.get(name) if name in _functions(special) else LIBM[name]
        names[f"b_{name}"] = function if jit else _on_floats(function)
    names["b_nudged"] = names["nudged"] if jit else _on_floats(names["nudged"])
    for name, single in LIBM_FLOAT32.items():
        names[f"s_{name}"] = single if jit else _on_floats(single)
    return names


def jit_options() -> dict[str, Any]:
    """Options of every Numba compilation: IEEE arithmetic, C-like division by zero."""
    return {"error_model": "numpy", "nogil": True}


def _functions(module: ModuleType) -> dict[str, FunctionType]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }


def _compile_helpers() -> dict[str, Any]:
    """Numba-compiled copies of all helpers, which call each other's copies."""
    import numba

    names: dict[str, Any] = {**vars(numbers), **vars(special)}
    for module in (numbers, special):
        for name, function in _functions(module).items():
            copy = FunctionType(function.__code__, names, name, function.__defaults__)
            names[name] = numba.njit(**jit_options())(copy)
    return names


def _wrapping(scalar: type[np.generic]) -> Callable[[Any], Any]:
    """A conversion that wraps where NumPy's own would refuse a Python int. Integers are mostly
    small, and NumPy takes ten times as long to make one as to look it up."""
    small: dict[int, np.generic] = {}
    if issubclass(scalar, np.integer):
        limits = np.iinfo(scalar)
        small = {k: scalar(k) for k in range(max(limits.min, -128), min(limits.max, 1024) + 1)}

    def convert_scalar(value: Any) -> Any:
        if type(value) is scalar:
            return value
        if small and isinstance(value, (int, np.integer)):
            found = small.get(int(value))
            return np.uint64(int(value) % 2**64).astype(scalar) if found is None else found
        if type(value) is float and not small:
            return scalar(value)
        return np.asarray(value).astype(scalar)[()]

    return convert_scalar


def _on_floats(function: Any) -> Callable[..., Any]:
    """A function of Python floats that also divides by zero as IEEE does."""

    def call(*arguments: Any) -> Any:
        return function(*(np.float64(a) for a in arguments))

    return call
