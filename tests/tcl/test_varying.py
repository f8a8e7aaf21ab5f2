"""``define(..., varying=...)``: one kernel for many sizes."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.codegen.cpu.emit.sizes import sizes_of
from tcl.codegen.cpu.run import varying as of_classes
from tcl.codegen.cpu.run.kernel import compiled
from tcl.codegen.cpu.run.launch import address_of
from tcl.codegen.cpu.run.native import NativeEntry
from tcl.codegen.loopir.ir import IRError
from tcl.executors.call_kernels import MOST_VARIED
from tcl.executors.varying import VaryingExecutor

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
ROWS = """
def rows(float(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}
"""
CONV = "def conv(float(N) A, float(K) W) -> (O) { O(i) +=! A(i + k) * W(k) }"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled, in order: ``class`` or ``size``."""
    found: list[str] = []

    def counted(name: str, function: Any, is_one: Callable[..., bool]) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            found.extend([name] * is_one(*arguments))
            return function(*arguments, **options)

        return made

    of_class = counted("class", of_classes._compiled, lambda *_: True)
    of_size = counted("size", compiled, lambda program, _: not sizes_of(program))
    monkeypatch.setattr(of_classes, "_compiled", of_class)
    monkeypatch.setattr("tcl.codegen.cpu.run.kernel.compiled", of_size)
    return found


def test_many_sizes_share_a_kernel(compilations: list[str]) -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    rng = np.random.default_rng(0)
    b = rng.standard_normal((24, 40), np.float32)
    sizes = random.Random(0).sample(range(16, 256), 40)
    for m in (*sizes, *sizes):
        a = rng.standard_normal((m, 24), np.float32)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert compilations == ["class", "class"]  # multiples of 16, and others


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_at_all_edges(threads: int) -> None:
    t = tcl.define(ROWS, varying=["N"], threads=threads)
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 15, 16, 17, 255, 256, 257, 300):
        i = rng.standard_normal((n, 33), np.float32)
        o, m, s = t.rows(i)
        if n:
            np.testing.assert_array_equal(m, i.max(1))
        e = np.exp(i - m[:, None])
        np.testing.assert_allclose(s, e.sum(1), rtol=1e-5)
        np.testing.assert_allclose(o, e / e.sum(1)[:, None], rtol=1e-5)


def test_two_sizes_at_once() -> None:
    t = tcl.define(MM, varying=("M", "K"))
    rng = np.random.default_rng(2)
    for m, k in ((5, 3), (17, 40), (64, 64), (1, 100), (33, 16)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, 24), np.float32)
        np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_the_last_rows_of_a_copy() -> None:
    # Fewer than those of a register tile, done in pieces of 4, 2 and 1.
    text = """
    def f(int8(M, K) A, int8(N, K) B) -> (C) {
        C(m, n) +=! int32(A(m, k)) * int32(B(n, k))
    }
    """
    t = tcl.define(text, varying=("M", "N"), threads=1)
    rng = np.random.default_rng(4)
    for m, n in ((33, 16), (35, 32), (47, 48)):
        a, b = (rng.integers(-9, 9, (x, 40), np.int8) for x in (m, n))
        np.testing.assert_array_equal(t.f(a, b), np.dot(a.astype(np.int32), b.astype(np.int32).T))


