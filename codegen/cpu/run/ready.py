"""A def for given sizes, ready to run: from object code that was kept, else compiled and kept.

What compiles is imported only when something has to be compiled: finding kept code takes a
fraction of the time of importing the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.common.store import FolderStore
from tcl.codegen.cpu.object_code.ingredients import Ingredients, versions
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import CompileError
from tcl.common.forks import whole
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.canonical import canonical_text


def ready(
    sized: SizedDef,
    options: MappingOptions,
    strides: Sequence[tuple[int, ...]],
    *,
    unchecked: bool = False,
    threads: int = 1,
) -> Launcher:
    """The kernel for arrays of these strides (in bytes; inputs, then outputs), on at most so many
    threads: on fewer where that is not worth it.

    Raises ``OptionsError`` if the options cannot be applied and ``CompileError`` if the kernel
    cannot be built.
    """
    tensors = sized.checked.inputs + sized.checked.outputs
    names = [t.name for t in tensors]
    digest = ingredients(sized, options, strides, unchecked, threads).digest
    store = FolderStore()
    kept = store.get(digest, KernelCode)
    if kept is not None:
        try:
            return Launcher(kept, names, sized=sized)
        except CompileError:  # for instance, this machine's C library lacks a function
            pass

    with whole():
        from tcl.codegen.cpu.run.kernel import compiled
        from tcl.codegen.loopir.layouts import cpu_layouts
        from tcl.codegen.schedule.cpu import plan

    layouts = cpu_layouts(sized, dict(zip(names, strides, strict=True)))
    device = replace(host_cpu(), threads=threads)
    made = plan(sized, options, device, layouts, all_threads=False)
    code = compiled(made.scheduled(), made.target, unchecked=unchecked)
    store.put(digest, code)
    return Launcher(code, names, sized=sized)


def ingredients(
    sized: SizedDef,
    options: MappingOptions,
    strides: Sequence[tuple[int, ...]],
    unchecked: bool,
    threads: int = 1,
) -> Ingredients:
    """What the object code of this kernel depends on."""
    tensors = sized.checked.inputs + sized.checked.outputs
    return Ingredients(
        definition=canonical_text(sized.checked),
        shapes=tuple(sized.shapes[t.name] for t in tensors),
        strides=tuple(strides),
        unchecked=unchecked,
        options=options.to_json(),
        device=replace(host_cpu(), threads=threads),
        versions=versions(),
    )
