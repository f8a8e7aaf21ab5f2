"""A def for a class of sizes: one kernel, which is given the sizes when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcl.codegen.common.store import FolderStore
from tcl.codegen.cpu.object_code.ingredients import Ingredients, versions
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.common.recursion import with_room
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import Undecided, representative, symbols_of
from tcl.grammar.tree.canonical import canonical_text

if TYPE_CHECKING:
    from tcl.codegen.loopir import ir
    from tcl.codegen.schedule.cpu import CpuPlan


def ready_for_all(
    sized: SizedDef,
    options: MappingOptions,
    *,
    unchecked: bool = False,
    threads: int = 1,
    asked: bool = True,
) -> KernelCode:
    """The code for row-major arrays of all sizes of a class, kept or compiled; ``KernelCode.at``
    makes it one for some of them. ``asked``: whether a caller gave the options, which are honoured
    or refused then; of others, what cannot be for all of the sizes is left off.

    Raises ``Undecided`` if there can be no such kernel, ``OptionsError`` if the options cannot be
    applied and ``CompileError`` if it cannot be built.
    """
    device = replace(host_cpu(), threads=threads)
    tensors = sized.checked.inputs + sized.checked.outputs
    sizes = symbols_of(n for t in tensors for n in sized.shapes[t.name])
    made_of = Ingredients(
        definition=canonical_text(sized.checked),
        shapes=(
            *(tuple(map(str, sized.shapes[t.name])) for t in tensors),
            *((s.name, s.multiple, s.least, s.most, s.representative) for s in sizes.values()),
            ("asked" if asked else "chosen",),
        ),
        strides=(),
        unchecked=unchecked,
        options=options.to_json(),
        device=device,
        versions=versions(),
    )
    store = FolderStore()
    code = store.get(made_of.digest, KernelCode)
    if code is None:
        code = with_room(lambda: _compiled(sized, options, device, unchecked, asked))
        store.put(made_of.digest, code)
    return code


def _compiled(
    sized: SizedDef, options: MappingOptions, device: CpuProfile, unchecked: bool, asked: bool
) -> KernelCode:
    from tcl.codegen.cpu.run.kernel import compiled

    made, built = scheduled_for_all(sized, options, device, asked=asked)
    return compiled(built, made.target, unchecked=unchecked)


def scheduled_for_all(
    sized: SizedDef, options: MappingOptions, device: CpuProfile, *, asked: bool
) -> tuple[CpuPlan, ir.Built]:
    """What the options come to for all sizes of a class, and the kernels; see ``ready_for_all``.
    ``device.threads`` are the most that it may use."""
    from tcl.codegen.loopir.layouts import cpu_layouts
    from tcl.codegen.schedule.cpu import plan
    from tcl.codegen.schedule.plan import at_representative, lowered

    # Choices are made by the representative sizes, and applied to all of them.
    made = plan(at_representative(sized), options, device, all_threads=False)
    program = lowered(sized, options, cpu_layouts(sized))
    dims = [[(d.name, representative(d.extent)) for d in n.dims] for n in program.nests]
    if dims != [[(d.name, d.extent) for d in n.dims] for n in made.program.nests]:
        raise Undecided("which dimensions can be merged is known only when the kernel runs")
    made = replace(made, program=program)
    try:
        return made, made.scheduled()
    except OptionsError:
        plain = replace(options.default, peel=False, stream=False)
        if asked or options.default == plain:
            raise
        # What begins on boundaries depends on how many points there are.
        return scheduled_for_all(sized, replace(options, default=plain), device, asked=asked)
