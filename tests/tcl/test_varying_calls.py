"""Calls at sizes of classes that have a kernel: what each returns, refuses, and leaves behind."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.executors.dispatch import Kernels
from tcl.executors.host_repeat import HostRepeat
from tcl.executors.varying import Family

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
TWO = "def two(float(N) A, float(M) B) -> (S, P) { S +=! A(n)  P(n, m) = A(n) * B(m) }"
PICK = "def pick(float(N) V, int32(B) I) -> (O) { O(b) = V(I(b)) }"
ADD = "def add(float(N) A) -> (S) { S(n) += A(n) }"

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The defs that executors were asked for, in order."""
    found: list[str] = []
    plain = Kernels.executor

    def counted(self: Kernels, name: str, *rest: Any) -> Any:
        found.append(name)
        return plain(self, name, *rest)

    monkeypatch.setattr(Kernels, "executor", counted)
    return found


def mm_inputs(m: int, k: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(m)
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, 7), np.float32)


def test_sizes_of_a_class_need_no_executor(executors: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    for m in range(17, 60, 2):
        a, b = mm_inputs(m)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert executors == ["mm"]


def test_a_class_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = Family._found

    def found(self: Family, values: Mapping[str, int]) -> Any:
        asked.append(values["M"])
        return plain(self, values)

    monkeypatch.setattr(Family, "_found", found)
    t = tcl.define(MM, varying=("M",), threads=1)
    for m in (17, 200, 70, 33, 48, 240, 16, 64, 255):
        a, b = mm_inputs(m)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    # The first call at other sizes of each class; one that had no kernel, first.
    assert asked == [200, 48, 240]


def test_other_sizes_are_told_before_outputs_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    for _ in range(4):
        t.mm(*mm_inputs(21))
    made: list[object] = []
    plain = HostRepeat._results

    def results(self: HostRepeat, outputs: Any) -> Any:
        made.append(outputs)
        return plain(self, outputs)

    monkeypatch.setattr(HostRepeat, "_results", results)
    a, b = mm_inputs(33)
    np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert not made
    np.testing.assert_allclose(t.mm(*mm_inputs(21)), mm_inputs(21)[0] @ mm_inputs(21)[1], rtol=1e-5)
    assert made
    with pytest.raises(tcl.ArgumentError):
        t.mm(3.0, b)


def test_the_same_size_again_is_made_quick(executors: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    for m in (21, 17, 33):
        a, b = mm_inputs(m)
        for _ in range(5):
            np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    # The first call of all, and the second ones at each size.
    assert executors == ["mm"] * 4
    assert all(e._latest is not None for e in t._kernels.executors.values())


def test_outputs_of_the_caller(executors: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    t.mm(*mm_inputs(30))
    giving: list[Callable[[Array], Any]] = [lambda c: c, lambda c: (c,), lambda c: [c]]
    for m, given in zip((17, 19, 21), giving, strict=True):
        (a, b), c = mm_inputs(m), np.zeros((m, 7), np.float32)
        assert t.mm(a, b, outputs=given(c)) is c
        np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    assert executors == ["mm"]
    (a, b), wide = mm_inputs(23), np.zeros((23, 14), np.float32)
    t.mm(a, b, outputs=wide[:, ::2])
    np.testing.assert_allclose(wide[:, ::2], a @ b, rtol=1e-5, atol=1e-5)
    assert not wide[:, 1::2].any()


def test_several_outputs_and_those_that_are_wanted() -> None:
    t = tcl.define(TWO, varying=("N", "M"), threads=1)
    rng = np.random.default_rng(0)
    for n, m in ((20, 33), (17, 40), (21, 18), (30, 50)):
        a, b = rng.standard_normal(n, np.float32), rng.standard_normal(m, np.float32)
        found: Any = t.two(a, b)
        np.testing.assert_allclose(found.S, a.sum(), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found.P, np.outer(a, b))
        np.testing.assert_array_equal(t.two(a, b[1:], wanted="P"), np.outer(a, b[1:]))


def calls_that_are_refused() -> list[tuple[str, str, tuple[Any, ...], dict[str, Any]]]:
    a, b = mm_inputs(19)
    return [
        ("mm", MM, (a.astype(np.float64), b), {}),
        ("mm", MM, (a[0], b), {}),
        ("mm", MM, (a, b[:4]), {}),
        ("mm", MM, (a,), {}),
        ("mm", MM, (a, b, b), {}),
        ("mm", MM, (a, b), {"unchecked": 1}),
        ("mm", MM, (a, b), {"wanted": "D"}),
        ("mm", MM, (a, b), {"outputs": np.zeros((20, 7), np.float32)}),
        ("mm", MM, (a, b), {"outputs": ()}),
        ("mm", MM, (a, b), {"outputs": np.zeros((19, 7))}),
        ("mm", MM, (a, b), {"outputs": np.broadcast_to(np.float32(0), (19, 7))}),
        ("mm", MM, (a[:7, :5], b), {"outputs": a[:7].reshape(5, 7).T}),
        ("add", ADD, (a[:, 0].copy(),), {}),
        ("pick", PICK, (b[0], np.array([7], np.int32)), {}),
        ("pick", PICK, (b[0], np.array([-1], np.int32)), {}),
    ]


@pytest.mark.filterwarnings("ignore::tcl.TclWarning")
@pytest.mark.parametrize(("name", "text", "inputs", "more"), calls_that_are_refused())
def test_what_is_refused_is_so_in_the_words_of_one_size(
    name: str, text: str, inputs: tuple[Any, ...], more: dict[str, Any]
) -> None:
    with pytest.raises(Exception) as alone:  # noqa: PT011
        tcl.define(text, threads=1)[name](*inputs, **more)
    varying = {"mm": "M", "add": "N", "pick": "N"}[name]
    t = tcl.define(text, varying=(varying,), threads=1)
    outputs: dict[str, Any] = {"outputs": np.zeros(9, np.float32)} if name == "add" else {}
    first: tuple[Any, ...] = {
        "mm": mm_inputs(30),
        "add": (np.ones(9, np.float32),),
        "pick": (np.ones(9, np.float32), np.array([0], np.int32)),
    }[name]
    t[name](*first, **outputs)
    for _ in range(2):
        with pytest.raises(type(alone.value)) as caught:
            t[name](*inputs, **more)
        assert str(caught.value) == str(alone.value)
    t[name](*first, **outputs)


def test_arrays_of_other_kinds(executors: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    a, b = mm_inputs(40)
    expected = a @ b
    t.mm(a[:30], b)

    class Named(np.ndarray[Any, np.dtype[Any]]):
        pass

    odd = np.zeros(4 * 5 * 21 + 1, np.uint8)[1:].view(np.float32).reshape(21, 5)
    odd[...] = a[:21]
    assert not odd.flags.aligned
    others = [a[::-1][:33], a[::2][:18], np.asfortranarray(a[:19]), a[:20].view(Named), odd]
    for each in others:
        found = t.mm(each, b)
        np.testing.assert_allclose(found, np.asarray(each) @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(t.mm(a, b), expected, rtol=1e-5, atol=1e-5)
    assert len(executors) == 1 + len(others)


def test_unchecked_calls_have_a_kernel_of_their_own(executors: list[str]) -> None:
    t = tcl.define(PICK, varying=("N", "B"), threads=1)
    rng = np.random.default_rng(0)
    for n, b in ((40, 20), (33, 19), (50, 25), (200, 17)):
        v, i = rng.standard_normal(n, np.float32), rng.integers(0, n, b, np.int32)
        for unchecked in (True, False):
            np.testing.assert_array_equal(t.pick(v, i, unchecked=unchecked), v[i])
    with pytest.raises(IndexError, match="which has indices 0 to 44"):
        t.pick(np.ones(45, np.float32), np.array([45] * 18, np.int32))


def test_a_call_that_fails_leaves_the_next_one_alone() -> None:
    t = tcl.define(PICK, varying=("N",), threads=2)
    v = np.arange(60, dtype=np.float32)
    t.pick(v, np.zeros(20, np.int32))
    for n in range(17, 59):
        with pytest.raises(IndexError, match=f"indices 0 to {n - 1}"):
            t.pick(v[:n], np.array([n] * 20, np.int32))
        assert t.pick(v[: n + 1], np.array([n] * 20, np.int32))[0] == n


def test_every_size_warns_under_strict(executors: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), strict=True, threads=1)
    for m in (17, 19, 21):
        a, b = mm_inputs(m)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert len(executors) == 3  # which look at the ranges


def test_threads_that_come_with_new_sizes_at_once() -> None:
    t = tcl.define(MM, varying=("M", "K"))
    wrong: list[str] = []

    def calls(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(40):
            m, k = rng.choice([rng.randint(1, 90), 16, 32]), rng.randint(1, 40)
            a, b = mm_inputs(m, k)
            try:
                if not np.allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4):
                    wrong.append(f"{m} x {k}")
            except Exception as error:
                wrong.append(repr(error))

    workers = [threading.Thread(target=calls, args=(seed,)) for seed in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_torch_tensors_of_any_size() -> None:
    torch = pytest.importorskip("torch")
    t = tcl.define(MM, varying=("M",), threads=1)
    for m in (17, 19, 33, 19):
        a, b = mm_inputs(m)
        found = t.mm(torch.from_numpy(a), torch.from_numpy(b))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-5, atol=1e-5)
