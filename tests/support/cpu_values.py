"""Values at which types do something of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from strategies import numpy_type

from tcl.grammar.syntax.types import SCALAR_TYPES

Array = np.ndarray[Any, Any]


def interesting(name: str) -> Array:
    """Values at which a type does something of its own."""
    kind = SCALAR_TYPES[name]
    if not kind.is_float:
        low, high = kind.limits
        whole = [low, low + 1, -128, -7, -2, -1, 0, 1, 2, 3, 100, 127, 255, high - 1, high]
        whole += [2**24 + 1, 2**53 + 1, 2**62 + 2**38 + 1, 2**62 + 2**54]
        return np.array([v for v in whole if low <= v <= high], numpy_type(name))
    floats: list[float] = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -1.5,
        1e-7,
        6e-8,
        3e-8,
        6e-5,
        3.14159,
        65504,
        65520,
        65519,
    ]
    floats += [1e5, -1e5, 127.9, 128, 255.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 3e38, 1e300]
    floats += [1.0009765625, 1.00048828125001, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, np.inf, np.nan]
    signed = np.array(floats + [-x for x in floats])
    with np.errstate(all="ignore"):
        return signed.astype(numpy_type(name))
