"""Sums that threads have in registers for the nests that come after them in their block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from cuda_checks import Array, Case, case_of, check_cases, work_of_text

from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions

SMALL = replace(H200, multiprocessors=3)
ROW = NestOptions(chunk=(1,), threads=(1, 64))


def numbers(*shape: int) -> Array:
    return np.random.default_rng(5).integers(-3, 4, shape).astype(np.float32)


def made(text: str, *inputs: Array, nests: Sequence[NestOptions] = ()) -> Case:
    """By default options, or by these of each nest, in one block."""
    options = DEFAULT
    if nests:
        joined = (replace(own, fuse=True if k else None) for k, own in enumerate(nests))
        options = MappingOptions(nests=tuple(joined))
    case = case_of(work_of_text(text, *inputs), options, SMALL)
    assert len(case.module.launches) == 1
    return case


def test_sums_are_read_again_once_they_are_written_again() -> None:
    text = """def f(float(N, D) A) -> (S, O, P) {
    S(n) +=! A(n, d)
    O(n, d) = A(n, d) - S(n)
    S(n) = 2 * A(n, 1)
    P(n, d) = A(n, d) - S(n)
}"""
    nests = (ROW, ROW, NestOptions(chunk=(1,), threads=(1,)), ROW)
    check_cases([made(text, numbers(5, 100), nests=nests)]).none()


def test_sums_are_rounded_for_who_reads_them() -> None:
    """2049 is no float16."""
    text = """def f(half(N, D) A, half(N, D) B) -> (S, O) {
    S(n) +=! A(n, d)
    O(n, d) = B(n, d) * (S(n) - 2048)
}"""
    rows = np.zeros((5, 128), np.float16)
    rows[:, :2] = 2048, 1
    check_cases([made(text, rows, numbers(5, 128).astype(np.float16), nests=(ROW, ROW))]).none()


def test_threads_without_a_part_in_a_sum_read_it() -> None:
    text = """def f(float(N, D) A) -> (S, O) {
    S(n) +=! A(n, d)
    O(n, d) = A(n, d) * S(n)
}"""
    few = replace(ROW, threads=(1, 32))
    check_cases([made(text, numbers(5, 100), nests=(few, ROW))]).none()


def test_rows_that_begin_elsewhere_are_not_shared() -> None:
    """They are as long as the rows of the sum."""
    text = """def f(float(N, D) A) -> (S, O) {
    S(n) +=! A(n, d) where d in 0:D - 4
    O(n, d) = A(n, d) * S(n) where d in 4:D
}"""
    check_cases([made(text, numbers(33, 132))]).none()


def test_rows_that_are_written_in_between_are_read_again() -> None:
    text = """def f(float(N, D) A) -> (B, S, O) {
    B(n, d) = A(n, D - 1 - d)
    S(n) +=! B(n, d)
    B(n, d) = A(n, d) + 1
    O(n, d) = B(n, d) - S(n)
}"""
    row = replace(ROW, register=(0, 2), fuse=True)
    options = MappingOptions(nests=(ROW, replace(row, fuse=False), row, row))
    case = case_of(work_of_text(text, numbers(5, 128)), options, SMALL)
    assert len(case.module.launches) == 2
    check_cases([case]).none()


def test_a_panel_is_filled_once_the_block_has_written_what_it_is_of() -> None:
    text = """def f(float(M, K) A, float(K, N) B) -> (X, C) {
    X(m, k) = A(m, K - 1 - k) + 1
    C(m, n) +=! X(m, k) * B(k, n)
}"""
    first = NestOptions(chunk=(8,), threads=(4, 8))
    second = NestOptions(
        chunk=(8, 0), threads=(4, 8), register=(2, 2), tile=(0, 0, 8), stage=(2, 2), buffers=2
    )
    check_cases([made(text, numbers(21, 24), numbers(24, 16), nests=(first, second))]).none()


def readers(case: Case) -> list[str]:
    """The line before each first read of what other warps have: a test of who reads it."""
    lines = [line.strip() for line in case.module.source.partition('extern "C"')[2].splitlines()]
    reads = [k for k, line in enumerate(lines) if "over_warps<" in line]
    return [lines[k - 1] for k in reads if "over_warps<" not in lines[k - 1]]


def test_parts_of_a_sum_are_read_by_those_who_store_it() -> None:
    text = """def f(float(N, D) A) -> (S, V) {
    S(n) +=! A(n, d)
    V(n) +=! A(n, d) * A(n, d)
    S(n) = S(n) / D
    V(n) = V(n) / D - S(n) * S(n)
}"""
    one = NestOptions(chunk=(1,), threads=(1,))
    case = made(text, numbers(5, 256), nests=(ROW, ROW, one, one))
    assert readers(case) == ["if (threadIdx.x == 0) {"]
    check_cases([case]).none()


def test_parts_of_a_sum_are_read_by_all_if_all_need_it() -> None:
    text = """def f(float(N, D) A) -> (S, M, O) {
    S(n) +=! A(n, d)
    O(n, d) = A(n, d) - S(n)
    M(n) max=! A(n, d) * S(n)
}"""
    case = made(text, numbers(5, 256), nests=(ROW, ROW, ROW))
    first, last = readers(case)
    assert first == "__syncthreads();"
    assert last == "if (threadIdx.x == 0) {"
    check_cases([case]).none()
