"""Calls that are like the one before take a short way; nothing of what is promised gets lost."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from at_once import at_once
from cpu_kernels import MATMUL, NAIVE, Array, sized_of

import tcl
from tcl.arrays import libraries, likeness
from tcl.codegen.cpu.run.launch import _public
from tcl.common.errors import ArgumentError
from tcl.executors import call_kernels as kernels
from tcl.executors.executor import Executor

LUT = "def lut(float(R, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }"
TWO = "def two(float(N) X) -> (Y, Z) { Y(i) = X(i) + 1  Z(i) = X(i) + 2 }"
BYTES = "def b(int8(N) X) -> (Y) { Y(i) = X(i) + X(i) }"
ADD = "def accumulate(float(N) X) -> (S) { S(n) += X(n) }"


@pytest.fixture(params=["native", "direct", "public"], autouse=True)
def _all_ways_to_an_address(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compared natively; by Python, which reads addresses from memory; and asks NumPy for them."""
    assert likeness.numpy_alike() is not None
    if request.param != "native":
        monkeypatch.setattr(libraries, "numpy_alike", lambda: None)
    if request.param == "public":
        monkeypatch.setattr(libraries, "DIRECT", False)
        monkeypatch.setattr(libraries, "address_of", _public)


def rand(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, np.float32)


def warm(m: int = 5, k: int = 6, n: int = 7) -> tuple[Executor, Array, Array]:
    a, b = rand(m, k), rand(k, n)
    executor = Executor(sized_of(MATMUL, a, b), NAIVE)
    executor(a, b)
    return executor, a, b


def test_the_short_way_is_taken(taken: list[bool]) -> None:
    executor, a, b = warm()
    c = np.empty((5, 7), np.float32)
    assert executor(a, b, outputs=(c,)) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    other = rand(5, 6) + 1  # its values and its place are its own
    assert executor(other, b, outputs=[c]) is c
    np.testing.assert_allclose(c, other @ b, rtol=1e-5)
    fresh = executor(a, b)
    assert fresh is not c
    np.testing.assert_allclose(fresh, a @ b, rtol=1e-5)
    assert taken == [True] * 3
    assert executor(a, b, outputs=(c,), unchecked=True) is c  # a kernel of its own
    assert executor(a, b, outputs=(c,), unchecked=True) is c
    assert taken == [True] * 4


def test_again_does_nothing_for_a_call_that_is_not_alike() -> None:
    executor, a, b = warm()
    c = np.full((5, 7), -1, np.float32)
    assert executor.again((a.T, b), (c,), False) is None
    assert executor.again((a, b), (c,), True) is None  # nothing ran unchecked before
    assert executor.again((a,), (c,), False) is None
    assert (c == -1).all()
    assert executor.again((a, b), (c,), False) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    new = Executor(executor.sized, NAIVE)
    assert new.again((a, b), (c,), False) is None


