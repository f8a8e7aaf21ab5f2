"""What runs the tests' kernels on a real GPU: here on memory of the host, by functions that stand
for kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import real_gpu
from cuda_modules import ADDING, GATHERING
from fake_cuda import Block, FakeDriver

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import EmulationError
from tcl.codegen.cuda.emulator.arena import GAP, Bytes
from tcl.codegen.cuda.run.compile import Cubin
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.devices.cupy_driver import Memory
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir import ir

Effect = Callable[[tuple[int, ...]], None]


class HostDriver(FakeDriver, real_gpu.WatchedDriver):
    """Whose memory is the host's."""

    def __init__(self, arguments: Mapping[str, int], effects: Mapping[str, Effect]) -> None:
        super().__init__(arguments, effects)
        self.pieces: list[tuple[Memory, int]] = []
        self.held: list[Bytes] = []

    def allocate(self, size: int) -> Memory:
        self.held.append(np.zeros(size, np.uint8))
        return Block(self.held[-1].ctypes.data)

    def zeros(self, size: int) -> Block:
        self.pieces.append((self.allocate(size), size))
        return Block(self.pieces[-1][0].ptr)

    def upload(self, address: int, values: Bytes) -> None:
        ctypes.memmove(address, values.ctypes.data, values.nbytes)


def run(
    module: CudaModule, effect: Effect, monkeypatch: pytest.MonkeyPatch, **arrays: Any
) -> HostDriver:
    """As a test runs a module, whose kernel does this."""
    (launch,) = module.launches
    count = len(launch.tensors) + bool(module.sites)
    driver = HostDriver(arguments={launch.name: count}, effects={launch.name: effect})
    launcher = CudaLauncher(module, b"", driver, 0)

    class Process:
        def submit(self, _: object, module: CudaModule, code: bytes, *about: Any) -> Process:
            self.found = real_gpu.run_on(launcher, *about)
            return self

        def result(self) -> real_gpu.Ran:
            return self.found

    monkeypatch.setattr(real_gpu, "_process", Process)
    monkeypatch.setattr(real_gpu, "profile", lambda: H200)
    monkeypatch.setattr(real_gpu, "cubin", lambda *_: Cubin(b"", ()))
    monkeypatch.setattr(real_gpu, "note", lambda *_: None)
    real_gpu.OnGpu(module, module).run(arrays)
    return driver


def add(places: tuple[int, ...]) -> None:
    a, b, c = (np.ctypeslib.as_array((ctypes.c_float * 1000).from_address(p)) for p in places)
    c[:] = a + b


def spoiling(which: int, offset: int) -> Effect:
    """Adds, and writes a byte more."""

    def effect(places: tuple[int, ...]) -> None:
        add(places[:3])
        ctypes.memset(places[which] + offset, 0, 1)

    return effect


def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 1000), np.float32)
    return {"A": a, "B": b, "C": np.zeros(1000, np.float32)}


def test_results_are_copied_back(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = numbers()
    run(ADDING, add, monkeypatch, **arrays)
    np.testing.assert_array_equal(arrays["C"], arrays["A"] + arrays["B"])


@pytest.mark.parametrize(
    ("which", "offset", "name"),
    [(2, 4000, "C"), (2, -1, "C"), (0, 12, "A"), (1, -GAP, "A"), (2, 4000 + GAP - 1, "C")],
)
def test_what_is_written_elsewhere_is_found(
    which: int, offset: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EmulationError, match=f"tensor {name}, or memory beside it, was overwr"):
        run(ADDING, spoiling(which, offset), monkeypatch, **numbers())


def scratch(zeroed: bool) -> CudaModule:
    """With a tensor that is no argument."""
    layout = ADDING.tensors[0].layout
    more = ir.Tensor("S", ir.Role.SCRATCH, layout, zeroed=zeroed)
    (launch,) = ADDING.launches
    plain = ir.Tensor("T", ir.Role.SCRATCH, layout)
    one = type(launch)(*("add", 4, 256, 0, ("A", "B", "C", "T", "S")))
    return CudaModule(ADDING.source, (one,), (*ADDING.tensors, plain, more))


@pytest.mark.parametrize(
    ("zeroed", "offset", "said"),
    [
        (False, 4096, "memory beside scratch"),
        (False, -5000, "memory beside scratch"),
        (True, 8, "holds zeros between"),
    ],
)
def test_scratch_memory(
    zeroed: bool, offset: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def effect(places: tuple[int, ...]) -> None:
        if not zeroed:
            for place in places[3:]:
                assert ctypes.string_at(place, 4000) == b"\xff" * 4000
                ctypes.memset(place, 7, 4000)
        add(places[:3])

    def wrong(places: tuple[int, ...]) -> None:
        effect(places)
        ctypes.memset(places[4] + offset, 7, 1)

    run(scratch(zeroed), effect, monkeypatch, **numbers())
    with pytest.raises(EmulationError, match=said):
        run(scratch(zeroed), wrong, monkeypatch, **numbers())


def test_subscripts_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    def effect(places: tuple[int, ...]) -> None:
        (ctypes.c_int64 * 2).from_address(places[3])[:] = [1, -7]

    arrays = {
        "A": np.zeros(10, np.float32),
        "I": np.zeros(256, np.int32),
        "C": np.zeros(256, np.float32),
    }
    with pytest.raises(IndexError, match="index -7 is out of range for dimension 0 of tensor A"):
        run(GATHERING, effect, monkeypatch, **arrays)
