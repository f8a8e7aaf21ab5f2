"""Which outputs a call returns, and under which names."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from at_once import at_once

import tcl
from tcl.common.errors import ArgumentError

TWO = "def two(float(N) X) -> (Y, Z) { Y(i) = X(i) + 1  Z(i) = Y(i) * 2 }"
SOFTMAX = (
    "def softmax(float(N, D) I) -> (T, E, S, O) {"
    " T(n) max=! I(n, d)  E(n, d) = exp(I(n, d) - T(n))  S(n) +=! E(n, d)"
    " O(n, d) = E(n, d) / S(n) }"
)


def test_several_outputs_are_a_named_tuple() -> None:
    T: Any = tcl.define(TWO)
    x = np.arange(3, dtype=np.float32)
    for results in (T.two(x), T.two(x), T.two(x, outputs=(x + 0, x + 0))):
        y, z = results
        assert results.Y is y and results.Z is z and results._fields == ("Y", "Z")
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(z, 2 * x + 2)
        assert repr(results).startswith("two(Y=array(")
        for again in (pickle.loads(pickle.dumps(results)), copy.deepcopy(results)):
            assert type(again) is type(results)
            np.testing.assert_array_equal(again.Z, z)
    numbers = type(T.two(x))(1, 2)
    assert numbers == (1, 2) and hash(numbers) == hash((1, 2)) and numbers._replace(Y=3) == (3, 2)


@pytest.mark.parametrize("name", ["lambda", "_x", "count", "index", "_1", "None", "_fields"])
def test_names_that_are_no_fields(name: str) -> None:
    """Of outputs, and of the def."""
    text = "def NAME(float(N) X) -> (NAME, Z) { NAME(i) = X(i)  Z(i) = -X(i) }"
    T: Any = tcl.define(text.replace("NAME", name))
    x = np.ones(2, np.float32)
    for _ in range(2):
        results = T[name](x)
        assert results[0][0] == 1 and results.Z[0] == -1 and results[1] is results.Z
        if name != "_fields":
            assert getattr(results, name) is results[0]
        assert pickle.loads(pickle.dumps(results)).Z[0] == -1


def test_a_place_is_not_taken_for_a_name() -> None:
    T: Any = tcl.define("def f(float(N) X) -> (lambda, _0) { lambda(i) = X(i)  _0(i) = -X(i) }")
    results = T.f(np.ones(2, np.float32))
    assert results._0 is results[1] and getattr(results, "lambda") is results[0]


def test_wanted_outputs() -> None:
    T: Any = tcl.define(SOFTMAX)
    x = np.random.default_rng(0).random((4, 9), np.float32)
    every = T.softmax(x)
    out = np.empty_like(x)
    run: Any = tcl.compile(SOFTMAX, "softmax", "naive", x, wanted="O")
    for _ in range(3):
        for wanted in ("O", ("O",), ["O"]):
            np.testing.assert_array_equal(T.softmax(x, wanted=wanted), every.O)
            assert T.softmax(x, wanted=wanted, outputs=(out,)) is out
            assert T.softmax(x, wanted=wanted, outputs=out) is out
            np.testing.assert_array_equal(out, every.O)
        some = T.softmax(x, wanted=("O", "T"))  # in this order
        assert some._fields == ("O", "T")
        np.testing.assert_array_equal(some.O, every.O)
        np.testing.assert_array_equal(some.T, every.T)
        tops, sums = np.empty_like(every.T), np.empty_like(every.S)
        T.softmax(x, wanted=("S", "T"), outputs=(sums, tops))
        np.testing.assert_array_equal(sums, every.S)
        np.testing.assert_array_equal(tops, every.T)
        np.testing.assert_allclose(run(x), every.O, rtol=1e-6)
        np.testing.assert_allclose(run(x, wanted="S"), every.S, rtol=1e-6)
        np.testing.assert_allclose(pickle.loads(pickle.dumps(run))(x), every.O, rtol=1e-6)
        assert len(T.softmax(x)) == 4


def test_what_cannot_be_wanted() -> None:
    with pytest.warns(tcl.TclWarning, match="but never initialised"):
        T: Any = tcl.define(TWO + "def grow(float(N) X) -> (Y, Z) { Y(i) += X(i)  Z(i) = X(i) }")
    x = np.ones(3, np.float32)
    wrong: list[tuple[Any, str]] = [
        ("y", "two has no output 'y' to select with wanted; did you mean 'Y'"),
        (("Y", "X"), "two has no output 'X' to select with wanted; its outputs are Y, Z"),
        (("Y", "Y"), "wanted names the output 'Y' of two twice"),
        ((), "wanted names no output of two"),
        (3, "wanted has to be a tuple of names of outputs, here of Y, Z, not 3"),
        (([],), "wanted has to be a tuple of names"),
    ]
    for wanted, sentence in wrong:
        for _ in range(2):
            with pytest.raises(ArgumentError, match=sentence):
                T.two(x, wanted=wanted)
            T.two(x)
    with pytest.raises(ArgumentError, match="has no output 'X'"):
        tcl.compile(TWO, "two", None, x, wanted=("X",))
    with pytest.raises(ArgumentError, match=r"1 output that is wanted \(Z\), but outputs= has 2"):
        T.two(x, wanted="Z", outputs=(x, x))
    with pytest.raises(ArgumentError, match="adds to its output 'Y' without initialising it"):
        T.grow(x, wanted="Z")
    total = np.zeros(3, np.float32)
    for _ in range(2):
        assert T.grow(x, wanted="Y", outputs=(total,)) is total
    assert total.tolist() == [2, 2, 2]


def test_scratch_is_not_shared_by_threads_and_is_kept() -> None:
    T: Any = tcl.define(SOFTMAX, threads=1)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random((50, 60), np.float32)
        expected, out = T.softmax(x).O, np.empty((50, 60), np.float32)
        for _ in range(200):
            if not np.array_equal(T.softmax(x, wanted="O", outputs=(out,)), expected):
                wrong.append(seed)

    at_once(work, range(4))
    assert not wrong
    x = np.ones((500, 600), np.float32)
    out = np.empty_like(x)
    for _ in range(2):
        T.softmax(x, wanted="O", outputs=(out,))
    tracemalloc.start()
    try:
        for _ in range(5):
            T.softmax(x, wanted="O", outputs=(out,))
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("first", [None, ("Z",)])
def test_what_an_executor_returns_is_not_what_others_do(first: Any) -> None:
    """Of the same sizes and defs, whichever was made first."""
    T: Any = tcl.define(TWO)
    x = np.arange(3, dtype=np.float32)
    found = {}
    for wanted in (first, None, ("Z",)):
        found[wanted] = T.executor("two", (x,), wanted)[0]
    np.testing.assert_array_equal(found["Z",](x), 2 * x + 2)
    for results in (found[None](x), T.two(x), T.two(x)):
        assert results._fields == ("Y", "Z")
