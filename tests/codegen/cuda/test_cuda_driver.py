"""What is asked of CuPy's bindings, in which order: they are stand-ins that write it down."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tcl.codegen.devices import cupy_driver as module
from tcl.codegen.devices.cupy_driver import Driver
from tcl.common.errors import ArgumentError, CompileError
from tcl.executors import machine


class NoContextError(RuntimeError):
    """As CuPy's ``CUDADriverError``."""


@dataclass
class Bindings:
    """CuPy, as far as it is used. Device memory is the host's."""

    context: int | None = None
    device: int = 0
    said: list[tuple[Any, ...]] = field(default_factory=list)
    refuses: bool = False

    def _count(self) -> int:
        if self.refuses:
            raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return 1

    def package(self) -> Any:
        runtime = SimpleNamespace(
            getDevice=lambda: self.device,
            getDeviceCount=self._count,
            setDevice=self._set,
            free=lambda pointer: self._say("free", pointer),
            memcpyDeviceToHost=2,
            memsetAsync=lambda *a: self._say("memset", *a[1:]),
            memcpyAsync=self._copy,
            streamSynchronize=lambda stream: self._say("wait", stream),
        )
        driver = SimpleNamespace(
            launchKernel=lambda *a: None,
            ctxGetDevice=self._current,
            CUDADriverError=NoContextError,
            funcSetAttribute=lambda *a: self._say("attribute", *a),
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT=9,
        )
        memory = (ctypes.c_uint64 * 4)()
        place = SimpleNamespace(ptr=ctypes.addressof(memory), keep=memory)
        other = (ctypes.c_uint64 * 4)()
        pinned = SimpleNamespace(ptr=ctypes.addressof(other), keep=other)
        cuda = SimpleNamespace(
            runtime=runtime,
            driver=driver,
            function=SimpleNamespace(Module=lambda: self),
            alloc=lambda size: place,
            alloc_pinned_memory=lambda size: pinned,
        )
        return SimpleNamespace(cuda=cuda)

    def load(self, code: bytes) -> None:
        if self.refuses:
            raise NoContextError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        self._say("load", code)

    def get_function(self, name: str) -> Any:
        return SimpleNamespace(ptr=len(name))

    def _say(self, *what: Any) -> None:
        self.said.append(what)

    def _set(self, device: int) -> None:
        self._say("device", device)
        self.device = self.context = device

    def _current(self) -> int:
        if self.context is None:
            raise NoContextError
        return self.context

    def _copy(self, to: int, of: int, size: int, kind: int, stream: int) -> None:
        self._say("copy", size, kind, stream)
        ctypes.memmove(to, of, size)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Bindings:
    found = Bindings()
    monkeypatch.setattr(module, "cupy", lambda what="": found.package())
    return found


def test_a_thread_without_a_context_gets_one(bindings: Bindings) -> None:
    driver = Driver()
    assert driver.current() == -1
    with driver.on(0):
        assert bindings.said == [("device", 0), ("free", 0)]
        assert driver.current() == 0


def test_the_device_is_chosen_and_left(bindings: Bindings) -> None:
    bindings.context = 0
    driver = Driver()
    with contextlib.suppress(KeyError), driver.on(2):
        assert driver.current() == 2
        raise KeyError
    assert bindings.said == [("device", 2), ("free", 0), ("device", 0)]


def test_nothing_is_done_where_the_device_is_the_current_one(bindings: Bindings) -> None:
    bindings.context = bindings.device = 1
    with Driver().on(1):
        pass
    assert bindings.said == []


def test_a_driver_that_is_missing_or_too_old(bindings: Bindings) -> None:
    machine.this_machine.cache_clear()
    try:
        assert machine.this_machine() is machine.this_machine()
        machine.this_machine.cache_clear()
        bindings.refuses = True
        with pytest.raises(ArgumentError, match=r"CuPy can use: cudaErrorInsufficientDriver"):
            machine.this_machine()
    finally:
        machine.this_machine.cache_clear()


def test_loading(bindings: Bindings) -> None:
    loaded = Driver().load(b"code", {"f": 0, "ff": 48 << 10, "fff": 100 << 10})
    assert loaded.kernels == {"f": 1, "ff": 2, "fff": 3}
    shares = [("attribute", k, 9, 100) for k in (2, 3)]  # two blocks need more than the least
    memory = ("attribute", 3, 8, 100 << 10)
    assert bindings.said == [("load", b"code"), shares[0], memory, shares[1]]
    bindings.refuses = True
    with pytest.raises(CompileError, match="cannot be loaded: CUDA_ERROR_NO_BINARY_FOR_GPU"):
        Driver().load(b"code", {})


def test_a_record(bindings: Bindings) -> None:
    record = Driver().record(2)
    assert bindings.said == [("memset", 0, 16, 0), ("wait", 0)]
    ctypes.c_uint64.from_address(record.address + 8).value = 7
    assert record.read(5) == (0, 7)
    assert bindings.said[2:] == [("copy", 16, 2, 5), ("wait", 5)]
