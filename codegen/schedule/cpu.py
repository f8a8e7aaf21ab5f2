"""The schedule: a pure function from a def, options and a device to loops.

The options become a plan, in which nothing is left open; its passes apply it, from top to bottom.
Options are honoured or refused with ``OptionsError``; nothing has been compiled by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.plan import planned
from tcl.codegen.schedule.plan_cpu import CpuPlan, plan_cpu
from tcl.grammar.sized import SizedDef


def plan(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    *,
    all_threads: bool = True,
) -> CpuPlan:
    """What these options come to. ``layouts``: of all tensors, where it is not
    ``cpu_layouts(sized)`` that is meant. Unless ``all_threads`` of the device are wanted, those
    are left asleep that are not worth waking.

    Raises ``OptionsError`` for options that cannot be planned.
    """

    def made(program: ir.Program) -> CpuPlan:
        return plan_cpu(
            program, options, device if all_threads else with_threads_worth(program, device)
        )

    return planned(sized, options, layouts or cpu_layouts(sized), made)


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
    *,
    all_threads: bool = True,
) -> ir.Built:
    """The kernels for these options, as of ``plan``."""
    return plan(sized, options, device, layouts, all_threads=all_threads).scheduled()


def stages(
    sized: SizedDef, options: MappingOptions, device: CpuProfile, *, all_threads: bool = True
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    """(name, program) after lowering, merging, and each of the passes, each verified."""
    made = plan(sized, options, device, all_threads=all_threads)
    return made.stages((("lower", lower(sized, cpu_layouts(sized))), ("merge", made.program)))
