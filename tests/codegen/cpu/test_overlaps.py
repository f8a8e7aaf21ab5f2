"""Loops whose last iteration does some points again, so that all iterations have the same code."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import Array, run, sized_of
from nests import NARROW, WIDE

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices import known_cpus
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

(CASCADE_LAKE,) = (p for p in known_cpus.PROFILES if p.title == "Cascade Lake")
CLEARED = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
LOWER = """def f(float(M, K) A, float(K, N) B) -> (C) {
    C(m, n) +=! (n <= m) ? A(m, k) * B(k, n) : 0 }"""
TILED = MappingOptions("naive").vectorize(16, 1).register(4, 1)


def inputs(m: int, k: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    return rng.random((m, k), np.float32), rng.random((k, n), np.float32)


def sums(text: str, options: MappingOptions, *arrays: Array) -> int:
    """How many vectors of sums of products are written."""
    built = schedule(sized_of(text, *arrays), options, WIDE)
    return emit_program(built, WIDE).text.count("= call <16 x float> @llvm.fmuladd")


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ((8, 50, 48), 4),
        ((8, 50, 43), 4),
        ((8, 50, 11), 4),  # there is no whole vector
        ((303, 50, 43), 4),
        ((301, 50, 48), 4),
        ((9, 50, 48), 4 + 1),  # three rows of nine would be done again
    ],
)
def test_a_last_iteration_has_the_code_of_the_others(
    shape: tuple[int, int, int], rows: int
) -> None:
    a, b = inputs(*shape)
    assert sums(CLEARED, TILED, a, b) == rows
    for options in (TILED, TILED.tile(32, 32, 8), TILED.tile(0, 32).stage(-1, 0)):
        (found,) = run(CLEARED, a, b, options=options)
        np.testing.assert_allclose(found, a @ b, rtol=1e-5)


def test_what_is_added_to_is_not_done_again() -> None:
    """Sums between tiles of a reduction lie in memory."""
    a, b = inputs(8, 50, 43)
    options = TILED.tile(0, 0, 8).order(2, 0, 1)
    assert sums(CLEARED, options, a, b) >= 2 * 4
    (found,) = run(CLEARED, a, b, options=options)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)


def test_a_panel_that_is_filled_outside_is_read_from_whole_tiles() -> None:
    a, b = inputs(8, 50, 43)
    assert sums(CLEARED, TILED.stage(-1, 0), a, b) == 2 * 4


def test_what_loops_leave_out_is_not_done_again() -> None:
    a, b = inputs(303, 50, 43)
    (found,) = run(LOWER, a, b, options=MappingOptions("mlp"))
    np.testing.assert_allclose(found, np.tril(a @ b), rtol=1e-5)


@pytest.mark.parametrize("type_", ["uint8", "int16"])
@pytest.mark.parametrize("reads", ["max(X(m, n), X(m, n + 2))", "X(m, n) + X(m, n + 1)"])
def test_parts_of_vectors_of_narrow_numbers_are_whole_ones(type_: str, reads: str) -> None:
    """Where the processor has no masks for them, LLVM would read lane by lane."""
    x = np.random.default_rng(1).integers(0, 100, (5, 103)).astype(type_)
    text = f"def f({type_}(M, N) X) -> ({type_}(M, 101) Y) {{ Y(m, n) = {reads} where n in 0:101 }}"
    options = MappingOptions("naive").vectorize(16, 1)
    for device in (NARROW, CASCADE_LAKE):
        emitted = emit_program(schedule(sized_of(text, x), options, device), device).text
        assert ("masked.load" in emitted) == (device is CASCADE_LAKE)
    (found,) = run(text, x, options=options)
    other = np.maximum(x[:, :101], x[:, 2:]) if "max" in reads else x[:, :101] + x[:, 1:102]
    np.testing.assert_array_equal(found, other)
