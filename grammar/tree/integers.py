"""Integer arithmetic of the language, on Python's integers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from tcl.grammar.syntax.types import ScalarType


def quotient(a: int, b: int) -> int:
    """C's ``a / b``, truncated towards zero; 0 for ``b`` = 0."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """C's ``a % b``, which has the sign of ``a``; 0 for ``b`` = 0."""
    return a - b * quotient(a, b) if b else 0


def wrapped(value: int, type_: ScalarType) -> int:
    """The value of an integer type that is ``value`` modulo 2 to the power of its bits."""
    low, high = type_.limits
    return (value - low) % (high - low + 1) + low


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "%": remainder,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
"""What the operators on two integers do, where nothing wraps."""