def test_arrays_that_are_not_row_major(compilations: list[str]) -> None:
    t = tcl.define(MM, varying=("M",))
    rng = np.random.default_rng(3)
    b = rng.standard_normal((8, 16), np.float32)
    a = rng.standard_normal((8, 20), np.float32).T
    np.testing.assert_allclose(t.mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    c = np.zeros((20, 32), np.float32)[:, ::2]
    t.mm(np.ascontiguousarray(a), b, outputs=(c,))
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    assert compilations.count("size") == 2


def test_an_index_out_of_range_is_found_by_the_size_at_hand() -> None:
    t = tcl.define(
        "def pick(float(N) V, int32(B) I) -> (O) { O(b) = V(I(b)) }", varying=("N",), threads=1
    )
    v = np.arange(40, dtype=np.float32)
    np.testing.assert_array_equal(t.pick(v, np.array([39, 0], np.int32)), [39, 0])
    with pytest.raises(IndexError, match="41"):
        t.pick(v, np.array([0, 41], np.int32))
    assert t.pick(np.arange(45, dtype=np.float32), np.array([0, 41], np.int32))[1] == 41


def test_a_mistake_in_a_pass_is_heard(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*arguments: Any, **options: Any) -> Any:
        raise IRError("a loop without a dimension")

    t = tcl.define(MM, varying=("M",), threads=1)
    b = np.ones((5, 4), np.float32)
    with monkeypatch.context() as patch:
        patch.setattr("tcl.codegen.cpu.run.varying.scheduled_for_all", mistaken)
        with pytest.raises(IRError, match="a loop without a dimension"):
            t.mm(np.ones((20, 5), np.float32), b)
    np.testing.assert_array_equal(t.mm(np.ones((20, 5), np.float32), b), np.full((20, 4), 5))
    assert compilations == ["class"]


def test_sizes_that_contradict_each_other_are_refused_as_ever() -> None:
    t = tcl.define(MM, varying=("K",))
    with pytest.raises(tcl.ArgumentError, match="dimension 0 of 'B' is 6, but K is 5"):
        t.mm(np.zeros((3, 5), np.float32), np.zeros((6, 4), np.float32))


@pytest.mark.parametrize("window", [2, 3])
def test_strided_windows_share_a_kernel(compilations: list[str], window: int) -> None:
    # As many of them as fit: where the last one ends depends on what is left over.
    text = f"""
    def pool(float(H, W) I) -> (O) {{
        O(h, w) max=! I(2 * h + kh, 3 * w + kw) where kh in 0:{window}, kw in 0:2
    }}
    """
    t = tcl.define(text, varying=("H", "W"))
    rng = np.random.default_rng(5)
    for h, w in ((17, 18), (18, 19), (33, 20), (34, 250), (255, 21)):
        a = rng.standard_normal((h, w), np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(a, (window, 2))[::2, ::3]
        np.testing.assert_array_equal(t.pool(a), windows.max((2, 3)))
    assert compilations == ["class"]


def test_what_depends_on_the_value_gets_a_kernel_of_its_own(compilations: list[str]) -> None:
    text = "def f(float(N) A) -> (O) { O(i) = A(i) where i in 0:min(N, 50) }"
    t = tcl.define(text, varying=["N"])
    for n in (40, 60, 200):
        assert np.shape(t.f(np.ones(n, np.float32))) == (min(n, 50),)
    assert compilations == ["size", "size", "class"]


def test_executors_know_their_sizes_and_can_be_copied() -> None:
    t = tcl.define(MM, "mlp", varying=("M",))
    a, b = np.ones((20, 4), np.float32), np.ones((4, 8), np.float32)
    t.mm(a, b)
    (executor,) = t._kernels.executors.values()
    assert isinstance(executor, VaryingExecutor)
    assert executor.sized.statements[0].ranges["m"] == (0, 20)
    again = pickle.loads(pickle.dumps(executor))
    assert again(a, b)[0, 0] == 4
    other = copy.copy(t)
    assert np.shape(other.mm(np.ones((21, 4), np.float32), b)) == (21, 8)
    assert other._kernels.varying == ("M",)


def test_a_refused_call_refuses_no_other() -> None:
    t = tcl.define(CONV, varying=("N",), threads=1)
    w = np.ones(3, np.float32)
    for n in (1, 1):
        with pytest.raises(tcl.RangeInferenceError) as alone:
            tcl.define(CONV).conv(np.ones(n, np.float32), w)
        with pytest.raises(tcl.RangeInferenceError) as caught:
            t.conv(np.ones(n, np.float32), w)
        assert str(caught.value) == str(alone.value)
    for n in (2, 3, 5, 16, 33):
        np.testing.assert_array_equal(t.conv(np.ones(n, np.float32), w), [3] * (n - 2))


def test_what_no_size_of_a_class_can_have_is_told_with_the_size() -> None:
    text = "def f(float(N) A, float(4) B) -> (O) { O(i) = A(i) * B(i) }"
    for n in (1, 3, 20):
        with pytest.raises(tcl.RangeInferenceError, match=f"N = {n} of 'A'"):
            tcl.define(text, varying=("N",)).f(np.ones(n, np.float32), np.ones(4, np.float32))


def test_options_that_no_class_can_have_are_those_of_one_size(compilations: list[str]) -> None:
    # What begins on boundaries needs to know how many points there are.
    text = "def f(float(N) A) -> (O) { O(i) = exp(A(i)) }"
    options = tcl.MappingOptions().vectorize(8).peel()
    t = tcl.define(text, options, varying=("N",), threads=1)
    a = np.linspace(0, 1, 100, dtype=np.float32)
    np.testing.assert_allclose(t.f(a), np.exp(a), rtol=1e-6)
    assert compilations[-1] == "size"
    with pytest.raises(tcl.OptionsError, match="too few"):
        t.f(a[:3])


def test_sizes_that_no_class_holds() -> None:
    text = "def last(int8(N) A, int32(M) I) -> (O) { O(m) = A(I(m)) }"
    t = tcl.define(text, varying=("N",))
    a = np.broadcast_to(np.int8(7), 1 << 31)
    np.testing.assert_array_equal(t.last(a, np.array([0, (1 << 31) - 1], np.int32)), [7, 7])


def test_functions_of_c_have_the_size() -> None:
    t = tcl.define(MM, "mlp", varying=("M", "N"), threads=1)
    a, b = np.ones((20, 4), np.float32), np.ones((4, 37), np.float32)
    executor, _ = t.executor("mm", (a, b))
    assert isinstance(executor, VaryingExecutor)
    c = np.zeros((20, 37), np.float32)
    launcher = executor.kernel(tuple(x.strides for x in (a, b, c)))
    entry = NativeEntry(launcher)
    addresses, error = (ctypes.c_uint64 * 3)(*map(address_of, (a, b, c))), (ctypes.c_int64 * 2)()
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(entry.address)
    assert function(addresses, error) == 0
    np.testing.assert_array_equal(c, np.full((20, 37), 4, np.float32))


def test_sizes_that_come_once_share_what_calls_write_to() -> None:
    t = tcl.define(MM, tcl.MappingOptions().tile(0, 16, 4).stage(0, 1), varying=("M",), threads=1)
    b = np.ones((9, 16), np.float32)
    for m in np.repeat(range(17, 250, 2), 2):
        np.testing.assert_array_equal(t.mm(np.ones((m, 9), np.float32), b), np.full((m, 16), 9))
    executors = [e for e in t._kernels.executors.values() if isinstance(e, VaryingExecutor)]
    launchers = [x for e in executors for x in e._kernels.values()]
    assert len({x.scratch for x in launchers}) > 1
    assert len({id(x._shared) for x in launchers}) == 1


def test_sizes_that_come_once_do_not_pile_up() -> None:
    t = tcl.define("def f(float(N) A) -> (O) { O(i) = A(i) + 1 }", varying=("N",), threads=1)
    for n in (*range(1, 400), 1):
        for _ in range(3):
            assert np.sum(t.f(np.ones(n, np.float32))) == 2 * n
    assert len(t._kernels.executors) == MOST_VARIED


def test_inputs_of_earlier_calls_are_let_go() -> None:
    t = tcl.define(MM, varying=("M",), threads=1)
    b = np.ones((3, 5), np.float32)
    first = np.ones((20, 3), np.float32)
    t.mm(first, b)
    t.mm(np.ones((21, 3), np.float32), b)
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_sizes_as_values(compilations: list[str]) -> None:
    text = """
    def f(float(N) A) -> (O, P, Q) {
        O +=! A(i) / N
        P(i) = i * N - N where i in 0:N
        Q(i) = int8(N) + (N > 20 ? 1 : 0) where i in 0:N
    }
    """
    t = tcl.define(text, varying=("N",), threads=1)
    for n in (16, 20, 21, 33, 100, 130, 160, 255):
        o, p, q = t.f(np.arange(n, dtype=np.float32))
        np.testing.assert_allclose(o, (n - 1) / 2, rtol=1e-5)
        np.testing.assert_array_equal(p, np.arange(n) * n - n)
        np.testing.assert_array_equal(q, [(n + 128) % 256 - 128 + (n > 20)] * n)


def test_strict_looks_at_every_size() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k) * W(k) where n in 0:4 }"
    t = tcl.define(text, strict=True, varying=("K",), threads=1)
    x = np.ones(20, np.float32)
    np.testing.assert_array_equal(t.f(x, x[:3]), [3] * 4)
    for _ in range(2):
        with pytest.raises(tcl.RangeInferenceError, match="limits 'k' to 0:17 of the 0:40"):
            t.f(x, np.ones(40, np.float32))


