"""Operators and JAX's functions of a def whose sizes vary, and their other settings."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tcl
from tcl.codegen.cpu.run import varying as of_classes
from tcl.grammar.sizes.size_classes import kind_of
from tcl.torch import op
from tcl.torch.kernels import CpuKernels
from tcl.torch.stub import Stub

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"

STAGED = tcl.MappingOptions().tile(0, 16, 4).stage(0, 1)
"""With memory on the way that grows with the size."""


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each kernel that is compiled for a class."""
    found: list[int] = []
    compiled = of_classes._compiled

    def counted(*arguments: object) -> object:
        found.append(1)
        return compiled(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(of_classes, "_compiled", counted)
    return found


def test_tensors_of_a_class_share_a_kernel(compilations: list[int]) -> None:
    mm = op(MM, "mm", varying=("M",), threads=1)
    b = torch.randn(9, 24)
    for m in (0, 1, 15, 16, 17, 200, 255, 240, 33):
        a = torch.randn(m, 9)
        torch.testing.assert_close(mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert len(compilations) == 4  # 1, 8 to 15, 16 and more: multiples of 16, and others
    with pytest.raises(tcl.ArgumentError, match="dimension 0 of 'B' is 8, but K is 9"):
        mm(torch.randn(20, 9), torch.randn(8, 24))


def test_a_compiled_program_takes_sizes_that_vary() -> None:
    mm = op(MM, "mm", varying=("M",), threads=1)
    compiled = torch.compile(
        lambda a, b: mm(a, b) + 1, fullgraph=True, dynamic=True, backend="eager"
    )
    b = torch.randn(8, 24)
    for m in (5, 20, 32, 250):
        a = torch.randn(m, 8)
        torch.testing.assert_close(compiled(a, b), a @ b + 1, rtol=1e-4, atol=1e-4)


def test_settings_make_another_operator_and_are_copied() -> None:
    plain, varying = op(MM, "mm"), op(MM, "mm", varying=["M"], relax="clock", strict=True)
    assert plain.name != varying.name
    assert op(MM, "mm", varying=("M",), relax=("clock",), strict=True).name == varying.name
    assert pickle.loads(pickle.dumps(varying)).name == varying.name
    assert copy.copy(plain).name == plain.name
    with pytest.raises(tcl.ArgumentError) as refused:
        op(MM, "mm", varying=("Q",))
    assert str(refused.value) == "varying: no def has a size 'Q'; there are: M, K, N"


def test_a_module_has_them_too() -> None:
    layer = tcl.torch.Module(MM, "mm", parameters={"B": torch.ones(8, 24)}, varying=("M",))
    assert layer(torch.ones(20, 8)).shape == (20, 24)


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each call that is done in Python."""
    found: list[int] = []
    plain = Stub._call_in_python

    def counted(self: Stub, stack: int) -> int:
        found.append(1)
        return plain(self, stack)

    monkeypatch.setattr(Stub, "_call_in_python", counted)
    return found


def test_python_is_asked_once_for_a_kind_of_sizes(missed: list[int]) -> None:
    mm = op(MM, "mm", varying=("M",), threads=1, options=STAGED)
    b = torch.randn(9, 24)
    for m in range(1, 300):
        a = torch.randn(m, 9)
        torch.testing.assert_close(mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    kinds = {kind_of(m) for m in range(1, 300)}
    if missed:  # else this torch has nothing to register such a function with
        assert len(missed) == len(kinds)
    t = torch.randn(9, 250).T
    for m in (17, 21, 200, 33):  # of other strides, which have kernels of their own
        torch.testing.assert_close(mm(t[:m], b), t[:m] @ b, rtol=1e-4, atol=1e-4)
    for m in (18, 22, 201):
        a = torch.randn(m, 9)
        torch.testing.assert_close(mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(tcl.ArgumentError, match="dimension 0 of 'B' is 8, but K is 9"):
        mm(torch.randn(18, 9), torch.randn(8, 24))


@pytest.mark.parametrize(
    ("text", "varying", "shapes", "sizes"),
    [
        # Strides that follow from the size, outputs half as long and square ones, and two sizes.
        (MM, ("N",), lambda n: ((7, 9), (9, n)), (20, 30, 21, 40)),
        (
            "def f(float(N) A) -> (O) { O(i) = A(2 * i) + A(2 * i + 1) where i in 0:N/2 }",
            ("N",),
            lambda n: ((n,),),
            (20, 30, 21, 31, 48, 32, 250),
        ),
        (
            "def f(float(N) A) -> (O, P) { O(i, j) = A(i) * A(j)  P(i) +=! O(i, j) }",
            ("N",),
            lambda n: ((n,),),
            (20, 30, 21, 31, 48, 32, 250),
        ),
        (MM, ("M", "N"), lambda n: ((n, 9), (9, n + 3)), (20, 30, 21, 40)),
    ],
)
def test_layouts(
    text: str,
    varying: tuple[str, ...],
    shapes: Callable[[int], tuple[tuple[int, ...], ...]],
    sizes: tuple[int, ...],
) -> None:
    name = text.split("(", 1)[0].removeprefix("def ")
    function = op(text, name, varying=varying, threads=1)
    plain = tcl.define(text, threads=1)
    for n in sizes:
        inputs = [torch.randn(shape) for shape in shapes(n)]
        found, expected = function(*inputs), plain[name](*inputs)
        torch.testing.assert_close(
            found if isinstance(found, tuple) else (found,),
            tuple(expected) if isinstance(expected, tuple) else (expected,),
            atol=1e-4,  # sums of 250 products of either sign, in another order
            rtol=1e-4,
        )


def test_what_is_returned_is_a_part_and_what_fails_says_so() -> None:
    text = """
    def f(float(V) A, int32(N) I) -> (O, P) { O(n) = A(I(n))  P(n) = O(n) + 1 }
    """
    pick = op(text, "f", wanted="P", varying=("N",), threads=1)
    a = torch.arange(10.0)
    for n in (20, 30, 21, 17, 31, 25):
        places = torch.randint(10, (n,), dtype=torch.int32)
        torch.testing.assert_close(pick(a, places), a[places] + 1)
        places[n - 1] = 12
        with pytest.raises(IndexError, match="12"):
            pick(a, places)


def test_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.torch.stub.MOST_ROWS", 3)
    monkeypatch.setattr("tcl.torch.kernels.MOST_VARIED", 3)
    made: list[CpuKernels] = []
    plain = CpuKernels.__init__

    def kept(self: CpuKernels, *arguments: Any, **named: Any) -> None:
        made.append(self)
        plain(self, *arguments, **named)

    monkeypatch.setattr(CpuKernels, "__init__", kept)
    mm = op(MM, "mm", varying=("M", "N"), threads=1, options="pointwise")
    for m in (*range(17, 40), 17, 18):
        a, b = torch.randn(m, 5), torch.randn(5, m + 1)
        torch.testing.assert_close(mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert [len(kernels._rows) for kernels in made] == [3]
