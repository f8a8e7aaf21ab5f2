"""What becomes of a def, stage by stage, as text; the device need not be here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcl.codegen.compiler import Device, compiler_for
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.plan import Plan, plan_text
from tcl.common.lazy import Lazy
from tcl.executors.size_classes import ForAll
from tcl.grammar.ranges.sized import SizedDef

if TYPE_CHECKING:
    from tcl.backends import gpu_stages
else:
    gpu_stages = Lazy("tcl.backends.gpu_stages")


def stage_text(
    stage: str, sized: SizedDef, options: MappingOptions, device: Device, *, asked: bool = True
) -> str:
    """A def for row-major tensors, as ``ir``, ``plan``, ``schedule``, ``source``, ``asm``, or, on
    a GPU, ``counters`` or ``resources``. ``asked``: where sizes are formulas, whether the options
    were given, and are honoured or refused. Raises ``OptionsError``."""
    compiler = compiler_for(device, asked=asked)

    def text(plan: Plan[Any], program: ir.Built) -> str:
        match stage:
            case "ir":
                return show(lower(sized, compiler.layouts(sized)))
            case "plan":
                return plan_text(plan, program)
            case "schedule":
                return show(program)
            case "source":
                return compiler.source(plan, program)
            case "counters":
                cost = cost_of(lower(sized, compiler.layouts(sized)))
                return gpu_stages.text(sized.checked.name, program, cost, plan.target)
            case "resources":
                return gpu_stages.table(sized.checked.name, plan, program)
        return compiler.assembly(plan, program)

    return compiler.built(sized, options, text)


def stage_for_all(
    stage: str, all_: ForAll, options: MappingOptions, device: Device, *, asked: bool
) -> str:
    """``stage_text`` for all sizes of classes; ``counters`` and ``resources`` as for the
    representative ones."""
    if stage in ("counters", "resources"):
        representative, _ = all_.representative()
        sizes = ", ".join(f"{name}={representative.sizes[name]}" for name in all_.classes)
        return f"as for {sizes} alone\n{stage_text(stage, representative, options, device)}"
    with all_.refusing():
        return stage_text(stage, all_.symbolic, options, device, asked=asked)
