"""The reference at a sample of elements: it says what the whole reference says there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from comparing import outputs_of, sized_of
from nests import sized
from program_builder import Program
from strategies import random_program

from tcl.codegen.reference import compile_reference, compute
from tcl.codegen.reference.sample import pick, why_not_sampled
from tcl.grammar.ranges.sized import SizedDef

Array = np.ndarray[Any, Any]


def compared(program: SizedDef, inputs: list[Array], most: int, *, jit: bool = False) -> float:
    """The share of the work that a sample took; what it computed is what the whole one does."""
    expected, outputs = outputs_of(program), outputs_of(program)
    compile_reference(program, jit=jit)(inputs, expected)
    found = compute(program, inputs, outputs, whole=0, sampled=most, jit=jit)
    for positions, right, here in zip(found.positions, expected, outputs, strict=True):
        if positions is not None:
            assert len(positions) or not right.size
            assert right.reshape(-1)[positions].tobytes() == here.reshape(-1)[positions].tobytes()
    return found.share


@pytest.mark.parametrize("seed", range(60))
def test_samples_of_random_programs_are_what_the_whole_reference_says(seed: int) -> None:
    program: Program = random_program(seed, max_statements=4)
    compared(sized_of(program), list(program.inputs(seed).values()), most=20_000)


def test_compiled_samples_are_the_same() -> None:
    text = """
    def softmax(float(N, D) I) -> (M, S, O) {
        M(n) max=! I(n, d)
        S(n) +=! exp(I(n, d) - M(n))
        O(n, d) = exp(I(n, d) - M(n)) / S(n)
    }
    """
    values = np.random.default_rng(0).random((300, 200), np.float32)
    share = compared(sized(text, I=values.shape), [values], 400_000, jit=True)
    assert 0 < share < 0.5


def test_a_product_is_computed_where_every_index_takes_every_value() -> None:
    text = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    shape = (50, 30)
    program = sized(text, A=(50, 40), B=(40, 30))
    inputs = [np.ones((50, 40), np.float32), np.ones((40, 30), np.float32)]
    found = compute(program, inputs, outputs_of(program), whole=0, sampled=30_000, jit=False)
    (positions,) = found.positions
    assert positions is not None
    rows, columns = np.unravel_index(positions, shape)
    assert set(rows) == set(range(50))
    assert set(columns) == set(range(30))
    assert {(0, 0), (0, 29), (49, 0), (49, 29)} <= set(zip(rows, columns, strict=True))
    assert len(positions) < math.prod(shape) / 4


def test_what_is_small_is_computed_whole() -> None:
    program = sized("def f(float(N) A) -> (O) { O(n) = A(n) }", A=(9,))
    outputs = outputs_of(program)
    found = compute(program, [np.arange(9, dtype=np.float32)], outputs)
    assert (found.positions, found.share) == ((None,), 1.0)
    assert outputs[0].tolist() == list(range(9))


def test_points_share_what_they_depend_on_where_that_is_dear() -> None:
    """Each element of the last product needs a row of the first."""
    text = """
    def chain(float(M, K) A, float(K, N) B, float(N, P) C) -> (T, O) {
        T(m, n) +=! A(m, k) * B(k, n)
        O(m, p) +=! T(m, n) * C(n, p)
    }
    """
    shapes = {"A": (64, 64), "B": (64, 64), "C": (64, 64)}
    inputs = [np.random.default_rng(0).random(s, np.float32) for s in shapes.values()]
    assert 0 < compared(sized(text, **shapes), inputs, 200_000) < 0.2


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ("O(n) = A(n) O(n) = O(n) / A(n)", None),
        ("O(n) = A(n) P(n) = O(N - 1 - n)", None),
        ("O(n) = A(I(n))", "the data say which elements of A are read"),
    ],
)
def test_defs_that_are_not_sampled_have_a_reason(statements: str, reason: str | None) -> None:
    outputs = "O, P" if "P" in statements else "O"
    text = f"def f(float(N) A, int32(N) I) -> ({outputs}) {{ {statements} }}"
    program = sized(text, A=(40,), I=(40,))
    assert why_not_sampled(program) == reason
    inputs = [np.arange(40, dtype=np.float32), np.arange(40, dtype=np.int32)]
    share = compared(program, inputs, 100)
    assert (share == 1.0) == (reason is not None)


@pytest.mark.parametrize("shape", [(), (1,), (0, 5), (1000,), (3, 1, 200), (2,) * 9, (70, 90)])
@pytest.mark.parametrize("values", [None, 4])
def test_picked_elements_are_elements_and_have_the_corners(
    shape: tuple[int, ...], values: int | None
) -> None:
    points = pick(shape, 600, values)
    assert points.shape[1] == len(shape)
    assert len(points) <= 600
    assert bool(len(points)) == bool(math.prod(shape))
    if not math.prod(shape):
        return
    assert ((points >= 0) & (points < np.array(shape, np.int64))).all()
    there = {tuple(p) for p in points.tolist()}
    assert {(0,) * len(shape), tuple(n - 1 for n in shape)} <= there
    if values is not None:
        assert all(len(set(column)) <= values for column in points.T.tolist())
