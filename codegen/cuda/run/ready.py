"""A def for given sizes, or for a class of sizes, on a device, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run.compile import cubin
from tcl.codegen.cuda.run.launch import CudaLauncher, loaded_module
from tcl.codegen.devices.cupy_driver import Driver
from tcl.codegen.devices.gpu import GpuProfile, of_device
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import Undecided, calculator, formula

_T = TypeVar("_T")
Emit: TypeAlias = Callable[
    [SizedDef, MappingOptions, GpuProfile, Mapping[str, ir.Layout], bool], CudaModule
]
"""From a def and options to CUDA C++, for tensors of these layouts, checked or not."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What running on a GPU needs besides the def."""

    driver: Driver
    profile: Callable[[int], GpuProfile] = of_device
    emit: Emit = emit_module

    def module(
        self,
        sized: SizedDef,
        options: MappingOptions,
        strides: Sequence[tuple[int, ...]] | None,
        aligned: Sequence[bool],
        device: int,
        unchecked: bool,
    ) -> CudaModule:
        """The source for arrays as ``ready`` has them; of no strides row-major ones."""
        names = [t.name for t in sized.checked.inputs + sized.checked.outputs]
        wide = [name for name, fits in zip(names, aligned, strict=True) if fits]
        lie = None if strides is None else dict(zip(names, strides, strict=True))
        layouts = gpu_layouts(sized, lie, wide)
        return self.emit(sized, options, self.profile(device), layouts, unchecked)


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
    module = machine.module(sized, options, strides, aligned, device, unchecked)
    code = cubin(module, machine.profile(device)).code
    return CudaLauncher(module, code, machine.driver, device, sized)


@dataclass(frozen=True, slots=True)
class ModuleForAll:
    """A module whose numbers depend on sizes."""

    module: CudaModule
    numbers: Callable[[Mapping[str, int]], tuple[Any, ...]]
    """Gives, for some of the sizes: per launch, the blocks and the numbers that it takes; per
    tensor, its extents, strides and first indices; per site, the first index and the extent."""

    @staticmethod
    def from_module(module: CudaModule) -> ModuleForAll:
        layouts = (t.layout for t in module.tensors)
        launches = tuple((formula(x.blocks), _formulas(x.sizes)) for x in module.launches)
        boxes = tuple(tuple(map(_formulas, (x.extents, x.strides, x.origin))) for x in layouts)
        sites = tuple((formula(x.first), formula(x.extent)) for x in module.sites)
        return ModuleForAll(module, calculator((launches, boxes, sites)))

    def at(self, sizes: Mapping[str, int]) -> CudaModule:
        """The module with these values of the sizes that vary."""
        module = self.module
        grids, boxes, ends = self.numbers(sizes)
        launches = tuple(
            replace(launch, blocks=blocks, sizes=taken)
            for launch, (blocks, taken) in zip(module.launches, grids, strict=True)
        )
        tensors = tuple(
            replace(t, layout=replace(t.layout, extents=extents, strides=strides, origin=origin))
            for t, (extents, strides, origin) in zip(module.tensors, boxes, strict=True)
        )
        sites = tuple(
            replace(site, first=first, extent=extent)
            for site, (first, extent) in zip(module.sites, ends, strict=True)
        )
        return CudaModule(module.source, launches, tensors, sites)


def _formulas(numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(map(formula, numbers))


def ready_for_all(
    sized: SizedDef,
    options: MappingOptions,
    aligned: Sequence[bool],
    device: int,
    machine: Machine,
    *,
    unchecked: bool = False,
) -> Callable[[Mapping[str, int]], CudaLauncher]:
    """The kernel for row-major arrays of all sizes of a class, of which those that are ``aligned``
    begin at a multiple of ``WIDEST``; of some sizes, what launches it for them.

    Raises ``Undecided`` if there can be no such kernel, ``OptionsError`` if the options cannot be
    applied and ``CompileError`` if it cannot be built.
    """
    module = emitted_for_all(
        options, lambda chosen: machine.module(sized, chosen, None, aligned, device, unchecked)
    )
    code, driver = cubin(module, machine.profile(device)).code, machine.driver
    loaded = loaded_module(module, code, driver, device)
    found = ModuleForAll.from_module(module)
    return lambda sizes: CudaLauncher(found.at(sizes), loaded, driver, device, sized)


def emitted_for_all(options: MappingOptions, emit: Callable[[MappingOptions], _T]) -> _T:
    """What is emitted with these options for all sizes of a class. What a preset would split is
    left whole where the number of parts depends on the sizes."""
    try:
        return emit(options)
    except (Undecided, OptionsError):
        if options.default.split is not None:
            raise
        return emit(replace(options, default=replace(options.default, split=())))
