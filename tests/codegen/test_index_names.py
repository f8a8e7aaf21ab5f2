"""Indices that are called like what schedules make up: dimensions, nests, tensors, folds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cpu_kernels import reference, run
from cuda_checks import Case, case_of, check_cases, why_not, work_of_text
from sampling import swept

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions

WORDS = (
    *("part", "part_", "parts", "whole", "owner", "arrived", "held", "sums", "count", "listed"),
    *("panel0", "fill0", "clear", "result", "kept0", "point", "tile", "chunk", "thread", "lane"),
    *("sum", "shared", "exchange", "k_tile", "step", "copy0"),
)
PRODUCT = (
    "def f(float(M, K) A, float(K, N) B) -> (C) {{ C({0}, {1}) +=! A({0}, {2}) * B({2}, {1}) }}"
)
COUNTS = "def f(float(N) A, int32(N) I) -> (float(9) H) {{ H(I({0})) +=! A({0}) }}"
SPLIT = NestOptions(
    split=(0, 0, 4), chunk=(16, 16), threads=(8, 4), vectorize=(1, 4), tile=(0, 0, 8), stage=(2, 2)
)
FEW = [("part", "part_", "k"), ("whole", "parts", "part")]
MANY = [(a, b, c) for (a, b), c in zip(pairwise((*WORDS, "k")), ("j", *WORDS), strict=False)]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    random = np.random.default_rng(3)
    return [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
@pytest.mark.parametrize("several", swept([FEW], [MANY]), ids=len)
def test_on_a_gpu(several: list[tuple[str, str, str]]) -> None:
    """Of products whose sums are split, and of scatters."""
    small, cases = replace(H200, multiprocessors=40), list[Case]()
    factors = arrays((9, 700), (700, 21))
    for k, names in enumerate(several):
        work = work_of_text(PRODUCT.format(*names), *factors)
        options = MappingOptions().with_nest(0, SPLIT) if k % 2 else DEFAULT
        cases.append(case_of(work, options, small))
    index = np.arange(3000, dtype=np.int32) % 9
    for name in ("part", "owner") if several is MANY else ("part",):
        counts = work_of_text(COUNTS.format(name), *arrays((3000,)), index)
        cases.append(case_of(counts, DEFAULT, small))
    check_cases(cases).none()


def test_on_a_cpu() -> None:
    threads = replace(host_cpu(), threads=4)
    index = np.arange(30000, dtype=np.int32) % 9
    options = MappingOptions().with_nest(0, NestOptions(split=(0, 0, 4), chunk=(8, 8)))
    factors = arrays((9, 700), (700, 21))
    for names in FEW:
        text = PRODUCT.format(*names)
        (made,) = run(text, *factors, options=options, device=threads)
        np.testing.assert_array_equal(made, reference(text, *factors)[0])
    inputs = [*arrays((30000,)), index]
    (made,) = run(COUNTS.format("owner"), *inputs, options=DEFAULT, device=threads)
    np.testing.assert_array_equal(made, reference(COUNTS.format("owner"), *inputs)[0])
