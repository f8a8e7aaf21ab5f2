"""``assert_almost_equal``: whether two arrays agree, of whatever libraries they are."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tcl.arrays.arguments import Array
from tcl.arrays.foreign import adopted
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of, shown


def assert_almost_equal(
    actual: Any,
    expected: Any,
    *inputs: Any,
    operations: int = 1,
    precision: float = 1e-7,
) -> None:
    """Assert that two arrays agree within ``operations * precision * largest input``. The
    arrays may belong to different libraries and lie on different devices.

    ``operations`` is the number of successive operations per value, ``precision`` the relative
    precision of one operation. Raises ``AssertionError``, also for different shapes, and
    ``ArgumentError`` for a value that is not an array of numbers.
    """
    one, other = _as_float64("actual", actual), _as_float64("expected", expected)
    if one.shape != other.shape and one.ndim and other.ndim:
        raise AssertionError(f"the shapes differ: {one.shape} and {other.shape}")
    values = [_as_float64("an input", i) for i in inputs]
    largest = max((float(np.max(np.abs(i))) for i in values if i.size), default=0.0)
    for name, number in (("operations", operations), ("precision", precision)):
        huge = isinstance(number, int) and abs(number) > 10**300
        if huge or not isinstance(number, int | float | np.number):
            raise ArgumentError(f"{name} has to be a number, not {shown(number)}")
    difference = np.abs(one - other)
    worst = float(np.max(difference, initial=0.0))
    if not worst <= operations * precision * largest:
        raise AssertionError(
            f"the largest difference is {worst:g}, more than {operations} operations with "
            f"precision {precision:g} on values up to {largest:g} can cause"
        )


def _as_float64(what: str, value: object) -> Array:
    """The values as float64; ``ArgumentError`` for what are no real numbers."""
    one = adopted(what, value)
    found: Array | None = one.library.numbers(one.array) if one is not None else None
    if isinstance(value, np.generic | bool | int | float | list | tuple):
        with contextlib.suppress(ValueError):  # a ragged list
            found = np.asarray(value)
    if found is None or not np.can_cast(found.dtype, np.float64, "same_kind"):
        raise ArgumentError(f"{what} has to be an array of numbers, not {kind_of(value)}")
    return found.astype(np.float64)
