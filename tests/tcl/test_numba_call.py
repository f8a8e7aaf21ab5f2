"""Kernels called from code that Numba compiles: results, and everything that is refused."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numba
import numpy as np
import pytest
from at_once import at_once
from numba.core.errors import NumbaWarning, TypingError
from places import ROOT

import tcl
from tcl.common.errors import ArgumentError

SOURCE = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def gather(float(M) T, int64(N) I) -> (O) { O(n) = T(I(n)) }
def scale(float(N) A, float s) -> (B) { B(n) = A(n) * s }
def shift(int8(N) A, int8 s) -> (B) { B(n) = A(n) + s }
def softmax(float(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}
def copy(float(M, N) lambda) -> (_B) { _B(m, n) = lambda(m, n) }
"""
njit: Any = numba.njit


def values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


@pytest.fixture(scope="module")
def mm() -> Any:
    return tcl.compile(SOURCE, "mm", None, values(3, 4), values(4, 5)).numba()


@pytest.fixture(scope="module")
def gather() -> Any:
    return tcl.compile(SOURCE, "gather", None, values(5), np.zeros(2, np.int64)).numba()


def test_new_outputs_and_given_ones(mm: Any) -> None:
    a, b, c = values(3, 4), values(4, 5, seed=1), np.zeros((3, 5), np.float32)
    new = njit(lambda a, b: mm(a, b) + 1)
    np.testing.assert_array_equal(new(a, b), a @ b + 1)
    into = njit(lambda a, b, c: mm(a, b, c))
    np.testing.assert_array_equal(into(a, b, c), a @ b)
    np.testing.assert_array_equal(c, a @ b)
    np.testing.assert_array_equal(njit(lambda a, b: mm(B=b, A=a))(a, b), a @ b)
    np.testing.assert_array_equal(mm(a, b), a @ b)  # without any other compiled code
    assert mm.__name__ == "mm" and mm.__doc__.startswith("mm(A, B, C): inputs, then outputs")


def test_an_executor_has_one_function() -> None:
    executor: Any = tcl.compile(SOURCE, "mm", None, values(3, 4), values(4, 5))
    assert executor.numba() is executor.numba()
    assert executor.numba(unchecked=True) is not executor.numba()
    with pytest.raises(ArgumentError, match="unchecked has to be True or False"):
        executor.numba(unchecked=1)


def test_several_outputs() -> None:
    array = values(6, 40) / 3
    executor = tcl.compile(SOURCE, "softmax", None, array)
    softmax, expected = executor.numba(), executor(array)
    found = njit(lambda x: softmax(x))(array)
    assert found._fields == ("O", "m", "s")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_array_equal(njit(lambda x: softmax(x).m)(array), array.max(1))
    most = np.zeros(6, np.float32)
    njit(lambda x, m: softmax(x, None, m))(array, most)
    np.testing.assert_array_equal(most, array.max(1))


def test_wanted_outputs() -> None:
    """The others are made for a call, unless they are given."""
    array, most = values(6, 40) / 3, np.zeros(6, np.float32)
    softmax = tcl.compile(SOURCE, "softmax", None, array, wanted=("O",)).numba()
    for found in (softmax(array), softmax(array, None, most)):
        np.testing.assert_allclose(found.sum(1), np.ones(6), rtol=1e-5)
    np.testing.assert_array_equal(most, array.max(1))


def test_names_that_python_does_not_have() -> None:
    array = values(3, 4)
    copy = tcl.compile(SOURCE, "copy", None, array).numba()
    np.testing.assert_array_equal(njit(lambda x: copy(x))(array), array)


def test_slices_in_a_parallel_loop() -> None:
    """Calls beside one another, each into its own part of an array."""
    a, b = values(50, 3, 4), values(4, 5, seed=1)
    mm = tcl.compile(SOURCE, "mm", "naive", a[0], b).numba()

    def batch(a: Any, b: Any, out: Any) -> None:
        for k in numba.prange(len(a)):
            mm(a[k], b, out[k])

    compiled = njit(parallel=True, nogil=True)(batch)
    for _ in range(5):
        out = np.zeros((50, 3, 5), np.float32)
        compiled(a, b, out)
        np.testing.assert_array_equal(out, a @ b)


def test_eight_threads_without_the_gil(mm: Any) -> None:
    repeat = njit(nogil=True)(_repeated(mm))
    a, b = values(3, 4), values(4, 5, seed=1)
    repeat(a, b, 1)
    wrong: list[int] = []

    def work(seed: int) -> None:
        own = values(3, 4, seed=seed)
        if not np.array_equal(repeat(own, b, 2000), own @ b):
            wrong.append(seed)

    at_once(work, range(8))
    assert not wrong


def _repeated(mm: Any) -> Any:
    def repeat(a: Any, b: Any, times: int) -> Any:
        c = np.empty((3, 5), np.float32)
        for _ in range(times):
            mm(a, b, c)
        return c

    return repeat


