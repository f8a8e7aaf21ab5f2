"""``define(..., varying=...)``: one kernel for many sizes."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.codegen.cpu.run import varying as of_classes
from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.executors.varying import VaryingExecutor

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
ROWS = """
def rows(float(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}
"""


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled, in order: ``class`` or ``size``."""
    found: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            found.append(name)
            return function(*arguments, **options)

        return made

    monkeypatch.setattr(of_classes, "_compiled", counted("class", of_classes._compiled))
    monkeypatch.setattr("tcl.codegen.cpu.run.kernel.compile_cpu", counted("size", compile_cpu))
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


def test_sizes_that_contradict_each_other_are_refused_as_ever() -> None:
    t = tcl.define(MM, varying=("K",))
    with pytest.raises(tcl.ArgumentError, match="dimension 0 of 'B' is 6, but K is 5"):
        t.mm(np.zeros((3, 5), np.float32), np.zeros((6, 4), np.float32))


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
    (executor,) = t._kernels._executors.values()
    assert isinstance(executor, VaryingExecutor)
    assert executor.sized.statements[0].ranges["m"] == (0, 20)
    again = pickle.loads(pickle.dumps(executor))
    assert again(a, b)[0, 0] == 4
    other = copy.copy(t)
    assert np.shape(other.mm(np.ones((21, 4), np.float32), b)) == (21, 8)
    assert other._kernels.varying == ("M",)


@pytest.mark.parametrize(
    ("varying", "message"),
    [
        (("Q",), "varying: no def has a size 'Q'; there are: M, K, N"),
        (("m",), "varying: no def has a size 'm'; did you mean 'M'?"),
        ("M", "varying has to be names of sizes, as in varying=(\"N\",), not 'M'"),
        (7, 'varying has to be names of sizes, as in varying=("N",), not 7'),
    ],
)
def test_names_that_are_no_sizes(varying: Any, message: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(MM, varying=varying)
    assert str(caught.value) == message
