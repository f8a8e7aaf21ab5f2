"""Factors that products under conditions share: computed once, whatever the condition says."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_checks import Array, Case, case_of, check_cases, work_of_text

from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions

MASKED = """def f(float(K, N) A, float(M, K) B, uint8(M, K) X) -> (C) {
    C(m, n) +=! X(m, k) == 1 ? fmax(0, A(k, n)) * B(m, k) : 0
}"""
SHIFTED = """def f(float(K) A, float(M, K) B) -> (C) {
    C(m, n) +=! k + n < K ? fmax(0, A(k + n)) * B(m, k) : 0 where n in 0:K
}"""
OPTIONS = MappingOptions(
    nests=(NestOptions(chunk=(8, 16), threads=(2, 4), register=(4, 1, 2), vectorize=(1, 4)),)
)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-3, 4, shape).astype(np.float32)


def made(text: str, *inputs: Array) -> Case:
    return case_of(work_of_text(text, *inputs), OPTIONS, H200)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 16, 6), (11, 21, 7)])
def test_a_factor_is_computed_once_for_all_rows(m: int, n: int, k: int) -> None:
    """What is infinite or no number where the condition never holds changes nothing."""
    a, x = numbers(k, n), np.random.default_rng(4).integers(0, 2, (m, k)).astype(np.uint8)
    a[1], a[2], x[:, 1:3] = np.inf, np.nan, 0
    case = made(MASKED, a, numbers(m, k), x)
    (line,) = (line for line in case.module.source.splitlines() if "fmaxf(" in line)
    assert "factor0[" in line.partition("=")[0]
    check_cases([case]).none()


def test_threads_that_share_a_reduction_have_factors_of_their_own() -> None:
    inputs = numbers(19, 21), numbers(11, 19), np.ones((11, 19), np.uint8)
    nest = NestOptions(chunk=(8, 16), threads=(2, 4, 8), register=(4, 1, 2), vectorize=(1, 4))
    case = case_of(work_of_text(MASKED, *inputs), MappingOptions(nests=(nest,)), H200)
    assert "factor0[" in case.module.source
    check_cases([case]).none()


def test_a_factor_that_may_lie_beyond_its_tensor_stays_under_the_condition() -> None:
    case = made(SHIFTED, numbers(19), numbers(11, 19))
    assert "factor0" not in case.module.source
    check_cases([case]).none()