def test_a_tensor_that_begins_at_a_size() -> None:
    text = """
    def f(float(N) A, int32(M) I) -> (T, O) {
        T(i) = 2 * A(i) where i in N-5:N
        O(m) = T(I(m))
    }
    """
    t = tcl.define(text, varying=("N",), threads=1)
    for n in (40, 41, 60):
        i = np.array([n - 5, n - 1], np.int32)
        np.testing.assert_array_equal(t.f(np.arange(n, dtype=np.float32), i)[1], 2 * i)
        with pytest.raises(IndexError, match=f"which has indices {n - 5} to {n - 1}"):
            t.f(np.arange(n, dtype=np.float32), i - 1)


def test_threads_that_make_classes_of_the_same_names() -> None:
    # Texts of sizes are the same in all of them.
    wrong: list[str] = []

    def calls(seed: int) -> None:
        rng = random.Random(seed)
        t = tcl.define(MM, tcl.MappingOptions().vectorize(8), varying=("M", "N"), threads=1)
        for _ in range(6):
            m, n = rng.choice([3, 20, 32, 300]), rng.choice([3, 20, 32, 300])
            try:
                c = t.mm(np.ones((m, 4), np.float32), np.ones((4, n), np.float32))
                if not (np.shape(c) == (m, n) and np.all(np.equal(c, 4))):
                    wrong.append(f"{m} x {n}")
            except Exception as error:
                wrong.append(repr(error))

    workers = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize(
    ("varying", "message"),
    [
        (("Q",), "varying: no def has a size 'Q'; there are: M, K, N"),
        (("m",), "varying: no def has a size 'm'; did you mean 'M'?"),
        (([],), "varying: no def has a size []; there are: M, K, N"),
        ("M", "varying has to be names of sizes, as in varying=(\"N\",), not 'M'"),
        (7, 'varying has to be names of sizes, as in varying=("N",), not 7'),
    ],
)
def test_names_that_are_no_sizes(varying: Any, message: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(MM, varying=varying)
    assert str(caught.value) == message


def test_names_that_are_strings_of_numpy() -> None:
    t = tcl.define(MM, varying=(np.str_("M"),), threads=1)
    for m in (17, 18, 18):
        a, b = np.ones((m, 3), np.float32), np.ones((3, 2), np.float32)
        np.testing.assert_array_equal(t.mm(a, b), a @ b)
