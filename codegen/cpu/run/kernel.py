"""Kernels of a program, compiled for a CPU, and what a run needs of them."""

from __future__ import annotations

import json

from tcl.codegen.common.dtypes import storage_dtype
from tcl.codegen.cpu.emit.emit import KernelSource, emit_program
from tcl.codegen.cpu.emit.sizes import sizes_of
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode, NumberedSite
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import formula, representative


def compiled(program: ir.Built, device: CpuProfile, *, unchecked: bool = False) -> KernelCode:
    """All that a run needs. ``unchecked`` leaves out the checks of data-dependent subscripts: an
    index out of range is then undefined behaviour. Raises ``CompileError``."""
    source = emit_program(program, device, unchecked=unchecked)
    return kernel_code(program, source, compile_object(source.text, device), device)


def kernel_code(
    program: ir.Built, source: KernelSource, object_code: bytes, device: CpuProfile
) -> KernelCode:
    """What a run of a compiled kernel needs."""
    arguments = [t.name for t in program.tensors if t.role is not ir.Role.SCRATCH]
    scratch = [t for t in program.tensors if t.role is ir.Role.SCRATCH]
    shapes = [[*map(formula, t.layout.extents)] for t in scratch]
    boxes = [(formula(s.first), formula(s.extent)) for s in source.sites]
    names = [s.name for s in sizes_of(program)]
    return KernelCode(
        object_code=object_code,
        sites=tuple(
            NumberedSite(
                arguments.index(s.tensor),
                s.axis,
                representative(s.first),
                representative(s.extent),
                s.unsigned,
            )
            for s in source.sites
        ),
        scratch=tuple(
            (
                tuple(map(representative, t.layout.extents)),
                storage_dtype(t.layout.type).name,
                t.private,
            )
            for t in scratch
        ),
        regions=source.regions,
        threads=device.threads,
        formulas=json.dumps([names, shapes, boxes]) if names else "",
    )
