"""The CPU backend: programs, layouts, checks and options against the reference."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import (
    BOTH,
    LANES,
    MATMUL,
    NAIVE,
    POISON,
    fenced_copy,
    plain,
    poisoned,
    reference,
    run,
    same_bits,
    sized_of,
)
from sampling import sampled
from strategies import numpy_type

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import PRESETS, MappingOptions

# Random programs with random options.


# Layouts.


@BOTH
def test_any_strides(options: MappingOptions) -> None:
    rng = np.random.default_rng(1)
    base = rng.random((20, 46))
    text = "def f(double(M, N) A, double(M, N) B) -> (O) { O(m, n) = A(m, n) - 2 * B(m, n) }"
    views = [
        base[:, ::2], base[::-1, :23], base[:, 45:22:-1], base.T[:20, :20][:, :1].repeat(23, 1),
        np.broadcast_to(base[0, :23], (20, 23)), np.broadcast_to(base[:, :1], (20, 23)),
        rng.random((23, 20)).T,
    ]  # fmt: skip
    for a in views:
        for b in (views[0], views[6]):
            (got,) = run(text, a, b, options=options)
            np.testing.assert_array_equal(got, a - 2 * b)


@BOTH
def test_strided_outputs_leave_the_rest_alone(options: MappingOptions) -> None:
    a = np.arange(12 * 10, dtype=np.float32).reshape(12, 10)
    sized = sized_of("def f(float(M, N) A) -> (O) { O(n, m) = A(m, n) + 1 }", a)
    backing = np.full((30, 40), -POISON, np.float32)
    for view in (backing[::3, 3:15], backing[9::-1, 24:0:-2], backing[:24:2, :10].T):
        backing[:] = -POISON
        kernel = compile_cpu(sized, options, strides={"O": view.strides})
        kernel([a], [view])
        np.testing.assert_array_equal(view, a.T + 1)
        assert (backing == -POISON).sum() == backing.size - view.size


RAGGED = ["int8", "uint16", "int64", "float16", "bfloat16", "bool", "float32", "float64"]


@pytest.mark.parametrize(
    ("masks", "rows", "name"), sampled(product([True, False], [1, 3], RAGGED), 3)
)
def test_ragged_ends_touch_nothing_behind_them(name: str, rows: int, masks: bool) -> None:
    """Every number of lanes that may be left over, next to memory that must stay as it is: the
    least and the most for all types, and each of the others for some of them."""
    device = replace(host_cpu(), features=host_cpu().features if masks else "", threads=1)
    rng = np.random.default_rng(3)
    text = f"def f({name}(M, N) A) -> (O) {{ O(m, n) = A(m, n)  O(m, n) max= A(m, n) }}"
    for lanes in (2, 8, 16):
        for left in {1, lanes - 1, *range(2 + RAGGED.index(name) % 4, lanes, 4)}:
            a = rng.integers(0, 2, (5, lanes + left)).astype(numpy_type(name))
            sized = sized_of(text, a)
            options = NAIVE.vectorize(lanes).register(rows, 2)
            strides = {"O": ((lanes + left + 3) * a.itemsize, a.itemsize)}
            kernel = compile_cpu(sized, options, strides=strides, device=device)
            backing = np.full((7, lanes + left + 3), 1, a.dtype)
            expected = backing.copy()
            expected[:5, : lanes + left] = a
            kernel([a], [backing[:5, : lanes + left]])
            np.testing.assert_array_equal(backing, expected, err_msg=f"{lanes} {left}")


# Run-time checks and guards.


@BOTH
@pytest.mark.parametrize("bad", [12, -1, 10, 2**31 - 1])
def test_an_index_out_of_range_is_reported(bad: int, options: MappingOptions) -> None:
    lut = np.arange(10, dtype=np.float32)
    index = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] * 2, np.int32)
    text = "def f(float(N) LUT, int32(B) I) -> (O) { O(b) = LUT(I(b)) }"
    np.testing.assert_array_equal(run(text, lut, index, options=options)[0], lut[index])
    index[13] = bad
    message = f"index {bad} is out of range for dimension 0 of tensor LUT, which has indices 0 to 9"
    with pytest.raises(IndexError) as caught:
        run(text, lut, index, options=options)
    assert str(caught.value) == message
    with pytest.raises(IndexError) as expected:
        reference(text, lut, index)
    assert str(expected.value) == message


@BOTH
@pytest.mark.parametrize("type_", ["int8", "uint8", "uint16", "int64"])
@pytest.mark.parametrize("place", [3, 34])
def test_an_index_out_of_range_among_others(
    place: int, type_: str, options: MappingOptions
) -> None:
    rows = np.arange(3 * 10, dtype=np.float32).reshape(3, 10)
    index = (np.arange(35) % 10).astype(type_)
    text = f"def f(float(M, N) X, {type_}(B) I) -> (O) {{ O(m, b) = X(m, I(b)) }}"
    np.testing.assert_array_equal(run(text, rows, index, options=options)[0], rows[:, index])
    index[place] = 100
    with pytest.raises(IndexError, match="index 100 is out of range for dimension 1 of tensor X"):
        run(text, rows, index, options=options)


@pytest.mark.parametrize("name", ["naive", "pointwise", "mlp", "conv"])
def test_a_condition_on_a_result_of_no_elements(name: str) -> None:
    text = "def f(int32(N) K) -> (C) { C(b) +=! b < 3 ? K(i) : 0 where b in 0:0 }"
    (made,) = run(text, np.ones(8, np.int32), options=MappingOptions(name))
    assert made.shape == (0,)


@pytest.mark.parametrize("name", ["naive", "pointwise", "mlp", "conv"])
def test_differences_of_one_element(name: str) -> None:
    """The range that two reads leave is empty, as that of NumPy's slices is."""
    text = """def f(float(T, D) X) -> (O, S) {
        O(t, d) = X(t + 1, d) - X(t, d)
        S(d) +=! O(t, d)
    }"""
    x = np.ones((1, 3), np.float32)
    o, s = run(text, x, options=MappingOptions(name))
    assert o.shape == (x[1:] - x[:-1]).shape
    np.testing.assert_array_equal(s, o.sum(axis=0))


