"""A def for one set of sizes, compiled for this CPU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tcl.codegen.common.dtypes import storage_dtype
from tcl.codegen.cpu.emit.emit import KernelSource, emit_program
from tcl.codegen.cpu.emit.sizes import sizes_of
from tcl.codegen.cpu.object_code.compile import assembly, compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode, NumberedSite
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import formula, representative

_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class CpuKernel:
    """Ready to run. Safe to call from several threads at once; calls release the GIL."""

    program: ir.Built
    arguments: tuple[ir.Tensor, ...]
    """The def's tensors, as callers see them."""
    source: KernelSource
    code: KernelCode = field(repr=False)
    """All that a run needs."""
    device: CpuProfile
    launcher: Launcher = field(repr=False)
    """The code in this process."""

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

    def __call__(self, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> None:
        """Run on arrays in the def's order, writing ``outputs`` in place.

        Arrays have the shapes of the sized def, the strides the kernel was compiled for, and
        the tensors' types (16-bit floats also as uint16 bits); no output may overlap another
        array. Raises ``ArgumentError`` if an array does not fit, and ``IndexError`` after the
        call if a data-dependent subscript left its tensor.
        """
        arrays = (*inputs, *outputs)
        if len(arrays) != len(self.arguments):
            raise ArgumentError(
                f"{len(self.arguments)} arrays are needed, but {len(arrays)} were given"
            )
        self.launcher([_fitted(*each) for each in zip(self.arguments, arrays, strict=True)])


def compile_cpu(
    sized: SizedDef,
    options: MappingOptions,
    *,
    strides: Mapping[str, tuple[int, ...]] | None = None,
    device: CpuProfile | None = None,
    unchecked: bool = False,
    all_threads: bool = True,
) -> CpuKernel:
    """Compile ``sized`` for this CPU.

    ``strides`` holds bytes per dimension for tensors that are not row-major; they are compiled
    in. ``unchecked`` leaves out the checks of data-dependent subscripts: an index out of range
    is then undefined behaviour. ``device.threads`` is the number of threads that calls run on;
    unless ``all_threads`` are wanted, those are left asleep that are not worth waking.
    Raises ``OptionsError`` if the options cannot be applied and ``CompileError`` if the kernel
    cannot be built.
    """
    given = cpu_layouts(sized, strides)
    made = plan(sized, options, device or host_cpu(), given, all_threads=all_threads)
    program, device = made.scheduled(), made.target
    source = emit_program(program, device, unchecked=unchecked)
    code = kernel_code(program, source, compile_object(source.text, device), device)
    outer = (t for t in program.tensors if t.role is not ir.Role.SCRATCH)
    arguments = tuple(replace(t, layout=given[t.name]) for t in outer)
    launcher = Launcher(code, [t.name for t in arguments])
    return CpuKernel(program, arguments, source, code, device, launcher)


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


def _fitted(tensor: ir.Tensor, array: _Array) -> _Array:
    layout = tensor.layout
    if not isinstance(array, np.ndarray):  # NumPy's scalars have all that is asked of it below
        raise ArgumentError(f"{tensor.name} must be an array, but is {type(array).__name__}")
    array = np.asarray(array)  # a subclass may say of its memory what it likes
    if array.shape != layout.extents:
        raise ArgumentError(
            f"{tensor.name} must have shape {layout.extents}, but has {array.shape}"
        )
    stored = storage_dtype(layout.type)
    if array.dtype != stored and array.dtype.name != layout.type.name:
        raise ArgumentError(f"{tensor.name} must be {layout.type}, but is {array.dtype}")
    if not array.dtype.isnative:
        raise ArgumentError(f"{tensor.name} is in foreign byte order ({array.dtype.str})")
    moving = [k for k, extent in enumerate(layout.extents) if extent > 1]
    if array.size and any(array.strides[k] != layout.strides[k] for k in moving):
        raise ArgumentError(
            f"the kernel was compiled for {tensor.name} with strides {layout.strides}, "
            f"not {array.strides}"
        )
    if not array.flags.aligned:
        raise ArgumentError(f"{tensor.name} is not aligned in memory")
    if tensor.role is ir.Role.OUTPUT and not array.flags.writeable:
        raise ArgumentError(f"{tensor.name} is an output, but its array is read-only")
    return array
