"""What becomes of a def on a CPU, stage by stage, as text."""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan, stages
from tcl.codegen.schedule.plan import plan_text
from tcl.grammar.sized import SizedDef


def cpu_stage(stage: str, sized: SizedDef, options: MappingOptions, threads: int | None) -> str:
    """A def on this CPU, for row-major tensors, as ``ir``, ``plan``, ``schedule``, ``source`` or
    ``asm``. ``threads`` is as for ``tcl.define``. Raises ``OptionsError``."""
    device = replace(host_cpu(), threads=thread_count(threads))
    if stage == "plan":
        made = plan(sized, options, device, all_threads=False)
        made.scheduled()  # which refuses what cannot be applied
        return plan_text(made)
    if stage in ("ir", "schedule"):
        programs = [program for _, program in stages(sized, options, device, all_threads=False)]
        return show(programs[0 if stage == "ir" else -1])
    kernel = compile_cpu(sized, options, device=device, all_threads=False)
    return kernel.llvm if stage == "source" else kernel.asm
