"""A def for given sizes on a device, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run.cubin_store import cubin
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.devices.cupy_driver import Driver
from tcl.codegen.devices.gpu import GpuProfile, of_device
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.ranges.sized import SizedDef

Emit: TypeAlias = Callable[
    [SizedDef, MappingOptions, GpuProfile, Mapping[str, ir.Layout], bool], CudaModule
]
"""From a def and options to CUDA C++, for tensors of these layouts, checked or not."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What running on a GPU needs besides the def."""

    driver: Driver
    profile: Callable[[int], GpuProfile] = of_device
    """Of a device."""
    emit: Emit = emit_module


def ready(
    sized: SizedDef,
    options: MappingOptions,
    strides: Sequence[tuple[int, ...]],
    aligned: Sequence[bool],
    device: int,
    machine: Machine,
    *,
    unchecked: bool = False,
) -> CudaLauncher:
    """The kernel for arrays of these strides (in bytes; inputs, then outputs), of which those that
    are ``aligned`` begin at a multiple of ``WIDEST``.

    Raises ``OptionsError`` if the options cannot be applied and ``CompileError`` if the kernel
    cannot be built.
    """
    profile = machine.profile(device)
    names = [t.name for t in sized.checked.inputs + sized.checked.outputs]
    wide = [name for name, fits in zip(names, aligned, strict=True) if fits]
    layouts = gpu_layouts(sized, dict(zip(names, strides, strict=True)), wide)
    module = machine.emit(sized, options, profile, layouts, unchecked)
    return CudaLauncher(module, cubin(module, profile).code, machine.driver, device)
