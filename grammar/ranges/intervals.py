"""Bounds of integer operations: intervals, as C computes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from tcl.grammar.sizes.varying import Size, Undecided, largest, smallest
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree import size_expressions

Bounds: TypeAlias = tuple[float, float]
"""Smallest and largest value, both possible; infinite where nothing is known. Integers else."""

UNBOUNDED: Bounds = (-math.inf, math.inf)


def within(bounds: Bounds, type_: ScalarType) -> bool:
    """Whether all these values are values of an integer type."""
    if not type_.is_integral:
        return False
    low, high = type_.limits
    return low <= bounds[0] and bounds[1] <= high


def of_type(expr: c.Expr, found: Bounds) -> Bounds:
    """What becomes of these bounds when the value is made one of the expression's type."""
    if expr.type.is_float:
        return UNBOUNDED
    low, high = expr.type.limits
    wraps = isinstance(expr, c.Unary | c.Binary) and expr.op not in ("min", "max")
    if wraps and not (low <= found[0] and found[1] <= high):
        return low, high
    return largest(low, found[0]), smallest(high, found[1])


def _corners(values: Iterable[float]) -> Bounds:
    known = list(values)
    return (smallest(*known), largest(*known)) if not any(x != x for x in known) else UNBOUNDED


def product(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of a product of two independent values."""
    return _corners(x * y if x and y else 0 for x in a for y in b)


def quotient(a: Bounds, b: Bounds) -> Bounds:
    """C's division, 0 by zero."""
    _check_known(a, b)
    low, high = b
    found: list[float] = [0] if low <= 0 <= high else []
    if low < 0:
        found += [_truncated(x, y) for x in a for y in (low, smallest(high, -1))]
    if high > 0:
        found += [_truncated(x, y) for x in a for y in (largest(low, 1), high)]
    return _corners(found) if found else UNBOUNDED


def _check_known(*bounds: Bounds) -> None:
    """Kernels that sizes share have no quotients by or of these."""
    sizes = [str(x) for pair in bounds for x in pair if isinstance(x, Size)]
    if sizes:
        raise Undecided(f"{sizes[0]} is known only when the kernel runs")


def _truncated(x: float, by: float) -> float:
    if isinstance(by, float):  # infinite
        return 0
    if isinstance(x, float):
        return x if by > 0 else -x
    return size_expressions.quotient(x, by)


def remainder(a: Bounds, b: Bounds) -> Bounds:
    """C's remainder: it has the sign of the dividend; 0 by zero."""
    _check_known(a, b)
    low, high = b
    by = largest(high, -low)
    if by == 0:
        return 0, 0
    if low == high and -math.inf < a[0] and a[1] < math.inf and a[0] * a[1] >= 0:
        times = _truncated(a[0], by)
        if times == _truncated(a[1], by):
            return a[0] - times * by, a[1] - times * by
    return (0 if a[0] >= 0 else largest(a[0], 1 - by)), (0 if a[1] <= 0 else smallest(a[1], by - 1))


def either(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of a value that is one of two."""
    return smallest(a[0], b[0]), largest(a[1], b[1])


def operation(op: str, a: Bounds, b: Bounds) -> Bounds:
    """Bounds of ``+ - * / % min max`` on integers."""
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            return product(a, b)
        case "/":
            return quotient(a, b)
        case "%":
            return remainder(a, b)
        case "min":
            return smallest(a[0], b[0]), smallest(a[1], b[1])
        case _:
            return largest(a[0], b[0]), largest(a[1], b[1])
