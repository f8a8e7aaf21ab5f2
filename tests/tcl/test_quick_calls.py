"""Calls with numbers, with several shapes in turns, and with more of them than are kept."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from at_once import at_once

import tcl
from tcl.common.errors import ArgumentError
from tcl.executors import call_kernels, calls
from tcl.executors.calls import MOST_QUICK
from tcl.executors.executor import Executor
from tcl.executors.host_repeat import WithNumbers

ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
TYPES = ("float16", "float32", "float64", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
NUMBERS: list[Any] = [
    *(0, 1, -1, 127, 128, 255, 256, -128, -129, 65504, 65520, 2**31 - 1, 2**31, -(2**31) - 1),
    *(2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**400, True, False),
    *(0.0, -0.0, 0.1, 1.0, 1.5, 1e-46, 1e-320, 65519.9, 65520.0, 3.4028235e38, 3.5e38, 1e308),
    *(math.inf, -math.inf, math.nan, 1j, "1", None, [1], [[1]], b"1"),
    *(np.float32(0.1), np.float64(0.1), np.int8(3), np.int64(300), np.bool_(True), np.array(2)),
    *(np.array(0.5, np.float32), np.array([2.0]), np.float16(7), np.uint64(2**63)),
]


def outcome(call: Any, *arguments: Any) -> str:
    """Bits or sentence."""
    with np.errstate(all="ignore"):
        try:
            return repr([np.asarray(call(*arguments)).tobytes()])
        except (ArgumentError, TypeError, ValueError, OverflowError) as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("type_", TYPES)
def test_numbers_mean_the_same_on_the_short_way(
    type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"float64": "double", "float32": "float"}.get(type_, type_)
    source = f"def f({name} s, float(N) X) -> (Y, Z) {{ Y(i) = X(i)  Z(i) = s where i in 0:N }}"
    x, first = np.arange(5, dtype=np.float32), True if type_ == "bool" else 1
    quick = tcl.define(source, threads=1).f
    for number in NUMBERS:
        quick(first, x)  # so that this call is like the one before
        found = outcome(lambda n: quick(n, x)[1], number)
        with monkeypatch.context() as patch:
            patch.setattr(WithNumbers, "__call__", lambda *_: None)
            slow = tcl.define(source, threads=1).f
            assert found == outcome(lambda n, slow=slow: slow(n, x)[1], number), number


@pytest.mark.parametrize("type_", TYPES)
def test_numbers_of_numpy_mean_what_those_of_python_do(type_: str) -> None:
    name = {"float64": "double", "float32": "float"}.get(type_, type_)
    f = tcl.define(f"def f({name} s) -> (Y) {{ Y = s }}", threads=1).f
    kinds = (*(np.float16, np.float32, np.float64, np.bool_), *(np.int8, np.int64, np.uint64))
    for kind in kinds:
        for value in (0, 1, 100, 0.5, -1, 300, 2**40, 1e300, math.inf):
            with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
                number = kind(value)
                assert outcome(f, number) == outcome(f, number.item()), number
    for other in (np.complex64(1), np.datetime64(3, "ns"), np.timedelta64(3, "ns"), np.str_("3")):
        assert "are not supported" in outcome(f, other)
    for array in (np.ones(()), np.ones((), np.int64)):
        assert array.dtype == type_ or "was given; convert it" in outcome(f, array)


def test_numbers_take_the_short_way(taken: list[bool]) -> None:
    t = tcl.define("def f(float s, float(N) X, int32 k) -> (Y) { Y(i) = s * X(i) + k }", threads=1)
    x = np.ones(3, np.float32)
    t.f(2.0, x, 1)
    taken.clear()
    for s, k in ((3.0, 2), (4, 3), (np.array(5.0, np.float32), 4)):
        np.testing.assert_array_equal(t.f(s, x, k), np.full(3, s + k, np.float32))
    assert taken == [True] * 3
    assert outcome(t.f, 2.0, x) == outcome(tcl.define(t._kernels.source, threads=1).f, 2.0, x)


def test_numbers_beside_tensors() -> None:
    torch = pytest.importorskip("torch")
    t = tcl.define("def f(float s, float(N) X) -> (Y) { Y(i) = s * X(i) }", threads=1)
    x = torch.arange(4.0)
    for s in (1.0, 2.0, 3, np.float32(4), torch.tensor(5.0)):
        found = t.f(s, x)
        assert type(found) is torch.Tensor and found.tolist() == [float(s) * v for v in range(4)]


@pytest.mark.parametrize("type_", ["float", "bfloat16"])
def test_numbers_lie_where_tensors_do(type_: str) -> None:
    torch = pytest.importorskip("torch")
    source = f"def f({type_} s, float(N) X) -> (Y) {{ Y(i) = float(s) * X(i) }}"
    t, x = tcl.define(source, threads=1), torch.arange(4.0)
    for _ in range(2):  # the long way, and the short one
        with torch.device("meta"):
            found = t.f(2.0, x)
        assert found.device == x.device and found.tolist() == [0.0, 2.0, 4.0, 6.0]


def all_quick(function: Any, arrays: list[np.ndarray[Any, Any]], taken: list[bool]) -> bool:
    """Whether calls with these in turns take the short way, after some that need not."""
    for k, a in enumerate(itertools.chain(*[arrays] * 5)):
        if k == 4 * len(arrays):
            taken.clear()
        np.testing.assert_array_equal(function(a, a), a + a)
    return taken == [True] * len(arrays)


@pytest.mark.parametrize("varying", [(), ("N",)])
def test_shapes_in_turns(varying: tuple[str, ...], taken: list[bool]) -> None:
    shapes = [np.arange(16 + k, dtype=np.float32) for k in range(MOST_QUICK)]
    add = tcl.define(ADD, threads=1, varying=varying).add
    assert all_quick(add, shapes[:2], taken)
    assert all_quick(add, shapes, taken)


def test_strides_in_turns(taken: list[bool]) -> None:
    strides = [np.arange(20 * k, dtype=np.float32)[::k] for k in range(1, MOST_QUICK + 1)]
    assert all_quick(tcl.define(ADD, threads=1).add, strides, taken)


def test_sizes_that_come_once_make_no_executors() -> None:
    t = tcl.define(ADD, threads=1, varying=("N",))
    for n in range(16, 80):
        t.add(np.ones(n, np.float32), np.ones(n, np.float32))
    assert len(t._kernels.executors) <= 4  # one or two of each class


def test_the_shapes_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_kernels, "MOST_SHAPES", 4)
    t = tcl.define(ADD, threads=1)
    kept = np.ones(100, np.float32)
    for n in range(1, 12):
        for a in (kept, np.ones(n, np.float32)):
            np.testing.assert_array_equal(t.add(a, a), a + a)
            t.executor("add", (a, a))
    executors = t._kernels.executors
    assert len(executors) == 4
    assert [e.sized.sizes["N"] for e in executors.values()] == [9, 10, 100, 11]


def test_the_latest_strides_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_LAYOUTS", 4)
    executor = tcl.compile(ADD, "add", None, *[np.ones(5, np.float32)] * 2, threads=1)
    assert isinstance(executor, Executor)
    for k in range(1, 12):
        a = np.arange(5 * k, dtype=np.float32)[::k]
        np.testing.assert_array_equal(executor(a, a), a + a)
        assert len(executor._kernels) <= 4 and len(executor._repeats) <= 4


@pytest.mark.parametrize("varying", [(), ("N",)])
def test_release_memory_forgets_kernels(varying: tuple[str, ...]) -> None:
    t = tcl.define(ADD, threads=1, varying=varying)
    for n in range(16, 20):
        a = np.ones(n, np.float32)
        t.add(a, a)
        t.add(a, a)
    tcl.release_memory()
    assert not t._kernels.executors and not t.add._several and t.add._latest is None
    np.testing.assert_array_equal(t.add(a, a), a + a)


def test_threads_that_meet_shapes_and_forget_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_kernels, "MOST_SHAPES", 3)
    t = tcl.define(ADD, threads=1)
    right: list[int] = []

    def work(seed: int) -> None:
        for k in np.random.default_rng(seed).integers(1, 30, 60):
            a = np.full(k, seed, np.float32)
            np.testing.assert_array_equal(t.add(a, a), a + a)
            if k == 7:
                tcl.release_memory()
        right.append(seed)

    at_once(work, range(4))
    assert sorted(right) == [0, 1, 2, 3]