@BOTH
def test_huge_and_empty(options: MappingOptions) -> None:
    text = "def f(float(N) L, uint64(B) I) -> (O) { O(b) = L(I(b)) }"
    index = np.full(11, 2**64 - 1, np.uint64)
    with pytest.raises(IndexError, match=f"index {2**64 - 1} .* indices 0 to 4"):
        run(text, np.ones(5, np.float32), index, options=options)
    with pytest.raises(IndexError, match="tensor L, which is empty"):
        run(text, np.ones(0, np.float32), index, options=options)
    assert run(text, np.ones(0, np.float32), index[:0], options=options)[0].shape == (0,)


@BOTH
def test_a_guard_protects_data_dependent_reads(options: MappingOptions) -> None:
    lut = np.arange(10, dtype=np.float32)
    index = np.array([3, -5, 99, 0, 9, 10, -1, 4, 5, 2**31 - 1, -(2**31), 1], np.int32)
    text = """def f(float(N) L, int32(B) I) -> (O, P) {
        O(b) = (I(b) >= 0 && I(b) < N) ? L(I(b)) : 0 - 1.0
        P(b) = (I(b) < 0 || I(b) >= N || L(I(b)) > 4.0) ? 1.0 : 2.0
    }"""
    inside = (index >= 0) & (index < 10)
    o, p = run(text, lut, index, options=options)
    values = lut[np.clip(index, 0, 9)]
    np.testing.assert_array_equal(o, np.where(inside, values, -1))
    np.testing.assert_array_equal(p, np.where(~inside | (values > 4), 1, 2))


@pytest.mark.parametrize(
    ("op", "name"),
    sampled(product(["+", "*", "min", "max"], ["float32", "float64", "int32", "float16"]), 3),
)
def test_what_a_guard_leaves_out_is_not_reduced(op: str, name: str) -> None:
    """Guards along the lanes and across them, of what may not be there or is not finite."""
    start = {"+": "0", "*": "1", "min": "1000", "max": "0 - 1000"}[op]
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, (9, 21)).astype(numpy_type(name))
    w, mask = rng.integers(0, 2, (21, 19)), rng.integers(0, 2, (21, 19)).astype(np.uint8)
    weights = w.astype(numpy_type(name))
    if "float" in name:
        weights[mask == 0] = np.inf
    text = f"""def f({name}(M, K) A, {name}(K, N) W, uint8(K, N) Mask)
        -> ({name}(M, N) O, {name}(M, N) P) {{
        O(m, n) {op}=! Mask(k, n) == 1 ? {name}(A(m, k) * W(k, n)) : {name}({start})
        P(m, n) {op}=! (n + k - 9 >= 0 && n + k - 9 < K) ? A(m, n + k - 9) : {name}({start})
            where n in 0:N, k in 0:K
    }}"""
    expected = reference(text, a, weights, mask)
    for options in [
        NAIVE, NAIVE.vectorize(8).register(2, 2), NAIVE.vectorize(8, 0).register(1, 3),
        NAIVE.vectorize(4, 2).register(2, 1, 2), NAIVE.vectorize(16).register(2, 1).tile(3, 0, 5),
    ]:  # fmt: skip
        for got, want in zip(run(text, a, weights, mask, options=options), expected, strict=True):
            np.testing.assert_array_equal(plain(got), plain(want), err_msg=str(options))