def test_shapes_and_strides_are_checked_when_a_call_runs(mm: Any) -> None:
    a, b = values(3, 4), values(4, 5)
    call = njit(lambda a, b: mm(a, b))
    into = njit(lambda a, b, c: mm(a, b, c))
    c = np.zeros((3, 5), np.float32)
    shape = r"input 'B' of mm has shape \(4, 5\) in this executor, but an array of shape \(3, 4\)"
    with pytest.raises(ArgumentError, match=shape):
        call(a, a)
    strides = r"'A' of mm has to be row-major for Numba, with strides \(16, 4\), but has \(4, 12\)"
    with pytest.raises(ArgumentError, match=strides):
        call(np.asfortranarray(a), b)
    wide = values(3, 8)
    with pytest.raises(ArgumentError, match=r"strides \(16, 4\), but has \(32, 8\)"):
        call(wide[:, ::2], b)
    with pytest.raises(ArgumentError, match=r"output 'C' of mm has shape \(3, 5\)"):
        into(a, b, c[:2])
    shifted = np.frombuffer(bytearray(81), np.float32, 20, 1).reshape(4, 5)
    with pytest.raises(ArgumentError, match="input 'B' of mm is not aligned in memory"):
        call(a, shifted)
    np.testing.assert_array_equal(call(values(6, 4)[::1][:3], b), values(6, 4)[:3] @ b)
    with pytest.raises(ArgumentError) as error:
        call(a, a)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_outputs_that_overlap() -> None:
    memory = values(40)
    mm = tcl.compile(SOURCE, "mm", None, values(2, 2), values(2, 2)).numba()
    into = njit(lambda a, b, c: mm(a, b, c))
    a, b = memory[:4].reshape(2, 2), memory[4:8].reshape(2, 2)
    for start in (1, 3):
        c = memory[start : start + 4].reshape(2, 2)
        with pytest.raises(ArgumentError, match="output 'C' of mm overlaps input 'A' of mm"):
            into(a, b, c)
    with pytest.raises(ArgumentError, match="overlaps input 'B'"):
        into(a, b, memory[7:11].reshape(2, 2))
    expected = a @ b
    np.testing.assert_array_equal(into(a, b, memory[8:12].reshape(2, 2)), expected)


def test_types_are_checked_when_a_call_is_compiled(mm: Any) -> None:
    a, b, c = values(3, 4), values(4, 5), np.zeros((3, 5), np.float32)
    into = njit(lambda a, b, c: mm(a, b, c))
    fixed = c.copy()
    fixed.flags.writeable = False
    cases = [
        (
            (a.astype(np.float64), b, c),
            r"'A' of mm is float32, .* \.astype\(numpy\.float32\)",
        ),
        ((a, b[0], c), "input 'B' of mm has 2 dimensions, but an array of 1 was given"),
        ((a, 1.0, c), "input 'B' of mm has to be a NumPy array, not float64"),
        ((a, b, fixed), "output 'C' of mm is read-only"),
    ]
    for arrays, words in cases:
        with pytest.raises(TypingError, match=words):
            into(*arrays)


def test_numbers() -> None:
    array = values(5)
    scale = tcl.compile(SOURCE, "scale", None, array, 2.0).numba()
    call = njit(lambda a, s: scale(a, s))
    for number in (2, 2.5, np.float32(2), np.array(2, np.float32)):
        np.testing.assert_array_equal(call(array, number), array * np.float32(number))
    with pytest.raises(ArgumentError, match="'s' of scale is float32, which has no such number"):
        call(array, 1e300)
    assert np.isinf(call(np.ones(5, np.float32), np.inf)).all()
    for other in (True, 1j):
        with pytest.raises(TypingError, match="'s' of scale is float32, but a number of"):
            call(array, other)
    small = np.ones(5, np.int8)
    shift = tcl.compile(SOURCE, "shift", None, small, 2).numba()
    move = njit(lambda a, s: shift(a, s))
    assert move(small, 3).tolist() == [4] * 5
    for number in (300, -129):
        with pytest.raises(ArgumentError, match="'s' of shift is int8, which has no such number"):
            move(small, number)


def test_zero_sized_arrays() -> None:
    a, b = np.zeros((0, 4), np.float32), values(4, 5)
    mm = tcl.compile(SOURCE, "mm", None, a, b).numba()
    assert njit(lambda a, b: mm(a, b))(a, b).shape == (0, 5)
    assert njit(lambda a, b: mm(a, b))(np.asfortranarray(a), b).shape == (0, 5)


