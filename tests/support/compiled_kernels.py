"""A def for one set of sizes, compiled for this CPU, with all that was made on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.codegen.cpu.emit.emit import KernelSource, emit_program
from tcl.codegen.cpu.object_code.compile import assembly, compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.grammar.ranges.sized import SizedDef

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class CpuKernel:
    """Ready to run. Safe to call from several threads at once; calls release the GIL."""

    program: ir.Built
    source: KernelSource
    code: KernelCode
    device: CpuProfile
    launcher: Launcher

    @property
    def object_code(self) -> bytes:
        """The object file."""
        return self.code.object_code

    @property
    def llvm(self) -> str:
        """The kernel as LLVM IR."""
        return self.source.text

    @property
    def asm(self) -> str:
        """The kernel as assembly."""
        return assembly(self.source.text, self.device)

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run on arrays in the def's order, of the shapes, strides and types that it was compiled
        for (16-bit floats also as uint16 bits), writing ``outputs`` in place."""
        self.launcher([np.asarray(each) for each in (*inputs, *outputs)])


def compile_cpu(
    sized: SizedDef,
    options: MappingOptions,
    *,
    strides: Mapping[str, tuple[int, ...]] | None = None,
    device: CpuProfile | None = None,
    unchecked: bool = False,
    all_threads: bool = True,
) -> CpuKernel:
    """``strides``: bytes per dimension for tensors that are not row-major."""
    layouts = cpu_layouts(sized, strides)
    made = plan(sized, options, device or host_cpu(), layouts, all_threads=all_threads)
    program, device = made.scheduled(), made.target
    source = emit_program(program, device, unchecked=unchecked)
    code = kernel_code(program, source, compile_object(source.text, device), device)
    names = [t.name for t in program.tensors if t.role is not ir.Role.SCRATCH]
    return CpuKernel(program, source, code, device, Launcher(code, names))
