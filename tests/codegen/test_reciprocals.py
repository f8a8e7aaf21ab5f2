"""Sums of quotients by a number, as of means: products with its reciprocal are added."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import run
from nests import sized

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower


def added(value: str) -> ir.Value:
    text = f"float(M, N) X, float(M) Y, int32(M, N) K) -> (O) {{ O(m) +=! {value} }}"
    program = lower(sized(text, (6, 40), (6,), (6, 40)))
    return program.nests[0].point.value


@pytest.mark.parametrize(
    ("value", "divisor"),
    [
        ("X(m, n) / 3", 3),
        ("X(m, n) / N", 40),
        ("X(m, n) / (N * M - 1)", 239),
        ("X(m, n) * Y(m) / 0.5", 0.5),
        ("n > m ? X(m, n) / 7 : 0", 7),
    ],
)
def test_a_product_with_the_reciprocal_is_added(value: str, divisor: float) -> None:
    found = added(value)
    product = found.then if isinstance(found, ir.Select) else found
    assert isinstance(product, ir.Binary) and product.op == "*"
    assert product.right == ir.Const(1 / divisor, product.type)


@pytest.mark.parametrize(
    "value",
    [
        "X(m, n) / Y(m)",  # by data
        "X(m, n) / 3 - Y(m) / 3",  # which must not pass through an accumulator one by one
        "X(m, n) / 1e-36",  # whose reciprocal may have fewer digits, or be none
        "K(m, n) / 3",  # of integers
        "X(m, n) / (N - 40)",
    ],
)
def test_other_quotients_stay_what_they_are(value: str) -> None:
    found = added(value)
    assert isinstance(found, ir.Binary) and found.op in ("/", "-")


def test_what_is_no_sum_is_divided() -> None:
    program = lower(sized("float(N) X) -> (O) { O(n) = X(n) / 3 }", (6,)))
    value = program.nests[0].point.value
    assert isinstance(value, ir.Binary) and value.op == "/"


def test_sums_are_as_near_as_those_of_quotients() -> None:
    """To sums in float64: within the rounding of one quotient, and of as many additions."""
    text = "def f(float(M, N) X) -> (O) { O(m) +=! X(m, n) / 9 }"
    x = np.random.default_rng(1).uniform(-1, 1, (50, 9)).astype(np.float32)
    found, exact = run(text, x)[0], (x.astype(np.float64) / 9).sum(1)
    assert (abs(found - exact) <= 2.0**-24 * (abs(x) / 9).sum(1) * 10).all()
    whole = np.arange(1, 30, dtype=np.float32)[:, None] * np.ones((1, 9), np.float32)
    np.testing.assert_array_max_ulp(run(text, whole)[0], whole[:, 0], 2)
