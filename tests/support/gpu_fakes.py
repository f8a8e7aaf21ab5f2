"""For tests of the GPU benchmark: a contender that misbehaves, and devices that are not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.gpu.clock import DeviceForm, HostClock
from benchmarks.gpu.peer import GpuPeer, Probe, Setting
from tcl.bench.task import Array, Task


class BreakableClock(HostClock):
    """The host's clock, of a device that can fail."""

    broken = False

    def check(self) -> None:
        if self.broken:
            raise RuntimeError("an illegal memory access was encountered\nOf this no word matters.")


class Fake(GpuPeer):
    """Wrong on matrix products, dies on softmax, breaks the device on the stencil, refuses
    layernorm, and is right about row sums, if not in its fastest form."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.clock = self._clock = BreakableClock()

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        if task.entry == "row_sum":
            nothing = [np.zeros(task.sizes["M"], np.float32)]
            form = DeviceForm(lambda count: [lambda: None] * count, lambda: nothing)
            yield "careless", lambda: form
        if task.entry != "column_sum":
            yield "only", partial(self._form, task, dict(inputs))

    def _form(self, task: Task, inputs: dict[str, Array]) -> DeviceForm:
        out: Any = np.zeros(task.sizes.get("M", 1), np.float32)

        def run() -> object:
            if task.entry == "softmax_twice":
                os._exit(3)
            if task.entry == "stencil":
                self._clock.broken = True
            if task.entry == "layernorm":
                raise ValueError("no such thing")
            return np.sum(inputs.get("I", np.zeros((len(out), 1))), 1, out=out)

        if task.entry == "matmul":
            wrong = np.zeros((task.sizes["M"], task.sizes["N"]), np.float32)
            return DeviceForm(lambda count: [run] * count, lambda: [wrong])
        return DeviceForm(lambda count: [run] * count, lambda: [out])

    def facts(self, task: Task) -> dict[str, Any]:
        raise ValueError("nothing is known")

    def probes(self) -> Iterator[Probe]:
        def fail() -> Any:
            raise ValueError("no memory")

        yield Probe("a copy", "copy", 1000, lambda: lambda: None)
        yield Probe("a failure", "copy", 1000, fail)

    def latencies(self) -> dict[str, list[float]]:
        return {"fake": [1e-6, 2e-6, 3e-6]}


make = Fake


class Recorder:
    """A device that does nothing, and notes what it is asked for."""

    def __init__(self, *, capture: str = "works") -> None:
        self.log: list[str] = []
        self.capture = capture
        """``works``, ``refused`` by the work itself, or ``breaks`` when it ends."""
        self.capturing = False

    def work(self, name: str) -> Callable[[], object]:
        """Something to launch."""

        def run() -> None:
            if self.capturing and self.capture == "refused":
                raise NotImplementedError("not while capturing")
            self.log.append(("captured " if self.capturing else "") + name)

        return run

    def note(self, text: str) -> Callable[..., None]:
        """A function that notes that it was called."""
        return lambda *_, **__: self.log.append(text)

    @contextlib.contextmanager
    def inside(self, text: str) -> Iterator[None]:
        """A block that is noted."""
        self.log.append(f"enter {text}")
        yield
        self.log.append(f"leave {text}")


def fake_torch(device: Recorder) -> Any:
    """What ``TorchClock`` uses of torch."""

    @contextlib.contextmanager
    def graph(made: Any, stream: Any, capture_error_mode: str) -> Iterator[None]:
        device.capturing = True
        try:
            yield
        finally:
            device.capturing = False
            if device.capture != "works":
                raise RuntimeError("capture failed")

    def event(enable_timing: bool) -> Any:
        return SimpleNamespace(
            record=device.note("event"),
            synchronize=device.note("wait"),
            elapsed_time=lambda other: 3.0,
        )

    cuda = SimpleNamespace(
        Stream=lambda: "stream",
        Event=event,
        synchronize=device.note("synchronize"),
        stream=lambda stream: device.inside("stream"),
        CUDAGraph=lambda: SimpleNamespace(replay=device.note("replay")),
        graph=graph,
        set_stream=device.note("set stream"),
        default_stream=lambda: "default",
    )
    return SimpleNamespace(
        cuda=cuda,
        ones=lambda count, device: "ones",
        empty=lambda shape, device: "total",
        sum=device.note("flush"),
    )


def fake_cupy(device: Recorder) -> Any:
    """What ``CupyClock`` uses of CuPy."""

    class Stream:
        def __init__(self, non_blocking: bool) -> None:
            assert non_blocking

        def __enter__(self) -> None:
            device.log.append("enter stream")

        def __exit__(self, *_: object) -> None:
            device.log.append("leave stream")

        synchronize = staticmethod(device.note("wait"))

        def begin_capture(self) -> None:
            device.capturing = True

        def end_capture(self) -> Any:
            device.capturing = False
            if device.capture == "breaks":
                raise RuntimeError("capture failed")
            return SimpleNamespace(launch=device.note("replay"))

    event = SimpleNamespace(record=device.note("event"), synchronize=device.note("wait"))
    cuda = SimpleNamespace(
        Stream=Stream,
        Event=lambda: event,
        get_elapsed_time=lambda start, stop: 3.0,
        MemoryPool=lambda: SimpleNamespace(malloc="malloc"),
        using_allocator=lambda malloc: device.inside("pool"),
        runtime=SimpleNamespace(deviceSynchronize=device.note("synchronize")),
    )
    return SimpleNamespace(
        cuda=cuda,
        ones=lambda count, dtype: SimpleNamespace(sum=device.note("flush")),
        empty=lambda shape, dtype: "total",
    )


def fake_nvml(now: int) -> Any:
    """What ``Nvml`` uses of pynvml."""
    return SimpleNamespace(
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
        nvmlDeviceGetClockInfo=lambda device, kind: now,
    )