def test_several_outputs() -> None:
    x = rand(9)
    executor = Executor(sized_of(TWO, x), NAIVE)
    y, z = np.zeros(9, np.float32), np.zeros(9, np.float32)
    for _ in range(3):
        for results in (executor(x), executor(x, outputs=(y, z))):
            assert isinstance(results, tuple)
            np.testing.assert_array_equal(results[0], x + 1)
            np.testing.assert_array_equal(results[1], x + 2)
    with pytest.raises(ArgumentError, match="overlaps output 'Y'"):
        executor(x, outputs=(y, y))
    with pytest.raises(ArgumentError, match="2 outputs"):
        executor(x, outputs=(y,))
    both = np.zeros(18, np.float32)
    executor(x, outputs=(both[:9], both[9:]))  # side by side
    np.testing.assert_array_equal(both, np.concatenate([x + 1, x + 2]))
    with pytest.raises(ArgumentError, match="overlaps output 'Y'"):
        executor(x, outputs=(both[:9], both[8:17]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a, b, c: (a, b, (c[:, ::-1].astype("d"),)), "array of float64 was given"),
        (lambda a, b, c: (a, b, (c[:4],)), "has shape"),
        (lambda a, b, c: (a, b, (c, c)), "outputs= has 2"),
        (lambda a, b, c: (a, b, ()), "outputs= has 0"),
        (lambda a, b, c: (a, b, ([1.0],)), "has to be a NumPy array, not list"),
        (lambda a, b, c: (a, b, (np.broadcast_to(c[:1], c.shape),)), "read-only"),
        (lambda a, b, c: (a, b, (a.reshape(-1)[: c.size].reshape(c.shape),)), "overlaps input 'A'"),
        (lambda a, b, c: (a[:4], b, (c,)), "in this executor"),
        (lambda a, b, c: (a.astype("d"), b, (c,)), "convert it with"),
        (lambda a, b, c: (a.astype(">f4"), b, (c,)), "foreign byte order"),
        (lambda a, b, c: (a.tolist(), b, (c,)), "not list"),
        (lambda a, b, c: (a, b, c[0], (c,)), "takes 2 inputs"),
        (lambda a, b, c: (a, (c,)), "takes 2 inputs"),
    ],
)
def test_what_does_not_fit_is_refused_as_before(change: Any, sentence: str) -> None:
    executor, a, b = warm(6, 7, 7)
    c = np.zeros((6, 7), np.float32)
    executor(a, b, outputs=(c,))
    *inputs, outputs = change(a, b, c)
    for _ in range(2):
        with pytest.raises(ArgumentError) as caught:
            executor(*inputs, outputs=outputs)
        assert sentence in str(caught.value)
    assert executor(a, b, outputs=(c,)) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_an_output_that_was_made_read_only() -> None:
    executor, a, b = warm()
    c = np.zeros((5, 7), np.float32)
    executor(a, b, outputs=(c,))
    c.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        executor(a, b, outputs=(c,))
    assert executor(a, b) is not c


def test_an_array_that_moved() -> None:
    """The address is read at every call."""
    x = np.arange(4, dtype=np.float32)
    executor = Executor(sized_of(TWO, x), NAIVE)
    executor(x)
    x.resize(1 << 20, refcheck=False)
    x.resize(4, refcheck=False)
    results = executor(x)
    np.testing.assert_array_equal(results[0], [1, 2, 3, 4])


def test_other_strides_between_calls() -> None:
    executor, a, b = warm(6, 6, 6)
    for _ in range(3):
        for x, y in ((a, b), (a.T, b), (a, b[::-1]), (np.asfortranarray(a), b.T)):
            np.testing.assert_allclose(executor(x, y), x @ y, rtol=1e-5)


def test_interleaved_is_not_overlapping() -> None:
    both = np.zeros(20, np.float32)
    both[::2] = rand(10)
    x, y, z = both[::2], both[1::2], np.zeros(10, np.float32)
    executor = Executor(sized_of(TWO, x), NAIVE)
    for _ in range(3):
        executor(x, outputs=(y, z))
        np.testing.assert_array_equal(y, x + 1)


def test_misaligned_memory() -> None:
    executor, a, b = warm()
    raw = np.zeros(a.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(a.shape)
    raw[...] = a
    np.testing.assert_allclose(executor(raw, b), a @ b, rtol=1e-5)
    out = np.zeros(4 * 35 + 1, np.uint8)[1:].view(np.float32).reshape(5, 7)
    with pytest.raises(ArgumentError, match="not aligned"):
        executor(a, b, outputs=(out,))


def test_bytes_anywhere(taken: list[bool]) -> None:
    memory = np.arange(40, dtype=np.int8)
    executor = Executor(sized_of(BYTES, memory[:8]), NAIVE)
    for start in range(4):
        x = memory[start : start + 8]
        np.testing.assert_array_equal(executor(x, outputs=(np.empty(8, np.int8),)), x + x)
    assert taken == [True] * 3


def test_subclasses_and_scalars() -> None:
    executor, a, b = warm()
    np.testing.assert_allclose(executor(a.view(np.matrix), b), a @ b, rtol=1e-5)
    scale = Executor(
        sized_of("def s(float(N) X, float a) -> (Y) { Y(i) = a * X(i) }", a[0], np.array(1.0)),
        NAIVE,
    )
    for factor in (2.0, np.float32(3), 4, np.array(5, np.float32)):
        np.testing.assert_allclose(scale(a[0], factor), a[0] * np.float32(factor))


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1)])
def test_empty_and_single(shape: tuple[int, int, int]) -> None:
    executor, a, b = warm(*shape)
    for _ in range(3):
        np.testing.assert_allclose(executor(a, b), a @ b, rtol=1e-5)
        c = np.full((shape[0], shape[2]), 9, np.float32)
        np.testing.assert_allclose(executor(a, b, outputs=(c,)), a @ b, rtol=1e-5)


