"""Panels of CUDA kernels, and loops in which they are filled ahead."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from cuda_checks import case_of, check_cases, why_not, work_of_text

from tcl.codegen.devices.gpu import H200, T4, GpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

MATMUL = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
COLUMNS = "def columns(float(M, N) A) -> (C) { C(n) +=! A(m, n) }"


_SIZES = (((35, 67, 9), (32, 64, 8)), ((35, 67, 9),))
"""Of products in all layouts: rows, columns, points of the sum."""
_TYPES = ("double", "int32", "float16")


def floats(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(7).standard_normal(shape, np.float32)


def test_products_with_one_or_both_operands_staged_at_any_level() -> None:
    work = work_of_text(MATMUL, floats(37, 29), floats(29, 35))
    base = NestOptions(
        chunk=(16, 16), threads=(8, 4), register=(2, 1, 2), vectorize=(1, 4), tile=(0, 0, 8)
    )
    cases = []
    for levels, buffers, device in product(
        ((2, 2), (-1, 2), (2, -1), (1, 2), (1, 1), (1, -1)), (1, 2, 4), (H200, T4)
    ):
        own = NestOptions(stage=levels, buffers=buffers).over(base)
        cases.append(case_of(work, MappingOptions().with_nest(0, own), device))
    check_cases(cases).none()


@pytest.mark.parametrize(
    "type_", ["float", *(pytest.param(t, marks=pytest.mark.slow) for t in _TYPES)]
)
def test_products_of_all_layouts_whose_threads_are_numbered_in_warps(type_: str) -> None:
    """Lanes along either dimension, and vectors along rows of results where an operand lies so."""
    reads = product(("A(m, k)", "A(k, m)"), ("B(k, n)", "B(n, k)"))
    numbers = {"float": "f4", "double": "f8", "int32": "i4", "float16": "f2"}[type_]
    cases = []
    for (one, other), (rows, columns, depth) in product(reads, _SIZES[type_ == "float"]):
        shapes = {"m": rows, "n": columns, "k": depth}
        inputs = [
            (
                np.random.default_rng(7).standard_normal([shapes[i] for i in (read[2], read[5])])
                * 3
            ).astype(numbers)
            for read in (one, other)
        ]
        work = work_of_text(
            f"def mm({type_}(P, Q) A, {type_}(R, S) B) -> (C) {{\n"
            f"    C(m, n) +=! {one} * {other} where m in 0:{rows}, n in 0:{columns}\n}}",
            *inputs,
        )
        for threads, lanes in (((4, 8), 4), ((8, 4), 1), ((8, 8), 2)):
            held = 4, 8 // lanes, 4
            sizes = threads[0] * 4, threads[1] * 8
            own = NestOptions(
                chunk=sizes, threads=threads, register=held, vectorize=(1, lanes), tile=(0, 0, 4)
            )
            staged = NestOptions(stage=(2, 2), buffers=3).over(own)
            cases += [case_of(work, MappingOptions().with_nest(0, o)) for o in (own, staged)]
    check_cases(cases).none()
    assert any("_pair" in c.module.source for c in cases)
    assert any("_row" in c.module.source for c in cases)


def test_rows_along_a_sum_are_read_one_after_the_other() -> None:
    """Where the other operand is read along the results: each row is read where it is used, and
    results go forth along one row and back along the next, whole or not; sums are stored from
    other registers. Few sums leave registers for all rows."""
    texts = {
        "C(m, n) +=! A(m, k) * B(k, n)": True,
        "C(m, n) +=! A(m, k) * B(k, n)\n C(m, n) = max(C(m, n), 0) + B(0, n)": True,
        "C(m, n) +=! exp(A(m, k)) * B(k, n)": True,
        "C(m, n) +=! k < m ? A(m, k) * B(k, n) : 0": False,
        "C(m, n) max=! A(m, k) * B(k, n)": False,
    }
    cases = []
    for (body, whether), (rows, columns, depth) in product(
        texts.items(), ((33, 52, 40), (7, 8, 36))
    ):
        text = f"def mm(float(M, K) A, float(K, N) B) -> (C) {{ {body} }}"
        work = work_of_text(text, floats(rows, depth), floats(depth, columns))
        for held, threads in (((16, 2, 4), (2, 4)), ((32, 1, 4), (1, 8)), ((5, 8, 4), (4, 1, 2))):
            sizes = threads[0] * held[0], threads[1] * held[1] * 4
            own = NestOptions(chunk=sizes, threads=threads, register=held, vectorize=(1, 4))
            staged = NestOptions(stage=(2, 2), buffers=3, tile=(0, 0, 32)).over(own)
            cases.append(case_of(work, MappingOptions().with_nest(0, staged)))
            source = cases[-1].module.source
            assert whether == ("detached(sum" in source) == (" % 2 ? 3 - n_lane" in source), body
    few = NestOptions(register=(8, 2, 4), threads=(2, 4), chunk=(16, 32)).over(staged)
    cases.append(case_of(work, MappingOptions().with_nest(0, few)))
    assert "detached" not in cases[-1].module.source
    check_cases(cases).none()


def test_panels_that_end_a_sum_beside_infinite_factors() -> None:
    """The last part of a sum is shorter: beyond it, panels are zero, but not what else there is."""
    own = NestOptions(chunk=(16, 16), threads=(8, 4), vectorize=(1, 4), tile=(0, 0, 8), buffers=2)
    text = MATMUL.replace(" B)", " B, float(M) W)")
    cases = []
    for value in ("A(m, k) * B(k, n)", "A(m, k) * B(k, n) * W(m)"):
        a, b, w = (abs(floats(*shape)) for shape in ((21, 50), (50, 20), (21,)))
        a[3, -1] = w[1] = w[4] = np.inf
        b[-1, 7] = np.nan
        work = work_of_text(text.replace("A(m, k) * B(k, n)", value), a, b, w)
        for stage in ((2, 2), (2, -1), (-1, 2)):
            options = NestOptions(split=(0, 0, 3), stage=stage).over(own)
            cases.append(case_of(work, MappingOptions().with_nest(0, options)))
    check_cases(cases).none()


def test_rows_of_boxes_are_copied_as_whole_vectors() -> None:
    """58 points of a row: as the panel has room for 60, vectors copy as many, and those beyond the
    image are zero. Rows of 62 are no whole vectors."""
    text = """def f(float(C,H,W) I, float(F,C,KH,KW) K) -> (O) {
        O(f,h,w) +=! I(c,h+kh,w+kw) * K(f,c,kh,kw) }"""
    for width, vectors in ((56, True), (60, True), (116, True), (62, False)):
        work = work_of_text(text, floats(4, 5, width), floats(4, 4, 3, 3))
        cases = []
        for device, buffers in product((H200, T4), (1, 2)):
            own = NestOptions(chunk=(4, 3, 56), threads=(2, 3, 14), vectorize=(2, 4))
            own = NestOptions(tile=(0, 0, 0, 2), stage=(2, 2), buffers=buffers).over(own)
            cases.append(case_of(work, MappingOptions().with_nest(0, own), device))
        check_cases(cases).none()
        assert ("copy_async<16, true>(&I" in cases[1].module.source) == vectors


def test_rows_of_panels_are_those_of_the_last_axis_of_several_points() -> None:
    """The factors of a 1x1 convolution: 16 neighbours are copied and read as vectors, and rows have
    room for 4 more, so that those of several threads are in different banks."""
    text = """def f(float(C,H,W) I, float(F,C,KH,KW) K) -> (O) {
        O(f,h,w) +=! I(c,h+kh,w+kw) * K(f,c,kh,kw) }"""
    work = work_of_text(text, floats(32, 3, 20), floats(24, 32, 1, 1))
    own = NestOptions(chunk=(16, 1, 16), threads=(8, 1, 4), register=(2,), vectorize=(2, 4))
    cases = []
    for device, buffers in product((H200, T4), (1, 3)):
        staged = NestOptions(tile=(0, 0, 0, 16), stage=(2, 2), buffers=buffers).over(own)
        cases.append(case_of(work, MappingOptions().with_nest(0, staged), device))
    check_cases(cases).none()
    source = cases[1].module.source
    assert "copy_async<16, true>(&K" in source
    assert "* 20" in source.split("copy_async<16, true>(&K")[1].split(";")[0]


def test_blocks_share_what_they_copy_of_a_small_input() -> None:
    """In the first cache: copies of larger ones, and of what kernels write, go past it."""
    text = """def f(float(M,K) A, float(K,N) B, float(N,L) C) -> (S, O) {
        S(m,n) +=! A(m,k) * B(k,n) O(m,l) +=! S(m,n) * C(n,l) }"""
    work = work_of_text(text, floats(256, 64), floats(64, 64), floats(64, 64))
    own = NestOptions(chunk=(32, 32), threads=(8, 8), register=(4, 4), tile=(0, 0, 16))
    own = NestOptions(stage=(2, 2), buffers=2).over(own)
    source = case_of(work, MappingOptions().with_nest(0, own).with_nest(1, own)).module.source
    assert all(f"copy_async<16>(&{name}" in source for name in ("A_tile", "S_tile"))
    assert all(f"copy_async<16, true>(&{name}" in source for name in ("B_tile", "C_tile"))


@pytest.mark.parametrize("value", ["A(m, k + 2) * B(k, n)", "A(m, 28 - k) * B(k, n)"])
def test_panels_are_zero_where_a_sum_has_no_points(value: str) -> None:
    """A sum of 29 points, in steps of 8, of operands that go on beyond its last point, or end
    there: downwards too."""
    text = MATMUL.replace("A(m, k) * B(k, n)", f"{value} where k in 0:29")
    work = work_of_text(text, floats(21, 50), floats(50, 20))
    own = NestOptions(chunk=(16, 16), threads=(8, 4), vectorize=(1, 4), tile=(0, 0, 8))
    cases = []
    for stage, buffers in product(((2, 2), (2, -1), (-1, 2)), (1, 2)):
        options = MappingOptions().with_nest(0, NestOptions(stage=stage, buffers=buffers).over(own))
        cases.append(case_of(work, options))
    check_cases(cases).none()


def test_a_row_of_a_window_is_read_once() -> None:
    """Results that are neighbours and the points of a window share what they read, also where
    windows move by two, where rows are ragged, and where nothing is staged."""
    cases = []
    for step, columns in ((1, 13), (2, 16)):
        text = (
            "def convolve(float(C, H, W) I, float(F, C, KH, KW) K) -> (O) {\n"
            f"    O(f, h, w) +=! I(c, h + kh, {step} * w + kw) * K(f, c, kh, kw)\n}}"
        )
        work = work_of_text(text, floats(3, 9, step * columns + 2), floats(5, 3, 3, 3))
        for stage, lanes, held in product(((1, -1), (1, 1), (-1, -1), (2, 2)), (1, 4), (1, 2)):
            own = NestOptions(
                chunk=(4, 4 * held, 16),
                threads=(1, 4, 4 if lanes == 4 else 16),
                register=(4, held, 1, 1 if stage[0] > 1 else 3, 3, 3),
                vectorize=(2, lanes),
                tile=(0, 0, 0, 1) if stage[0] > 1 else (),
                stage=stage,
            )
            cases.append(case_of(work, MappingOptions().with_nest(0, own)))
    check_cases(cases).none()


@pytest.mark.parametrize("device", [H200, T4], ids=["sm_90", "sm_75"])
def test_more_is_staged_than_registers_hold(device: GpuProfile) -> None:
    """Without asynchronous copies, a thread reads its part of the next panel to registers; not
    where these would have to be found by a number that is not known before."""
    work = work_of_text(COLUMNS, floats(45, 23))
    cases = []
    for threads, rows, buffers in product((2, 4, 32), (9, 33, 40), (2, 3)):
        own = NestOptions(
            chunk=(32,), threads=(threads,), tile=(0, rows), stage=(2,), buffers=buffers
        )
        cases.append(case_of(work, MappingOptions().with_nest(0, own), device))
    check_cases(cases).none()
    held = sum("_next[" in c.module.source for c in cases)
    assert device is H200 or 0 < held < len(cases)


def test_a_single_element_needs_no_panel() -> None:
    """There is no loop whose threads could fill it: nothing would order its being written."""
    text = "def scaled(float(N) A, float B) -> (C) { C +=! A(n) * B }"
    work = work_of_text(text, floats(45), floats())
    own = NestOptions(threads=(8,), tile=(16,), stage=(2, 2), buffers=3)
    with pytest.raises(OptionsError, match=r"^stage: .* operand 1, B: it is a single element$"):
        case_of(work, MappingOptions().with_nest(0, own))
    alone = NestOptions(stage=(2,)).over(own)
    check_cases([case_of(work, MappingOptions().with_nest(0, alone), d) for d in (H200, T4)]).none()


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_what_the_same_block_made_is_staged_after_all_have_made_it(buffers: int) -> None:
    text = "def f(float(M, N) A) -> (B, C) { B(m) max=! A(m, n)\n C(m) +=! A(m, n) * B(m) }"
    work = work_of_text(text, floats(45, 23))
    made = NestOptions(chunk=(16,), threads=(4, 8))
    reading = NestOptions(
        fuse=True, chunk=(16,), threads=(16, 2), tile=(0, 8), stage=(-1, 2), buffers=buffers
    )
    options = MappingOptions().with_nest(0, made).with_nest(1, reading)
    cases = [case_of(work, options, d) for d in (H200, T4)]
    assert all(len(c.module.launches) == 1 for c in cases)
    check_cases(cases).none()


@pytest.mark.parametrize("device", [H200, T4], ids=["sm_90", "sm_75"])
@pytest.mark.parametrize("buffers", [2, 3, 4])
def test_nothing_is_filled_for_iterations_that_are_not_run(
    device: GpuProfile, buffers: int
) -> None:
    """A chunk that is longer than its dimension: what is filled ahead for its end would still be
    on its way when the next row's fills begin."""
    text = "def f(float(C, H, K) A) -> (B) { B(c, h) +=! A(c, h, k) }"
    cases = []
    for rows, chunk in ((5, 10), (2, 8), (1, 4), (7, 7)):
        work = work_of_text(text, floats(3, rows, 24))
        own = NestOptions(
            chunk=(3, chunk), threads=(0, 0, 8), order=(0, 1, 2), stage=(3,), buffers=buffers
        )
        cases.append(case_of(work, MappingOptions().with_nest(0, own), device))
    check_cases(cases).none()


