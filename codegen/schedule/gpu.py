"""The schedule for a GPU: a pure function from a def, options and a profile to loops.

As ``tcl.codegen.schedule.cpu``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.common.recursion import with_room
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.passes.gpu.build_blocks import BuildBlocks
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.steps import STAGES, steps
from tcl.codegen.schedule.plan import Plan, applied
from tcl.codegen.schedule.plan_gpu import plan_gpu
from tcl.grammar.sized import SizedDef


def plan(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> Plan[GpuProfile]:
    """What these options come to. ``layouts``: of all tensors, where it is not
    ``gpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be planned.
    """

    def made() -> Plan[GpuProfile]:
        program = lower(sized, layouts or gpu_layouts(sized))
        if options.merges:
            program = merged(program)
        return plan_gpu(program, options, profile)

    return with_room(made)


def passes_for(plan: Plan[GpuProfile]) -> Iterator[tuple[str, tuple[Pass, ...]]]:
    """The named passes, in the order in which they run."""
    order = OrderChunks({name: o.chunk_order or () for name, o in plan.options.items()})
    nests = [steps(name, o, plan.target) for name, o in plan.options.items()]
    last: dict[str, Pass] = {"fuse": order, "share": WithinLimits(plan.target)}
    for stage in STAGES:
        whole = (last[stage],) if stage in last else ()
        yield stage, (*(each for nest in nests for each in nest[stage]), *whole)


def scheduled(plan: Plan[GpuProfile]) -> ir.Built:
    """The kernels of a plan. Raises ``OptionsError`` for options that cannot be applied."""

    def made() -> ir.Built:
        *_, (_, program) = applied(plan.program, passes_for(plan))
        verify(program)  # once: what is wrong after one pass is wrong after the last
        built = BuildBlocks(plan.target)(program)
        verify(built)
        return built

    return with_room(made)


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Built:
    """The kernels for these options, as of ``plan``."""
    return scheduled(plan(sized, options, profile, layouts))


def stages(
    sized: SizedDef, options: MappingOptions, profile: GpuProfile
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    """(name, program) after lowering, merging, splitting, and each of the passes, each verified."""
    program = lower(sized, gpu_layouts(sized))
    made = plan(sized, options, profile)
    begun = [("lower", program), ("merge", merged(program) if options.merges else program)]
    begun.append(("split", made.program))
    for name, program in (*begun, *applied(made.program, passes_for(made))):
        verify(program)
        yield name, program
    built = BuildBlocks(made.target)(program)
    verify(built)
    yield "build", built
