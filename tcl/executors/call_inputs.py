"""The inputs of a call, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.arrays.arguments import Array
from tcl.arrays.given import Given, given_inputs
from tcl.arrays.libraries import HOST, CudaLibrary
from tcl.common.dataclass import dataclass
from tcl.executors import machine
from tcl.grammar.tree.checked import CheckedDef

if TYPE_CHECKING:
    from tcl.codegen.devices.gpu import GpuProfile


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs that fit a def."""

    given: Given
    gpu: GpuProfile | None
    """That they lie on; None for the host."""

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What they are like; on a GPU their values cannot be read."""
        return self.given.views

    def values(self) -> tuple[Array, ...]:
        """Arrays that can be read: of a GPU's, copies, which lie in memory as the inputs do."""
        given = self.given
        if given.device == HOST:
            return given.views
        assert isinstance(given.library, CudaLibrary)
        driver = machine.driver()
        with driver.on(given.device):
            stream = given.library.stream(given.device)
            return tuple(
                _copied(view, lambda address, size: driver.download(address, size, stream))
                for view in given.views
            )


def inputs_of(checked: CheckedDef, arguments: Sequence[Any]) -> Inputs:
    """The inputs of a call, checked as calls check them. Raises ``ArgumentError``."""
    given = given_inputs(checked, arguments, machine.driver)
    if given.device == HOST:
        return Inputs(given, None)
    here = machine.this_machine()
    with here.driver.on(given.device):
        return Inputs(given, here.profile(given.device))


def _copied(view: Array, download: Any) -> Array:
    """The values of memory on a device, with its strides."""
    if view.size == 0:
        return np.zeros(view.shape, view.dtype)
    reach = [s * (n - 1) for s, n in zip(view.strides, view.shape, strict=True)]
    below = -sum(min(0, r) for r in reach)
    size = sum(map(abs, reach)) + view.itemsize
    raw = download(view.ctypes.data - below, size)
    return np.ndarray(view.shape, view.dtype, raw, below, view.strides)
