"""A def for given sizes, ready to run: from object code that was kept, else compiled and kept.

What compiles is imported only when something has to be compiled: finding kept code takes a
fraction of the time of importing the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tcl.codegen.cpu.launch import Launcher
from tcl.codegen.cpu.load import Loaded
from tcl.codegen.cpu.objects import Ingredients, KeptCode, KeptSite, ObjectCache, versions
from tcl.codegen.device import host_cpu
from tcl.codegen.errors import CompileError
from tcl.codegen.options import MappingOptions
from tcl.grammar.canonical import canonical_text
from tcl.grammar.sized import SizedDef

if TYPE_CHECKING:
    from tcl.codegen.cpu.kernel import CpuKernel


def ready(
    sized: SizedDef,
    options: MappingOptions,
    strides: Sequence[tuple[int, ...]],
    *,
    unchecked: bool = False,
) -> Launcher:
    """The kernel for arrays of these strides (in bytes; inputs, then outputs).

    Raises ``OptionsError`` if the options cannot be applied and ``CompileError`` if the kernel
    cannot be built.
    """
    tensors = sized.checked.inputs + sized.checked.outputs
    names = [t.name for t in tensors]
    digest = ingredients(sized, options, strides, unchecked).digest
    cache = ObjectCache()
    kept = cache.get(digest)
    if kept is not None:
        try:
            loaded = Loaded(kept.object_code)
        except CompileError:  # for instance, this machine's C library lacks a function
            kept = None
        else:
            return Launcher(loaded, len(names), kept.scratch, _message(kept.sites, names))

    from tcl.codegen.cpu.kernel import compile_cpu

    kernel = compile_cpu(
        sized, options, strides=dict(zip(names, strides, strict=True)), unchecked=unchecked
    )
    kept = to_keep(kernel, names)
    cache.put(digest, kept)
    return Launcher(kernel.loaded, len(names), kept.scratch, _message(kept.sites, names))


def ingredients(
    sized: SizedDef,
    options: MappingOptions,
    strides: Sequence[tuple[int, ...]],
    unchecked: bool,
) -> Ingredients:
    """What the object code of this kernel depends on."""
    tensors = sized.checked.inputs + sized.checked.outputs
    return Ingredients(
        definition=canonical_text(sized.checked),
        shapes=tuple(sized.shapes[t.name] for t in tensors),
        strides=tuple(strides),
        aligned=False,
        unchecked=unchecked,
        options=options.to_json(),
        device=host_cpu(),
        versions=versions(),
    )


def to_keep(kernel: CpuKernel, names: Sequence[str]) -> KeptCode:
    """All of a compiled kernel that a run needs; ``names`` are those of its arguments."""
    from tcl.codegen import ir
    from tcl.codegen.dtypes import storage_dtype

    return KeptCode(
        object_code=kernel.object_code,
        sites=tuple(
            KeptSite(names.index(s.tensor), s.axis, s.first, s.extent, s.unsigned)
            for s in kernel.source.sites
        ),
        scratch=tuple(
            (t.layout.extents, storage_dtype(t.layout.type).name)
            for t in kernel.program.tensors
            if t.role is ir.Role.SCRATCH
        ),
    )


def _message(sites: Sequence[KeptSite], names: Sequence[str]) -> Callable[[int, int], str]:
    def message(site: int, value: int) -> str:
        from tcl.codegen.cpu.memory import Site

        s = sites[site]
        return Site(names[s.tensor], s.axis, s.first, s.extent, s.unsigned).message(value)

    return message
