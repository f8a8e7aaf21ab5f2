"""Lanes that go on in order from an element that data select: one load, checked at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from cpu_kernels import fenced_copy, reference, run

from tcl.codegen.options.options import MappingOptions

LENGTH = 60
FORMS = {
    "row": "X(At(n) + k)",
    "row, named": "X(q) where q = At(n) + k",
    "from afar": "X(k - 3 - At(n) + 40)",
    "sum of rows": "X(At(n) + k) * X(At(n) + 2 + k)",
    "guarded": "At(n) + k >= 0 && At(n) + k < N ? X(At(n) + k) : 0",
    "some": "k % 3 > 0 ? X(At(n) + k) : 0",
}


def text(form: str, columns: int, type_: str, index: str) -> str:
    value, _, where = FORMS[form].partition(" where ")
    where = f"{where}, " if where else ""
    return (
        f"def f({type_}(N) X, {index}(M) At) -> ({type_}(M, {columns}) O) {{\n"
        f"    O(n, k) = {value} where {where}k in 0:{columns} }}"
    )


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize("columns", [1, 5, 19])
@pytest.mark.parametrize("form", FORMS)
def test_places_are_right_and_checked(form: str, columns: int, lanes: int, after: bool) -> None:
    """Whichever lane is the first one outside of the tensor, in vectors that are whole or not. What
    lies beside the tensor is not touched."""
    draw = np.random.default_rng(columns + lanes)
    options = MappingOptions("naive").vectorize(lanes, 1)
    for type_, index in (("float32", "int32"), ("uint8", "int64")):
        made = text(form, columns, type_, index)
        x = fenced_copy(draw.integers(0, 200, LENGTH).astype(type_), after)
        inside = draw.integers(3, 38 - columns, 7).astype(index)
        for change in (3, -1, -columns, LENGTH - columns + 1, LENGTH, 41, 58):
            at = fenced_copy(inside, after)
            at[4] = change
            expected, result = (
                outcome(partial(work, made, x, at))
                for work in (reference, partial(run, options=options))
            )
            assert result == expected


def outcome(work: Callable[[], list[Any]]) -> object:
    """What comes out, or what is said of it."""
    try:
        return work()[0].tobytes()
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("at", [2**63 - 1, 2**63 - 9, -(2**63), 2**31])
def test_places_beyond_all_numbers(at: int) -> None:
    made = text("row", 20, "float", "int64")
    x, far = np.ones(LENGTH, np.float32), np.array([3, at], np.int64)
    with pytest.raises(IndexError) as expected:
        reference(made, x, far)
    with pytest.raises(IndexError) as found:
        run(made, x, far, options=MappingOptions("naive").vectorize(16, 1))
    assert str(found.value) == str(expected.value)
