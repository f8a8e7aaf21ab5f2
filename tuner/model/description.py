"""How candidates for a kind of device are described: the one place that knows the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.common.lazy import Lazy
from tcl.tuner.model.described import Description

if TYPE_CHECKING:
    from tcl.tuner.model import cpu_description, gpu_description
else:
    cpu_description = Lazy("tcl.tuner.model.cpu_description")
    gpu_description = Lazy("tcl.tuner.model.gpu_description")

Device: TypeAlias = CpuProfile | GpuProfile


def description(backend: str) -> Description[Any, Any]:
    """For what this makes kernels for: ``cpu`` or ``cuda``, as profiles have it."""
    if backend == CpuProfile.backend:
        return cpu_description.CPU
    if backend == GpuProfile.backend:
        return gpu_description.GPU
    raise KeyError(backend)


BACKENDS = (CpuProfile.backend, GpuProfile.backend)
"""For which there are models."""
