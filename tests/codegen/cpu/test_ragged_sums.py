"""Sums whose lanes are of a reduction that does not fill the last vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from nests import WIDE, sized

import tcl
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

Array = npt.NDArray[Any]
OPTIONS = MappingOptions("naive").vectorize(16, 1)


ADDED: dict[str, tuple[Callable[[Array, Array], Array], bool]] = {
    "A(m, k) * B(m, k)": (lambda a, b: a * b, False),
    "A(m, k)": (lambda a, b: a, False),
    "A(m, k) * B(m, k) * A(m, 0)": (lambda a, b: a * b * a[:, :1], True),
    "A(m, k) * B(m, 0)": (lambda a, b: a * b[:, :1], True),
    "A(m, k) + 1": (lambda a, b: a + 1, True),
    "max(A(m, k), B(m, k))": (np.maximum, True),
}


@pytest.mark.parametrize("added", ADDED)
def test_what_is_read_under_a_mask_adds_nothing(added: str) -> None:
    """It is 0 in lanes that do not exist; one factor for all lanes may be infinite, and 0 times
    that is no number."""
    text = f"float(M, K) A, float(M, K) B) -> (O) {{ O(m) +=! {added} where k in 0:K }}"
    computed, chosen = ADDED[added]
    emitted = emit_program(schedule(sized(text, (5, 28), (5, 28)), OPTIONS, WIDE), WIDE).text
    assert ("select <16 x i1>" in emitted) == chosen
    rng = np.random.default_rng(1)
    a, b = rng.random((5, 28), dtype=np.float32), rng.random((5, 28), dtype=np.float32)
    a[0, 0] = b[1, 0] = b[2, 27] = np.inf
    for name, dtype in (("float", np.float32), ("double", np.float64), ("half", np.float16)):
        typed = "def f(" + text.replace("float", name)
        given = a.astype(dtype), b.astype(dtype)
        found = tcl.compile(typed, "f", OPTIONS, *given)(*given)
        expected = computed(*(x.astype(np.float64) for x in given)).sum(1)
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2e-3)
