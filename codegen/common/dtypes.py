"""Scalar types as NumPy dtypes, and back.

NumPy has no bfloat16 of its own; the optional package ml_dtypes supplies it and is imported
when a bfloat16 array is first asked for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tcl.common.errors import ArgumentError
from tcl.common.extras import installing
from tcl.grammar.syntax.types import BFLOAT16, SCALAR_TYPES, ScalarType


@cache
def numpy_dtype(t: ScalarType) -> np.dtype[Any]:
    """The dtype of arrays of ``t``, which is a concrete (not a literal's) type.

    Raises ArgumentError for bfloat16 when ml_dtypes is not installed.
    """
    if t != BFLOAT16:
        return np.dtype(t.name)
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentError(
            f"bfloat16 arrays need the package ml_dtypes; install it with {installing('bfloat16')}"
        ) from None
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def storage_dtype(t: ScalarType) -> np.dtype[Any]:
    """The dtype under which generated code handles elements of ``t``: uint16 for the 16-bit
    floats, whose bits it converts itself, else the dtype of ``t``. Needs no ml_dtypes."""
    return np.dtype(np.uint16) if t.is_float and t.bits == 16 else np.dtype(t.name)


def scalar_type_of(dtype: np.dtype[Any], what: str = "") -> ScalarType:
    """The scalar type of a dtype; ArgumentError, about ``what`` is of it, if tcl has none."""
    about = what and f"{what}: "
    found = SCALAR_TYPES.get(dtype.name)
    if found is None:
        known = ", ".join(SCALAR_TYPES)
        raise ArgumentError(
            f"{about}arrays of {dtype} are not supported; convert to one of {known}"
        )
    if not dtype.isnative:
        raise ArgumentError(
            f"{about}arrays in foreign byte order ({dtype.str}) are not supported; "
            f"convert with .astype({dtype.name!r})"
        )
    return found