def test_outputs_that_are_added_to() -> None:
    array = values(5)
    with pytest.warns(tcl.TclWarning):
        definitions = tcl.define("def f(float(N) A) -> (S) { S += A(n) }")
    executor, _ = definitions.executor("f", (array,))
    add = executor.numba()  # type: ignore[attr-defined]
    total = np.array(10, np.float32)
    njit(lambda a, s: add(a, s))(array, total)
    assert total == 10 + array.sum()
    with pytest.raises(TypingError, match="'S' of f is reduced into but never initialised"):
        njit(lambda a: add(a))(array)


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_types_that_numba_lacks(type_: str) -> None:
    array = np.ones(5, ml_dtypes.bfloat16 if type_ == "bfloat16" else type_)
    executor = tcl.compile(f"def f({type_}(N) A) -> (B) {{ B(n) = A(n) }}", "f", None, array)
    with pytest.raises(
        ArgumentError, match=f"'A' of f is {type_}, a type that Numba arrays do not have"
    ):
        executor.numba()


@pytest.mark.parametrize("type_", ["bool", "uint64"])
def test_types(type_: str) -> None:
    dtype = {"double": "float64"}.get(type_, type_)
    array = np.arange(6).astype(dtype)
    same = tcl.compile(f"def f({type_}(N) A) -> (B) {{ B(n) = A(n) }}", "f", None, array).numba()
    found = njit(lambda a, b: same(a, b))(array, np.zeros_like(array))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_an_index_out_of_range(gather: Any) -> None:
    call = njit(lambda t, i: gather(t, i))
    table, good, bad = values(5), np.array([0, 4]), np.array([1, -3])
    message = "index -3 is out of range for dimension 0 of tensor T, which has indices 0 to 4"
    for _ in range(3):
        with pytest.raises(IndexError, match=message):
            call(table, bad)
        np.testing.assert_array_equal(call(table, good), table[good])

    def guarded(t: Any, i: Any) -> int:
        try:
            gather(t, i)
        except Exception:  # the only one that Numba knows
            return 1
        return 0

    assert njit(guarded)(table, bad) == 1 and njit(guarded)(table, good) == 0


def test_an_index_out_of_range_in_a_parallel_loop(gather: Any) -> None:
    def batch(t: Any, index: Any) -> Any:
        out = np.zeros(index.shape, np.float32)
        for k in numba.prange(len(index)):
            gather(t, index[k], out[k])
        return out

    index = np.zeros((40, 2), np.int64)
    compiled = njit(parallel=True)(batch)
    np.testing.assert_array_equal(compiled(values(5), index), values(5)[index])
    # Everywhere: Numba only hears the errors of the thread that began the loop, and 0.68 raises
    # them as the cause of another one.
    index[:] = 99
    with pytest.raises((IndexError, SystemError)) as error:
        compiled(values(5), index)
    assert "index 99 is out of range" in f"{error.value} {error.value.__cause__}"


def test_functions_that_are_cached_are_refused(mm: Any, tmp_path: Path) -> None:
    script = tmp_path / "cached.py"
    script.write_text(
        textwrap.dedent(
            """
            import numba

            def make(mm, inner):
                @numba.njit(cache=True)
                def direct(a, b):
                    return mm(a, b)

                @numba.njit(cache=True)
                def through(a, b):
                    return inner(a, b)

                return direct, through
            """
        )
    )
    names: dict[str, Any] = {"__name__": "cached", "__file__": str(script)}
    exec(compile(script.read_text(), str(script), "exec"), names)
    inner = njit(lambda a, b: mm(a, b))
    a, b = values(3, 4), values(4, 5)
    direct, through = names["make"](mm, inner)
    with pytest.raises(TypingError, match=r"direct has cache=True and calls mm, .*; leave out"):
        direct(a, b)
    # Numba itself keeps out of its cache what calls something that calls it.
    with pytest.warns(NumbaWarning, match='Cannot cache compiled function "through"'):
        np.testing.assert_array_equal(through(a, b), a @ b)
    assert not list(tmp_path.rglob("*.nbc"))
    plain = njit(lambda a, b: mm(a, b))  # and nothing is left of the refusals
    np.testing.assert_array_equal(plain(a, b), a @ b)


def test_a_function_outlives_its_executor() -> None:
    def made() -> Any:
        mm = tcl.compile(SOURCE, "mm", None, values(3, 4), values(4, 5)).numba()
        return njit(lambda a, b: mm(a, b))

    call, a, b = made(), values(3, 4), values(4, 5)
    call(a, b)
    gc.collect()
    np.testing.assert_array_equal(call(a, b), a @ b)


def test_without_compiling() -> None:
    code = """
    import numba, numpy as np, tcl
    A, B, C = np.ones((3, 4), "f"), np.ones((4, 5), "f"), np.zeros((3, 5), "f")
    text = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    mm = tcl.compile(text, "mm", None, A, B).numba()
    call = numba.njit(lambda a, b, c: mm(a, b, c))
    call(A, B, C)
    assert (C == 4).all() and (mm(A, B) == 4).all() and (mm(B=B, A=A) == 4).all()
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
        timeout=600,
    )


def test_the_page() -> None:
    page = (ROOT / "docs" / "numba.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert (names["out"] == 4).all()
