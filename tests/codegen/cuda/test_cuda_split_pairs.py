"""Reductions that are split into the same parts as the one before them, and run with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cuda_checks import Array, Case, case_of, check_cases, work_of_text

from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import DEFAULT

SMALL = replace(H200, multiprocessors=3)
EXTREMES = """def f(float(M, N) A) -> (L, B) {
    L(m) min=! A(m, n)
    B(m) min=! A(m, n) == L(m) ? n : N
}"""
LAST = """def f(float(N) A) -> (L, B) {
    L() max=! A(n)
    B() max=! A(n) == L() ? n : -1
}"""
BOTH = """def f(float(N) A) -> (S, Q) {
    S() +=! A(n)
    Q() +=! A(n) * A(n)
}"""


def _hard() -> list[Array]:
    """Extreme values that are there twice, in several parts, of both signs of zero, nowhere, and
    those that are no numbers."""
    rng = np.random.default_rng(3)
    plain = rng.integers(0, 400, (7, 40000)).astype(np.float32)
    plain[1, [5, 39_999]] = -1
    plain[2] = np.inf
    plain[3, 30_000:30_002] = np.nan
    plain[4] = np.where(rng.random(40000) < 0.5, -0.0, 0.0)
    plain[5, 39_000:] = -np.inf
    return [plain, *(-plain[k] for k in range(7))]


def cases() -> list[Case]:
    first, *rows = _hard()
    made = [case_of(work_of_text(EXTREMES, first[:2]), DEFAULT)]
    made += [case_of(work_of_text(LAST, row), DEFAULT, SMALL) for row in rows]
    return made


def test_places_of_extreme_values() -> None:
    found = cases()
    assert [len(c.module.launches) for c in found] == [1] * len(found)
    check_cases(found, ("forward",)).none()


def test_sums_of_the_same_elements() -> None:
    """They read them once; their parts are added up on their own."""
    given = np.random.default_rng(1).integers(-3, 4, 40000).astype(np.float32)
    case = case_of(work_of_text(BOTH, given), DEFAULT)
    assert case.module.source.count("&A[") == 1
    check_cases([case]).none()
