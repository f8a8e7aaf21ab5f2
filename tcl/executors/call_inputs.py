"""The inputs of a call, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.arrays.arguments import Array, input_arrays
from tcl.arrays.cuda_arguments import Given, cuda_inputs, shadows
from tcl.arrays.cuda_libraries import on_cuda
from tcl.arrays.cuda_shadow import Shadow
from tcl.codegen.cuda.run.ready import Machine
from tcl.codegen.devices.gpu import GpuProfile
from tcl.executors.cuda_executor import this_machine
from tcl.grammar.checked import CheckedDef


@dataclass(frozen=True, slots=True)
class HostInputs:
    """Inputs in the host's memory."""

    arrays: tuple[Array, ...]

    def values(self) -> tuple[Array, ...]:
        """Arrays that can be read."""
        return self.arrays


@dataclass(frozen=True, slots=True)
class GpuInputs:
    """Inputs on a CUDA device."""

    given: Given
    arrays: tuple[Shadow, ...]
    """What they are like; their values cannot be read."""
    gpu: GpuProfile

    @property
    def device(self) -> int:
        """The device's number."""
        return self.given.device

    def values(self) -> tuple[Array, ...]:
        """Arrays that can be read: copies, which lie in memory as the inputs do."""
        driver, device = this_machine().driver, self.device
        with driver.on(device):
            stream = self.given.library.stream(device)
            return tuple(
                _copied(a, lambda address, size: driver.download(address, size, stream))
                for a in self.arrays
            )


def inputs_of(checked: CheckedDef, arguments: Sequence[Any]) -> HostInputs | GpuInputs:
    """The inputs of a call, checked as calls check them. Raises ``ArgumentError``."""
    if not on_cuda(arguments):
        return HostInputs(input_arrays(checked, arguments))
    machine = this_machine()
    return gpu_inputs(checked, cuda_inputs(checked, arguments, machine.driver), machine)


def gpu_inputs(checked: CheckedDef, given: Given, machine: Machine) -> GpuInputs:
    """What the inputs of a call are like."""
    with machine.driver.on(given.device):
        return GpuInputs(given, shadows(checked, given), machine.profile(given.device))


def _copied(standing: Shadow, download: Any) -> Array:
    """The values of memory on a device, with its strides."""
    if standing.size == 0:
        return np.zeros(standing.shape, standing.dtype)
    reach = [s * (n - 1) for s, n in zip(standing.strides, standing.shape, strict=True)]
    below = -sum(min(0, r) for r in reach)
    size = sum(map(abs, reach)) + standing.itemsize
    raw = download(standing.ctypes.data - below, size)
    return np.ndarray(standing.shape, standing.dtype, raw, below, standing.strides)
