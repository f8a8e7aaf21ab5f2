"""Which kinds of devices there are models of: the one place that knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.common.lazy import Lazy
from tcl.tuner.model.subject import Subject

if TYPE_CHECKING:
    from tcl.tuner.model import cpu_subject, gpu_subject
else:
    cpu_subject = Lazy("tcl.tuner.model.cpu_subject")
    gpu_subject = Lazy("tcl.tuner.model.gpu_subject")

Device: TypeAlias = CpuProfile | GpuProfile
BACKENDS = (CpuProfile.backend, GpuProfile.backend)
"""For which there are models."""


def subject_type(backend: str) -> type[Subject[Any, Any]]:
    """For what this makes kernels for: ``cpu`` or ``cuda``, as profiles have it."""
    if backend == CpuProfile.backend:
        return cpu_subject.CpuSubject
    if backend == GpuProfile.backend:
        return gpu_subject.GpuSubject
    raise KeyError(backend)
