"""A def for a class of sizes on a GPU: one module, which is given the sizes when it is launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.cuda.emit.module import Module
from tcl.codegen.cuda.run.cubin_store import cubin
from tcl.codegen.cuda.run.launch import Launcher, loaded_module
from tcl.codegen.cuda.run.ready import Machine
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.sized import SizedDef
from tcl.grammar.varying import Undecided, formula, value_of

Numbers: TypeAlias = tuple[Any, ...]
"""Formulas, as of ``grammar.varying.formula``."""


@dataclass(frozen=True, slots=True)
class ModuleForAll:
    """A module whose numbers depend on sizes."""

    module: Module
    launches: tuple[tuple[Any, Numbers], ...]
    """Per launch: the blocks, and the numbers that it takes."""
    layouts: tuple[tuple[Numbers, Numbers, Numbers], ...]
    """Per tensor: its extents, strides and first indices."""
    sites: tuple[tuple[Any, Any], ...]
    """Per site: the first index and the extent."""

    @staticmethod
    def of(module: Module) -> ModuleForAll:
        """The formulas of a module."""
        layouts = (t.layout for t in module.tensors)
        return ModuleForAll(
            module,
            tuple((formula(x.blocks), _formulas(x.sizes)) for x in module.launches),
            tuple(
                (_formulas(x.extents), _formulas(x.strides), _formulas(x.origin)) for x in layouts
            ),
            tuple((formula(x.first), formula(x.extent)) for x in module.sites),
        )

    def at(self, sizes: Mapping[str, int]) -> Module:
        """The module with these values of the sizes that vary."""

        def values(numbers: Numbers) -> tuple[int, ...]:
            return tuple([value_of(n, sizes) for n in numbers])

        module = self.module
        launches = tuple(
            replace(launch, blocks=value_of(blocks, sizes), sizes=values(taken))
            for launch, (blocks, taken) in zip(module.launches, self.launches, strict=True)
        )
        tensors = tuple(
            replace(
                tensor,
                layout=replace(
                    tensor.layout, extents=values(n), strides=values(s), origin=values(o)
                ),
            )
            for tensor, (n, s, o) in zip(module.tensors, self.layouts, strict=True)
        )
        sites = tuple(
            replace(site, first=value_of(first, sizes), extent=value_of(extent, sizes))
            for site, (first, extent) in zip(module.sites, self.sites, strict=True)
        )
        return Module(module.source, launches, tensors, sites)


def _formulas(numbers: Sequence[int]) -> Numbers:
    return tuple(map(formula, numbers))


def ready_for_all(
    sized: SizedDef,
    options: MappingOptions,
    aligned: Sequence[bool],
    device: int,
    machine: Machine,
    *,
    unchecked: bool = False,
) -> Callable[[Mapping[str, int]], Launcher]:
    """The kernel for row-major arrays of all sizes of a class, of which those that are ``aligned``
    begin at a multiple of ``WIDEST``; of some sizes, what launches it for them.

    Raises ``Undecided`` if there can be no such kernel, ``OptionsError`` if the options cannot be
    applied and ``CompileError`` if it cannot be built.
    """
    profile = machine.profile(device)
    names = [t.name for t in sized.checked.inputs + sized.checked.outputs]
    wide = [name for name, fits in zip(names, aligned, strict=True) if fits]
    module = emitted_for_all(
        options,
        lambda chosen: machine.emit(
            sized, chosen, profile, gpu_layouts(sized, None, wide), unchecked
        ),
    )
    driver = machine.driver
    loaded = loaded_module(module, cubin(module, profile).code, driver, device)
    found = ModuleForAll.of(module)
    return lambda sizes: Launcher.of(found.at(sizes), loaded, driver, device)


def emitted_for_all(options: MappingOptions, emit: Callable[[MappingOptions], Module]) -> Module:
    """The module that is emitted with these options. What a preset would split is left whole where
    the number of parts depends on the sizes."""
    try:
        return emit(options)
    except (Undecided, OptionsError):
        if options.default.split is not None:
            raise
        return emit(replace(options, default=replace(options.default, split=())))