def test_subscripts_are_checked_at_every_call() -> None:
    table, good, bad = rand(10, 4), np.array([0, 9], np.int32), np.array([3, 10], np.int32)
    executor = Executor(sized_of(LUT, table, good), NAIVE)
    for _ in range(3):
        np.testing.assert_array_equal(executor(table, good), table[good])
        with pytest.raises(IndexError, match="index 10 is out of range for dimension 0 of tensor"):
            executor(table, bad)
        np.testing.assert_array_equal(executor(table, good, unchecked=True), table[good])


@pytest.mark.filterwarnings("ignore::tcl.common.errors.TclWarning")
def test_outputs_that_are_added_to() -> None:
    x, total = rand(6), np.zeros(6, np.float32)
    executor = Executor(sized_of(ADD, x), NAIVE)
    for _ in range(4):
        executor(x, outputs=(total,))
        with pytest.raises(ArgumentError, match="pass outputs="):
            executor(x)
    np.testing.assert_allclose(total, 4 * x, rtol=1e-6)


def test_threads_have_frames_of_their_own() -> None:
    executor, _, _ = warm(40, 40, 40)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = (rng.integers(-9, 9, (40, 40)).astype(np.float32) for _ in range(2))
        c, expected = np.empty((40, 40), np.float32), a @ b
        for _ in range(300):
            c[...] = 0
            executor(a, b, outputs=(c,))
            if not np.array_equal(c, expected):
                wrong.append(seed)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        at_once(work, range(4))
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_calls_keep_nothing() -> None:
    executor, a, b = warm()
    c = np.zeros((5, 7), np.float32)

    def call(times: int) -> None:
        for _ in range(times):
            executor(a, b, outputs=(c,))
            executor(a, b)
            with pytest.raises(ArgumentError):
                executor(a, b, outputs=(a,))
        gc.collect()  # what exceptions leave is cyclic

    call(50)
    references = [sys.getrefcount(o) for o in (a, b, c)]
    tracemalloc.start()
    try:
        call(50)
        before = tracemalloc.get_traced_memory()[0]
        call(500)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(o) for o in (a, b, c)] == references


def test_a_def_asks_its_latest_executor_first(monkeypatch: pytest.MonkeyPatch) -> None:
    T = tcl.define(MATMUL, "naive")
    a, b = rand(3, 4), rand(4, 5)
    expected = T.f(a, b)
    monkeypatch.setattr(kernels, "inputs_of", None)  # nothing is looked at again
    for call in (T.f, T["f"], lambda *x, **k: T("f", *x, **k)):
        np.testing.assert_array_equal(call(a, b), expected)
        out = np.zeros((3, 5), np.float32)
        assert call(a, b, outputs=(out,)) is out
        np.testing.assert_array_equal(out, expected)
    with pytest.raises(TypeError):  # other sizes go the long way
        T.f(rand(2, 4), b)


def test_a_def_is_called_with_different_sizes_by_several_threads() -> None:
    T = tcl.define(MATMUL, "naive")
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for k in range(200):
            m = 2 + (seed + k) % 3
            a, b = rng.integers(-9, 9, (m, 4)), rng.integers(-9, 9, (4, m))
            a, b = a.astype(np.float32), b.astype(np.float32)
            if not np.array_equal(T.f(a, b), a @ b):
                wrong.append(seed)

    at_once(work, range(4))
    assert not wrong


def test_checks_are_left_off_only_in_the_call_that_says_so() -> None:
    T = tcl.define(LUT, "naive")
    table, rows = rand(4, 3), np.array([0, 3, 1], np.int32)
    for unchecked in (False, True, False, True):
        np.testing.assert_array_equal(T.lut(table, rows, unchecked=unchecked), table[rows])
    rows[1] = 9
    with pytest.raises(IndexError, match="index 9"):
        T.lut(table, rows)


def test_a_def_and_its_kernels_go_when_the_text_goes() -> None:
    T = tcl.define(MATMUL, "naive")
    T.f(rand(3, 4), rand(4, 5))
    gone = weakref.ref(T["f"]._kernels)
    gc.disable()
    try:
        del T
        assert gone() is None
    finally:
        gc.enable()
