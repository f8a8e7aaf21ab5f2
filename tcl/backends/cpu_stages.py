"""What becomes of a def on a CPU, stage by stage, as text; the CPU need not be here."""

from __future__ import annotations

from tcl.codegen.cpu.emit.emit import emit
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan, stages
from tcl.codegen.schedule.plan import plan_text
from tcl.grammar.sized import SizedDef


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
    source = emit(program, made.target).text
    return source if stage == "source" else assembly(source, made.target)