def test_a_guard_that_lanes_share_is_a_mask() -> None:
    """LLVM makes a branch of a scalar that chooses between vectors, around each instruction."""
    text = """def f(float(M, K) A, float(K, N) W, uint8(M, K) Mask) -> (O, P) {
        O(m, n) +=! Mask(m, k) == 1 ? A(m, k) * W(k, n) : 0.0
        P(m, n) = Mask(m, 0) == 1 ? W(0, n) : O(m, n)
    }"""
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(5, 9)).astype("f"), rng.normal(size=(9, 32)).astype("f")
    mask = rng.integers(0, 2, (5, 9)).astype(np.uint8)
    a[mask == 0] = np.nan
    sized = sized_of(text, a, w, mask)
    source = compile_cpu(sized, NAIVE.vectorize(16).register(2, 2)).llvm
    assert "select <16 x i1>" in source and "select i1" not in source
    got = run(text, a, w, mask, options=NAIVE.vectorize(16).register(2, 2))
    o = np.where(mask, a, 0) @ w
    np.testing.assert_allclose(got[0], o, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(got[1], np.where(mask[:, :1] == 1, w[:1], got[0]))


@BOTH
def test_unchecked_leaves_the_checks_out(options: MappingOptions) -> None:
    lut, index = np.arange(10.0), np.arange(9, -1, -1, dtype=np.int32)
    text = "def f(double(N) L, int32(B) I) -> (O) { O(b) = L(I(b)) }"
    sized = sized_of(text, lut, index)
    assert "tcl_fail" in compile_cpu(sized, options).llvm
    assert "tcl_fail" not in compile_cpu(sized, options, unchecked=True).llvm
    (got,) = run(text, lut, index, options=options, unchecked=True)
    np.testing.assert_array_equal(got, lut[::-1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
@pytest.mark.parametrize("width", [1, 4, 16])
def test_nothing_outside_is_touched(width: int) -> None:
    """Padding by guards, forwards and backwards, by lanes: a stray read would end the process."""
    text = """def f(float(N) A, int8(N) B) -> (O, P, Q, R) {
        O(i) = (i - 3 >= 0 && i - 3 < N) ? A(i - 3) : 0.0 where i in 0:N + 6
        P(i) = (2 - i >= 0 && 2 - i < N) ? A(2 - i) : 0.0 where i in 0:N + 6
        Q(i) = (2 * i - 5 >= 0 && 2 * i - 5 < N) ? B(2 * i - 5) : int8(1) where i in 0:N + 6
        R(i) +=! (i + k - 2 >= 0 && i + k - 2 < N) ? A(i + k - 2) : 0.0 where i in 0:N, k in 0:5
    }"""
    a, b = np.arange(1, 38, dtype=np.float32), np.arange(37, dtype=np.int8)
    expected, sized = reference(text, a, b), sized_of(text, a, b)
    kernel = compile_cpu(sized, MappingOptions().vectorize(width))
    for after in (False, True):
        got = poisoned(sized)
        kernel([fenced_copy(a, after), fenced_copy(b, after)], got)
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_allclose(x, y)


# Statements and schedules.


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 5), (0, 3, 5), (17, 31, 13), (33, 64, 50)])
@pytest.mark.parametrize("initialise", ["!", ""])
def test_matrix_products(shape: tuple[int, int, int], initialise: str) -> None:
    m, n, k = shape
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in [(m, k), (k, n)])
    text = MATMUL.replace("!", initialise)
    base = 0 if initialise else POISON
    for options in [
        *map(MappingOptions, PRESETS), NAIVE.tile(8, 16, 5).vectorize(4),
        NAIVE.tile(8, 16, 5).order(2, 1, 0).vectorize(16, 0), NAIVE.inner_order(2, 0, 1),
        NAIVE.tile(5, 7, 3).order(1, 2, 0).inner_order(2, 1, 0).vectorize(8),
    ]:  # fmt: skip
        (got,) = run(text, a, b, options=options)
        np.testing.assert_array_equal(got, base + a @ b, err_msg=str(options))


@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float32", "float16", "bool"])
def test_reductions_start_from_the_identity(op: str, name: str) -> None:
    if name == "bool" and op in "+*":
        pytest.skip("sums of bools are int32")
    for columns in (0, 1, 9):
        a = np.random.default_rng(3).integers(0, 3, (10, columns)).astype(numpy_type(name))
        text = f"def f({name}(M, N) A) -> ({name}(M) O) {{ O(m) {op}=! A(m, n) }}"
        for options in (NAIVE, LANES, NAIVE.tile(3, 2).order(1, 0)):
            (got,) = run(text, a, options=options)
            assert same_bits(got, reference(text, a)[0]), (columns, options)


def test_lets_do_not_multiply() -> None:
    lets = ", ".join(f"x{k} = x{k - 1} + x{k - 1}" for k in range(1, 60))
    text = f"def f(double(N) A) -> (O) {{ O(i) = x59 where x0 = A(i), {lets} }}"
    a = np.arange(1.0, 12)
    np.testing.assert_array_equal(run(text, a, options=LANES)[0], a * 2.0**59)


def test_lets_in_subscripts() -> None:
    text = """def f(float(N) A) -> (O, P) {
        O(i) = A(y - x) where i in 0:N, x = i * 200000000, y = x + i
        P(i) = A(2 * h + i % 2) where i in 0:N, h = i / 2
    }"""
    a = np.arange(9, dtype=np.float32)
    for got in run(text, a, options=LANES):
        np.testing.assert_array_equal(got, a)


def test_deep_expressions() -> None:
    sums = " + ".join(["A(i)"] * 150)
    text = f"def f(double(N) A) -> (O) {{ O(i) = {sums} }}"
    a = np.arange(9.0)
    np.testing.assert_array_equal(run(text, a, options=LANES)[0], 150 * a)
