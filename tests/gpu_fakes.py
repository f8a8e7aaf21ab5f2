"""A contender of the GPU benchmark that misbehaves, by def: for its tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu.clock import Clock, DeviceForm, HostClock
from benchmarks.gpu.peer import Probe, Setting
from tcl.bench.arrays import Array
from tcl.bench.task import Task


class BreakableClock(HostClock):
    """The host's clock, of a device that can fail."""

    broken = False

    def check(self) -> None:
        if self.broken:
            raise RuntimeError("an illegal memory access was encountered")


class Fake:
    """Wrong on matrix products, dies on softmax, breaks the device on the stencil, refuses
    layernorm, and is right about row sums."""

    def __init__(self) -> None:
        self._clock = BreakableClock()
        self.clock: Clock = self._clock

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
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
        return {}

    def probes(self) -> Iterator[Probe]:
        def fail() -> Any:
            raise ValueError("no memory")

        yield Probe("a copy", "copy", 1000, lambda: lambda: None)
        yield Probe("a failure", "copy", 1000, fail)

    def latencies(self) -> dict[str, list[float]]:
        return {"fake": [1e-6, 2e-6, 3e-6]}

    def close(self) -> None:
        pass


def make(setting: Setting) -> Fake:
    """The contender."""
    return Fake()
