"""Operators on a CUDA device, up to the launch: the driver is a stand-in, and tensors lie in the
host's memory (see ``cuda_arrays``)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cuda_arrays import HostTorch, adding, torch_tensor
from cuda_modules import ADDING, GATHERING
from fake_cuda import FakeDriver

import tcl
from tcl.arrays import torch_tensors
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run import ready
from tcl.codegen.cuda.run.compile import Cubin
from tcl.codegen.cuda.run.ready import Machine
from tcl.codegen.devices.gpu import H200
from tcl.executors import machine as executing
from tcl.executors.dispatch import Kernels, Settings
from tcl.torch.kernels import CudaKernels

pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")

ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
GATHER = "def gather(float(R) A, int32(N) I) -> (C) { C(i) = A(I(i)) }"


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeDriver:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    made = FakeDriver({"add": 3, "gather": 4})
    adding(made)

    def emit(sized: Any, *_: Any) -> CudaModule:
        return GATHERING if sized.checked.name == "gather" else ADDING

    machine = Machine(made, lambda n: replace(H200, name=f"cuda:{n}"), emit)
    tensors = HostTorch()
    monkeypatch.setattr(executing, "this_machine", lambda: machine)
    monkeypatch.setattr(torch_tensors, "torch_tensors", lambda: tensors)
    monkeypatch.setattr(ready, "cubin", lambda module, profile: Cubin(b"", ()))
    return made


def kernels(source: str, name: str) -> CudaKernels:
    of_all = Kernels(source, Settings("naive"))
    checked = of_all.definition(name)
    return CudaKernels(of_all, checked, [t.name for t in checked.outputs], unchecked=False)


def capturing(monkeypatch: pytest.MonkeyPatch, is_so: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: is_so)


def test_a_call_launches_and_does_not_wait(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    capturing(monkeypatch, False)
    add = kernels(ADD, "add")
    a = torch_tensor(np.arange(1000, dtype=np.float32)).requires_grad_()
    found = add(a, a)
    assert torch.equal(found.as_subclass(torch.Tensor), 2 * a.detach().as_subclass(torch.Tensor))
    assert [each.kernel for each in driver.launched] == ["add"]
    add(a, a)
    capturing(monkeypatch, True)
    add(a, a)
    assert [each.kernel for each in driver.launched] == ["add"] * 3
    assert not driver.waits


def test_nothing_is_compiled_in_a_capture(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    capturing(monkeypatch, True)
    a = torch_tensor(np.ones(1000, np.float32))
    with pytest.raises(
        tcl.ArgumentError, match=r"cannot compile kernels; call it once before the capture$"
    ):
        kernels(ADD, "add")(a, a)
    assert not driver.launched


def test_nothing_is_waited_for_in_a_capture(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    capturing(monkeypatch, False)
    gather = kernels(GATHER, "gather")
    inputs = torch_tensor(np.ones(5, np.float32)), torch_tensor(np.zeros(7, np.int32))
    gather(*inputs)
    assert driver.waits
    launched = len(driver.launched)
    capturing(monkeypatch, True)
    with pytest.raises(tcl.ArgumentError, match="create the operator with unchecked=True"):
        gather(*inputs)
    assert len(driver.launched) == launched


def test_the_current_stream_is_asked_for_as_torchs_compilers_ask() -> None:
    """By a function that only builds with CUDA have, but stubs of all builds."""
    stubs = (Path(torch.__file__).parent / "_C/__init__.pyi").read_text("utf-8")
    assert "def _cuda_getCurrentRawStream(device: _int) -> _int" in stubs
