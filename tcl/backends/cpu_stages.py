"""What becomes of a def on a CPU, stage by stage, as text; the CPU need not be here."""

from __future__ import annotations

from tcl.codegen.cpu.emit.emit import emit
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.cpu.run.varying import scheduled_for_all
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.ir import Built
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan, stages
from tcl.codegen.schedule.plan import plan_text
from tcl.executors.size_classes import ForAll
from tcl.grammar.ranges.sized import SizedDef


def cpu_stage(stage: str, sized: SizedDef, options: MappingOptions, device: CpuProfile) -> str:
    """A def on a CPU, for row-major tensors, as ``ir``, ``plan``, ``schedule``, ``source`` or
    ``asm``. ``device.threads`` are the most that it may use. Raises ``OptionsError``."""
    if stage in ("ir", "schedule"):
        programs = [program for _, program in stages(sized, options, device, all_threads=False)]
        return show(programs[0 if stage == "ir" else -1])
    made = plan(sized, options, device, all_threads=False)
    program = made.scheduled()  # which refuses what cannot be applied
    if stage == "plan":
        return plan_text(made)
    return _written(stage, program, made.target)


def cpu_stage_for_all(
    stage: str, all_: ForAll, options: MappingOptions, device: CpuProfile, *, asked: bool
) -> str:
    """``cpu_stage`` for all sizes of classes. ``asked``: whether the options were given, and are
    honoured or refused."""
    if stage == "ir":
        return show(lower(all_.symbolic, cpu_layouts(all_.symbolic)))
    with all_.refusing():
        made, program = scheduled_for_all(all_.symbolic, options, device, asked=asked)
    if stage in ("plan", "schedule"):
        return plan_text(made) if stage == "plan" else show(program)
    return _written(stage, program, made.target)


def _written(stage: str, program: Built, device: CpuProfile) -> str:
    source = emit(program, device).text
    return source if stage == "source" else assembly(source, device)
