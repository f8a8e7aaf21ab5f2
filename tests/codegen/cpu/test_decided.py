"""Conditions that are known where points are written out."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import run, sized_of

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.emit.repeats import stoppable_repeat
from tcl.codegen.cpu.llvm.arith import settled
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule


@pytest.mark.parametrize("type_", ["uint8", "int8", "int16", "uint32", "int64"])
def test_conditions_of_points_that_are_written_out_are_decided(type_: str) -> None:
    last = "255" if type_ == "uint8" else "-1"
    text = f"""def f({type_}(4, N) A) -> (O) {{
        O(i, n) = {type_}(i - 1) == {type_}({last}) || {type_}(i) % 2 == 1 && !(i < 2) ? A(i, n) * 3
        : i != 1 ? A(i, n) : {type_}(4 - i) where i in 0:4 }}"""
    array = np.arange(4 * 37).reshape(4, 37).astype(type_)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 16), register=(4, 0)),))
    check_cpu(sized_of(text, array), [array], options)
    source = emit_program(schedule(sized_of(text, array), options, host_cpu()), host_cpu()).text
    assert "br i1 true" not in source
    assert "br i1 false" not in source
    assert not re.search(r"icmp \w+ i\d+ -?\d+, -?\d", source)


@pytest.mark.parametrize(
    "condition",
    ["uint32(i - 5) < 300", "uint64(i) - 5 < 300", "-uint32(i) < 9", "uint32(i - 5) >= 300"],
)
def test_indices_that_are_unsigned_wrap_below_zero(condition: str) -> None:
    x = np.arange(1, 321, dtype=np.float32)
    text = f"""def f(float(320) X) -> (O, P) {{
        O(i) = X({condition} ? i : 2) where i in 0:320
        P(n) +=! {condition} ? X(i) : 0 where i in 0:320, n in 0:3 }}"""
    for options in (MappingOptions("naive"), MappingOptions("mlp")):
        check_cpu(sized_of(text, x), [x], options)


def test_unsigned_numbers_that_are_known_have_no_sign() -> None:
    text = "def f(uint8(4) X) -> (O) { O(m) +=! uint8(n - 3) > 1 ? 7 : 2 where m in 0:4, n in 0:7 }"
    x = np.zeros(4, np.uint8)
    (found,) = run(text, x, options=MappingOptions("mlp"))
    assert found.tolist() == [5 * 7 + 2 * 2] * 4  # of -3, -2 and -1, and 5 and 6


def _branches(text: str, *arrays: np.ndarray) -> tuple[str, list[str]]:
    """A def's default on Zen 4, and the conditions by which its branches go on, but for those that
    end loops and those of subscripts outside of tensors."""
    device = find("zen 4")
    assert device is not None
    found = emit_program(
        schedule(sized_of(text, *arrays), MappingOptions("mlp"), replace(device, threads=1)), device
    ).text
    kernel = found[found.index("define i32 @tcl_kernel") : found.index("define i32 @tcl_alone")]
    return kernel, re.findall(r"br i1 (%v\d+), label %(?!fail)(?!body)", kernel)


def test_a_loop_asks_once_whether_it_changes_anything() -> None:
    """Of all the results in its registers, and of which data decide where they are read."""
    rng = np.random.default_rng(0)
    x, weights = (rng.integers(-9, 10, s).astype(np.float32) for s in ((9, 64), (5, 64, 48)))
    chosen = rng.integers(-1, 5, 9).astype(np.int32)
    text = """def f(float(T, D) X, int32(T) J, float(L, D, F) W) -> (O) {
        O(t, f) +=! J(t) >= 0 ? X(t, d) * W(J(t), d, f) : 0 }"""
    kernel, branches = _branches(text, x, chosen, weights)
    assert len(branches) == 1
    assert kernel.count("@tcl_fail") < kernel.count("fmuladd")
    (made,) = run(text, x, chosen, weights)
    every = np.einsum("td,tdf->tf", x, weights[chosen])
    assert np.array_equal(made, np.where(chosen[:, None] >= 0, every, 0))


STRIDED = """def f(float(C, H, W) X, float(C, O, 3, 3) K) -> (Y) {
    Y(o, y, x) +=! (v >= 0 && u >= 0 && v % 2 == 0 && u % 2 == 0 && v / 2 < H && u / 2 < W)
        ? X(c, v / 2, u / 2) * K(c, o, ky, kx) : 0
    where y in 0:2 * H, x in 0:2 * W, v = y + 1 - ky, u = x + 1 - kx }"""


def test_a_loop_leaves_out_the_rows_that_a_divided_index_does_not_take() -> None:
    """Of a transposed convolution, whose lanes are filters: half of the rows, and of the columns,
    each asked for before the loops in which it stays the same."""
    rng = np.random.default_rng(0)
    x, taps = (rng.integers(-9, 10, s).astype(np.float32) for s in ((5, 7, 6), (5, 16, 3, 3)))
    kernel, branches = _branches(STRIDED, x, taps)
    assert kernel.count("!unpredictable") == 2 and len(branches) == 2
    (made,) = run(STRIDED, x, taps)
    expected = np.zeros((16, 16, 14), np.float32)
    for ky, kx in product(range(3), range(3)):
        expected[:, ky : ky + 14 : 2, kx : kx + 12 : 2] += np.einsum(
            "chw,co->ohw", x, taps[:, :, ky, kx]
        )
    assert np.array_equal(made, expected[:, 1:15, 1:13])


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("i % 2 == 0 && j != i + k", 1),  # a part of it
        ("(i + j) % 2 == 0 && j != k", 0),  # which changes inside of each loop
        ("i < 3 && j != k", 0),  # loops end there
        ("i % 2 == 0 && A(i, 0) > 0 && j != k", 1),  # and nothing that data decide
    ],
)
def test_a_part_of_a_condition_is_asked_for_before_loops(condition: str, count: int) -> None:
    a, b = np.ones((9, 20), np.float32), np.ones((20, 32), np.float32)
    text = f"""def f(float(N, K) A, float(K, M) B) -> (O) {{
        O(i, j) +=! ({condition}) ? A(i, k) * B(k, j) : 0 }}"""
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),))
    program = schedule(sized_of(text, a, b), options, replace(host_cpu(), threads=1))
    source = emit_program(program, host_cpu()).text
    source = source[source.index("define i32 @tcl_kernel") : source.index("define i32 @tcl_alone")]
    assert source.count("!unpredictable") == count
    check_cpu(sized_of(text, a, b), [a, b], options)


def test_a_scatter_asks_once_whether_a_point_counts() -> None:
    """What its place depends on is read there alone."""
    rng = np.random.default_rng(0)
    day, product = (rng.integers(0, n, 999).astype(np.int32) for n in (7, 40))
    brand, price = rng.integers(0, 5, 40).astype(np.int32), rng.integers(-9, 9, 999)
    text = """def f(int32(N) Day, int32(N) Product, int32(P) Brand, int64(N) Price, float(G) Like)
        -> (int64(7, G) O) { O(Day(n), Brand(Product(n))) +=! Price(n) > 0 ? Price(n) : 0 }"""
    inputs = day, product, brand, price.astype(np.int64), np.zeros(5, np.float32)
    kernel, branches = _branches(text, *inputs)
    assert len(set(branches)) == len(branches)
    assert "!unpredictable" in kernel, "one branch for all of the condition"
    (made,) = run(text, *inputs)
    expected = np.zeros((7, 5), np.int64)
    np.add.at(expected, (day, brand[product]), np.maximum(price, 0))
    assert np.array_equal(made, expected)


def test_what_a_scatter_computes_of_floats_comes_after_its_condition() -> None:
    """And what it reads before."""
    text = """def f(float(N) X, int32(N) Y, uint8(N) G) -> (float(9, 256) C) {
        C(int32(X(n) * 8), G(n)) +=! Y(n) > 0 ? exp(X(n)) : 0 }"""
    kernel, _ = _branches(text, np.zeros(99, "f"), np.zeros(99, "i"), np.zeros(99, np.uint8))
    branch = kernel.index("!unpredictable")
    assert kernel.index("fptosi") > branch > kernel.index("zext i8")


@pytest.mark.parametrize("value", ["Price(n)", "1", "Price(n) * 2 + Day(n)"])
def test_an_update_that_may_be_made_in_vain_needs_no_branch(value: str) -> None:
    """Where it does not count, no place is touched, nor checked."""
    rng = np.random.default_rng(1)
    day, price = rng.integers(-9, 99, 999, np.int32), rng.integers(-9, 9, 999)
    text = f"""def f(int32(N) Day, int64(N) Price, float(D) Like) -> (int64(D) O) {{
        O(Day(n)) +=! (Price(n) > 0 && Day(n) >= 5 && Day(n) < 40) ? {value} : 0 }}"""
    inputs = day, price.astype(np.int64), np.zeros(40, np.float32)
    kernel, branches = _branches(text, *inputs)
    assert not branches and "unpredictable" in kernel
    (made,) = run(text, *inputs)
    every = {"Price(n)": price, "1": np.ones(999), "Price(n) * 2 + Day(n)": price * 2 + day}
    counts, expected = (price > 0) & (day >= 5) & (day < 40), np.zeros(40, np.int64)
    np.add.at(expected, day[counts], every[value][counts].astype(np.int64))
    assert np.array_equal(made, expected)
    wrong = text.replace("&& Day(n) < 40", "&& Day(n) < 90")
    with pytest.raises(IndexError, match="tensor O, which has indices 0 to 39"):
        run(wrong, *inputs)


def test_what_indices_decide_of_an_update_is_a_branch() -> None:
    """It is foreseen, and leaves out what does not count; what data decide is none."""
    x = np.random.default_rng(1).random(150, np.float32)
    text = """def f(float(N) X) -> (int32(30) H) {
        H(int32(30 * fabs(X(i) - X(j)))) +=! i < j && X(j) < 0.5 ? 1 : 0 }"""
    kernel, _ = _branches(text, x)
    assert "unpredictable" in kernel
    (made,) = run(text, x)
    i, j = np.triu_indices(len(x), 1)
    place = (np.float32(30) * np.abs(x[i] - x[j]))[x[j] < 0.5].astype(np.int32)
    assert np.array_equal(made, np.bincount(place, minlength=30))
    with pytest.raises(IndexError, match="tensor H, which has indices 0 to 9"):
        run(text.replace("int32(30) H", "int32(10) H"), x)


def test_what_data_decide_of_a_sum_without_lanes_is_no_branch() -> None:
    """LLVM would make one, as it takes a condition of what was just read to wait for memory."""
    rng = np.random.default_rng(1)
    # Of rows of 33, several would be lanes.
    x, border = rng.random((70, 1033), np.float32), rng.random((9, 6), np.float32)
    asked, worth = rng.integers(0, 255, (9, 6)).astype(np.uint8), np.arange(6, dtype=np.int32)
    text = """def f(float(N, F) X, uint8(T, 6) J, float(T, 6) B, int32(6) W) -> (P) {
        P(n, t) +=! X(n, J(t, d)) > B(t, d) ? W(d) : 0 }"""
    kernel, branches = _branches(text, x, asked, border, worth)
    assert not branches and " x i32> " not in kernel
    assert re.search(r"select i1 .*, i32 .*!unpredictable", kernel)
    (made,) = run(text, x, asked, border, worth)
    assert np.array_equal(made, ((x[:, asked] > border) * worth).sum(-1))


@pytest.mark.parametrize(
    ("condition", "chosen"), [("G(n)", False), ("Day(n) < 40", True), ("day < 40 && G(n)", True)]
)
def test_a_place_is_chosen_by_a_condition_of_the_same_data_alone(
    condition: str, chosen: bool
) -> None:
    """Of other data, it is nearly always inside: a branch asks, and then one for the condition."""
    rng = np.random.default_rng(1)
    day, counts = rng.integers(0, 50, 999, np.int32), rng.integers(0, 2, 999).astype(bool)
    text = f"""def f(int32(N) Day, uint8(N) Kind, bool(N) G, float(D) Like) -> (int32(D, 1) O) {{
        O(day, Kind(n)) +=! {condition} ? 1 : 0 where day = Day(n) }}"""
    counts &= day < 40
    inputs = day, np.zeros(999, np.uint8), counts, np.zeros(40, np.float32)
    kernel, branches = _branches(text, *inputs)
    selects = [line for line in kernel.splitlines() if "!unpredictable" in line]
    assert not branches and any(", i64 " in line for line in selects) == chosen
    (made,) = run(text, *inputs)
    expected = counts if "G" in condition else day < 40
    assert np.array_equal(made[:, 0], np.bincount(day[expected], minlength=40))


@pytest.mark.parametrize(("limit", "asked"), [(89, False), (88, True), (0, False), (1, True)])
def test_conditions_of_places_in_loops_are_decided_by_the_ends_of_these(
    limit: int, asked: bool
) -> None:
    """Of the rows of an image, in loops, as in the parts of a histogram."""
    found = _branches(
        f"def f(float(N, D) X) -> (O) {{ O(n, d) = n < {limit} ? exp(X(n, d)) : X(n, d) }}",
        np.empty((89, 64), "f"),
    )[0]
    assert bool(re.search(f"icmp slt .*, {limit}$", found, re.MULTILINE)) == asked


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_of_intervals(op: str) -> None:
    intervals = [(low, high) for low in range(4) for high in range(low, 4)]
    for left, right in product(intervals, repeat=2):
        every = {
            eval(f"{x} {op} {y}")
            for x in range(left[0], left[1] + 1)
            for y in range(right[0], right[1] + 1)
        }
        known = settled(op, left, right)
        assert known is None or every == {known}
        assert (known is None) == (len(every) == 2) or left == right


@pytest.mark.parametrize(("end", "step", "most"), [(96, 8, 88), (97, 8, 96), (5000000, 8, 4999992)])
def test_the_ends_of_loops(end: int, step: int, most: int) -> None:
    """Long ones are done in stretches, with looks whether to go on between them."""
    b, found = Builder(), list[tuple[int, int] | None]()

    def each(own: Val) -> None:
        found.append(b.interval(own))

    stoppable_repeat(b, Val(str(end), "i64"), step, end // step, 9, each, empty=False)
    assert found == [(0, most)]


def test_what_a_branch_has_decided_is_known_until_its_ways_meet() -> None:
    b, condition = Builder(), Val("%c", "i1")
    b.branch_if(condition, "then", "otherwise")
    b.start("then")
    assert b.settled(condition).text == "true"
    b.branch("after")
    b.start("otherwise")
    assert b.settled(condition).text == "false"
    b.branch("after")
    b.start("after")
    assert b.settled(condition) == condition
    b.branch_if(condition, "once more", "behind")
    b.start("once more")
    b.branch("behind")
    b.start("behind")
    assert b.settled(condition) == condition


def test_a_side_without_statements() -> None:
    """Sums of rows and of columns in one pass, of which the last iterations alone write some."""
    p = np.random.default_rng(1).random((512, 512), np.float32)
    text = "def f(float(N, M) P) -> (R, C) { R(i) +=! P(i, j) C(j) +=! P(i, j) }"
    rows, columns = run(text, p, options=MappingOptions("mlp"))
    np.testing.assert_allclose(rows, p.sum(1), rtol=1e-4)
    np.testing.assert_allclose(columns, p.sum(0), rtol=1e-4)
