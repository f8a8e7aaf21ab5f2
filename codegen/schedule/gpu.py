"""The schedule for a GPU: a pure function from a def, options and a profile to loops.

As ``tcl.codegen.schedule.cpu``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tcl.codegen.choose.gpu.presets import GpuPreset, begins_stretch
from tcl.codegen.choose.scatters import GPU
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.passes.gpu.build_blocks import BuildBlocks
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.stage_shared import uniform_loops, why_no_panel
from tcl.codegen.passes.gpu.steps import DIVIDING, STEPS, alone
from tcl.codegen.passes.scatter import side_by_side
from tcl.codegen.passes.split import Split, is_whole
from tcl.codegen.schedule.parts import split_nest, with_parts, with_scatters
from tcl.codegen.schedule.plan import (
    NestPlan,
    Plan,
    asked_for,
    at_representative,
    lowered,
    planned,
    with_chunks,
)
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import Size, Undecided, representative


def plan(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> GpuPlan:
    """What these options come to. ``layouts``: of all tensors, where it is not
    ``gpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be planned.
    """
    lies = layouts or gpu_layouts(sized)
    if not any(isinstance(n, Size) for x in lies.values() for n in (*x.extents, *x.strides)):
        return planned(sized, options, lies, lambda program: plan_gpu(program, options, profile))
    # Choices are made by the representative sizes, and applied to all of them.
    at = at_representative(sized)
    found = {name: _representative(layout) for name, layout in lies.items()}
    made = planned(at, options, found, lambda program: plan_gpu(program, options, profile))
    return _for_all(made, lowered(sized, options, lies), lowered(at, options, found))


def _representative(layout: ir.Layout) -> ir.Layout:
    extents, strides = (
        tuple(map(representative, layout.extents)),
        tuple(map(representative, layout.strides)),
    )
    return replace(
        layout, extents=extents, strides=strides, origin=tuple(map(representative, layout.origin))
    )


def _for_all(made: GpuPlan, program: ir.Program, at: ir.Program) -> GpuPlan:
    """A plan that was made by the representative sizes, for a program of which that one, ``at``, is
    one case. Raises ``Undecided`` if the two may differ in their dimensions, and for scatters."""
    if any(n.point.scatters for n in program.nests):
        raise Undecided("how a scatter is divided among threads depends on its sizes")
    own, its = (
        [[(d.name, representative(d.extent)) for d in n.dims] for n in p.nests]
        for p in (program, at)
    )
    if own != its:
        raise Undecided("which dimensions can be merged is known only when the kernel runs")
    for nest in made.program.nests:
        if not is_whole(nest):
            continue
        name = nest.name.removesuffix(".whole")
        parts, *dims = made.program.nest(name).dims
        pairs = zip(dims, at.nest(name).dims, strict=True)
        counts = tuple(0 if d.extent == whole.extent else parts.extent for d, whole in pairs)
        program = Split(name, counts)(program)
    return replace(made, program=program)


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Built:
    """The kernels for these options, as of ``plan``."""
    return plan(sized, options, profile, layouts).scheduled()


@dataclass(frozen=True, slots=True)
class GpuPlan(Plan[GpuProfile]):
    def passes(self) -> Iterator[tuple[str, tuple[Pass, ...]]]:
        order = OrderChunks({name: o.chunk_order or () for name, o in self.options.items()})
        last: dict[str, Pass] = {"fuse": order, "share": WithinLimits(self.target)}
        for step in STEPS:
            of_nests = [step.passes(name, o, self.target) for name, o in self.options.items()]
            whole = (last[step.name],) if step.name in last else ()
            yield step.name, (*itertools.chain.from_iterable(of_nests), *whole)

    def build(self, program: ir.Program) -> ir.Built:
        return BuildBlocks(self.target)(program)


def plan_gpu(program: ir.Program, options: MappingOptions, profile: GpuProfile) -> GpuPlan:
    """What becomes of a program on a GPU.

    Raises ``OptionsError`` for choices for a nest that the program lacks, for those that no GPU
    has, and for reductions that cannot be split as was asked for.
    """
    nests = asked_for(program, options, "GPU")
    for nest in program.nests:
        _refuse(nest, nests[nest.name].options)
    program, nests = with_parts(*with_scatters(program, nests, GPU, _scatter_loops))
    preset, name = GpuPreset(options.preset, profile), f"preset {options.preset}"
    chosen: dict[str, NestOptions] = {}
    first = 0
    while True:
        split = _next_split(preset, program, nests, chosen, first)
        if split is None:
            break
        # What followed a nest that is split has loops of its own now, and may be split as well.
        # What comes before the nests that it may share blocks with stays as it is.
        program, nests = split_nest(program, nests, *split, name)
        names = [n.name for n in program.nests]
        at = range(names.index(split[0]) + 1)
        first = max(k for k in at if begins_stretch(program.nests, k))
        chosen = {n: chosen[n] for n in names[:first] if n in chosen}
    found = {n: nests[n].or_else(name, o) for n, o in chosen.items()}
    nests = {n.name: found.get(n.name, nests[n.name]) for n in program.nests}
    return GpuPlan(profile, program, _possible(program, nests, profile))


def _next_split(
    preset: GpuPreset,
    program: ir.Program,
    nests: Mapping[str, NestPlan],
    chosen: dict[str, NestOptions],
    first: int,
) -> tuple[str, tuple[int, ...]] | None:
    """Adds to ``chosen`` what the preset chooses for the nests from the ``first`` on, up to one
    that should be split: its name and into how many parts. None if there is none."""
    given = {name: plan.options for name, plan in nests.items()}
    for nest, found in preset.choices(program, given, first, chosen):
        chosen |= found
        own = given[nest.name]
        parts = preset.split(program, nest, own, found[nest.name]) if own.split is None else ()
        if parts:
            return nest.name, parts
    return None


def _refuse(nest: ir.Nest, given: NestOptions) -> None:
    """Options of a CPU that a GPU has nothing for."""
    given.check_on("GPU", f"nest {nest.name}")
    for position, (dim, size) in enumerate(zip(nest.dims, given.tile or (), strict=False)):
        if size and not dim.reduction:
            raise OptionsError(
                f"tile: nest {nest.name}: on a GPU, chunk divides results and tile divides "
                f"reductions; dimension {position} is not a reduction"
            )


def _possible(
    program: ir.Program, nests: dict[str, NestPlan], profile: GpuProfile
) -> dict[str, NestPlan]:
    """The choices, without joining nests and staging operands where nobody asked for that in this
    very nest, and it cannot be."""
    _, found = with_chunks(program, nests, DIVIDING, profile)
    for name, nest in found.items():
        levels = nest.options.stage or ()
        if nest.asked("stage") or all(level < 0 for level in levels):
            continue
        bound = alone(program, program.nest(name), nest.options, profile, "bind")
        if bound is None:
            continue  # refused with its reason by the pass itself
        made = bound.nest(name)
        threads, loops = made.thread_count, len(uniform_loops(made))
        reasons = [
            None if level < 0 else why_no_panel(made, load, level, threads, loops)
            for load, level in zip(operands(made.point), levels, strict=False)
        ]
        if any(reasons):
            kept = (-1 if r else n for n, r in zip(levels, reasons, strict=False))
            found[name] = nest.without("stage", next(filter(None, reasons)), tuple(kept))
    return found


_THREADS = 128
"""Of a block of a scatter."""


def _scatter_loops(program: ir.Program, nest: ir.Nest) -> ir.Nest:
    """A scatter that has been taken apart, with its loops: blocks and their threads over results,
    in each of which all points of reductions come in order. Each thread has results, or a copy, of
    its own, so that nothing is updated by two of them."""
    results = [d for d in nest.dims if not d.reduction]
    target = nest.point.target
    layout = program.tensor(target.tensor).layout
    beside = side_by_side(nest)
    rows = [d for d in results if d.name in beside and layout.step(target, d.name) == 1]
    rows = rows or sorted(results, key=lambda d: representative(d.extent))[-1:]
    blocks, threads, inner = [], [], []
    for d in nest.dims:
        if d.reduction:
            inner.append(ir.Loop(ir.Fold(d.name, "point", 1, d.extent)))
            continue
        count = min(_THREADS, max(1, representative(d.extent))) if d in rows else 1
        chunk = ir.Fold(d.name, "chunk", count, -(-d.extent // count))
        blocks.append(ir.Loop(chunk, ir.Kind.PARALLEL))
        threads.append(ir.Loop(ir.Fold(d.name, "thread", 1, count), ir.Kind.THREAD))
    return nest.with_loops([*blocks, *threads, *inner])