@pytest.mark.parametrize("layout", [("m, k", "n, k"), ("k, m", "n, k")], ids=["NT", "TT"])
@pytest.mark.parametrize(("k", "split"), [(48, 0), (48, 2), (44, 0), (45, 0)])
def test_panels_of_factors_in_order_along_the_reduction_are_transposed(
    layout: tuple[str, str], k: int, split: int
) -> None:
    """If neither factor is in order along the results that are. What is read in vectors is in
    registers on its way, and as many tiles are written out as there are buffers; single elements
    are copied asynchronously."""
    one, other = layout
    m, n = 150, 133
    sizes = {"m": m, "n": n, "k": k}
    shapes = ([sizes[d] for d in axes.split(", ")] for axes in layout)
    inputs = [floats(*shape) for shape in shapes]
    text = (
        f"def f(float({one.upper()}) A, float({other.upper()}) B) -> (C) "
        f"{{ C(m, n) +=! A({one}) * B({other}) }}"
    )
    options = NestOptions(
        chunk=(128, 128),
        threads=(16, 8),
        register=(8, 4),
        vectorize=(1, 4),
        tile=(0, 0, 8),
        stage=(2, 2),
        buffers=2,
        split=(0, 0, split),
    )
    work = work_of_text(text, *inputs)
    case = case_of(work, MappingOptions("naive").with_nest(0, options))
    assert ("B_tile_next" in case.module.source) == (k % 4 == 0)
    assert ("buffer < 2; ++buffer" in case.module.source) == (k % 4 == 0)
    assert "copy_async<4>" in case.module.source or k % 4 == 0
    check_cases([case]).none()
