"""Rows that the nests of a block read once, and keep in registers."""

from __future__ import annotations

from dataclasses import replace

from cuda_checks import Work, case_of, check_cases, work_of_text
from numpy.random import default_rng

from examples import definitions, sized_for
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import DEFAULT

SMALL = replace(H200, multiprocessors=3)
"""So few that a handful of rows keeps it busy."""
ROWS = [
    ("softmax", "softmax_twice", "N=33,D=128"),
    ("layernorm", "layernorm", "N=130,D=516"),
    ("group_normalization", "group_normalization_single", "N=2,G=3,D=5,H=9,W=12"),
    ("group_normalization", "group_normalization_single", "N=2,G=2,D=16,H=24,W=24"),
]


def test_rows_are_read_once() -> None:
    cases = []
    for file, entry, sizes in ROWS:
        checked = definitions(file)[entry]
        given = dict(parse_sizes(sizes, checked))
        work = Work(entry, sized_for(checked, given), random_inputs(checked, given))
        case = case_of(work, DEFAULT, SMALL)
        assert len(case.module.launches) == 1
        assert case.module.source.count("&I[") + case.module.source.count("= I[") == 1
        cases.append(case)
    check_cases(cases).none()


def test_what_is_one_for_all_points_of_a_row_is_not_kept() -> None:
    """Neither where a row has vectors nor where it has threads alone."""
    text = """def f(float(N, D) I, float(N) U) -> (V, O) {
    V(n) +=! (I(n, d) - U(n)) * (I(n, d) - U(n))
    O(n, d) = (I(n, d) - U(n)) * V(n)
}"""
    rng = default_rng(1)
    cases = []
    for row in (128, 131):
        given = [rng.integers(-3, 4, shape).astype("float32") for shape in ((33, row), (33,))]
        cases.append(case_of(work_of_text(text, *given), DEFAULT, SMALL))
        assert "I_kept" in cases[-1].module.source
    check_cases(cases).none()


def test_a_row_that_the_block_writes_is_read_again() -> None:
    """Each time, as other threads may have written it."""
    text = """def f(float(N, D) A) -> (B, S, C) {
    B(n, d) = A(n, D - 1 - d)
    S(n) +=! B(n, d)
    C(n, d) = B(n, d) - S(n)
}"""
    given = default_rng(1).integers(-3, 4, (20, 256)).astype("float32")
    case = case_of(work_of_text(text, given), DEFAULT, SMALL)
    assert case.module.source.count("&B[") == 3
    check_cases([case]).none()
