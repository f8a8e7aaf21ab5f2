"""Operators and JAX's functions of a def whose sizes vary, and their other settings."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import tcl
from tcl.codegen.cpu.run import varying as of_classes
from tcl.torch import op

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


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
