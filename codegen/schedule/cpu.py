"""The schedule: a pure function from a def, options and a device to loops.

The options become a plan, in which nothing is left open; the passes of ``passes_for`` apply it,
from top to bottom. Options are honoured or refused with ``OptionsError``; nothing has been
compiled by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.common.recursion import with_room
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.cpu.build import Build
from tcl.codegen.passes.cpu.steps import STAGES, steps
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.schedule.plan import Plan, applied
from tcl.codegen.schedule.plan_cpu import plan_cpu
from tcl.grammar.sized import SizedDef


def plan(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    *,
    all_threads: bool = True,
) -> Plan[CpuProfile]:
    """What these options come to. ``layouts``: of all tensors, where it is not
    ``cpu_layouts(sized)`` that is meant. Unless ``all_threads`` of the device are wanted, those
    are left asleep that are not worth waking.

    Raises ``OptionsError`` for options that cannot be planned.
    """

    def made() -> Plan[CpuProfile]:
        program = lower(sized, layouts or cpu_layouts(sized))
        if options.merges:
            program = merged(program)
        target = device if all_threads else with_threads_worth(program, device)
        return plan_cpu(program, options, target)

    return with_room(made)


def passes_for(plan: Plan[CpuProfile]) -> Iterator[tuple[str, tuple[Pass, ...]]]:
    """The named passes, in the order in which they run."""
    order = OrderChunks({name: o.chunk_order or () for name, o in plan.options.items()})
    nests = [steps(name, o, plan.target) for name, o in plan.options.items()]
    for stage in STAGES:
        last = (order,) if stage == "fuse" else ()
        yield stage, (*(each for nest in nests for each in nest[stage]), *last)


def scheduled(plan: Plan[CpuProfile]) -> ir.Built:
    """The kernels of a plan. Raises ``OptionsError`` for options that cannot be applied."""

    def made() -> ir.Built:
        *_, (_, program) = applied(plan.program, passes_for(plan))
        verify(program)  # once: what is wrong after one pass is wrong after the last
        built = Build(plan.target)(program)
        verify(built)
        return built

    return with_room(made)


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    *,
    all_threads: bool = True,
) -> ir.Built:
    """The kernels for these options, as of ``plan``."""
    return scheduled(plan(sized, options, device, layouts, all_threads=all_threads))


def stages(
    sized: SizedDef, options: MappingOptions, device: CpuProfile, *, all_threads: bool = True
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    """(name, program) after lowering, merging, and each of the passes, each verified."""
    program = lower(sized, cpu_layouts(sized))
    made = plan(sized, options, device, all_threads=all_threads)
    begun = [("lower", program), ("merge", merged(program) if options.merges else program)]
    for name, program in (*begun, *applied(made.program, passes_for(made))):
        verify(program)
        yield name, program
    built = Build(made.target)(program)
    verify(built)
    yield "build", built
