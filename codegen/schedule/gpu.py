"""The schedule for a GPU: a pure function from a def, options and a profile to loops.

As ``tcl.codegen.schedule.cpu``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.plan import planned
from tcl.codegen.schedule.plan_gpu import GpuPlan, plan_gpu
from tcl.grammar.sized import SizedDef


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
    return planned(sized, options, lies, lambda program: plan_gpu(program, options, profile))


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Built:
    """The kernels for these options, as of ``plan``."""
    return plan(sized, options, profile, layouts).scheduled()


def stages(
    sized: SizedDef, options: MappingOptions, profile: GpuProfile
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    """(name, program) after lowering, merging, splitting, and each of the passes, each verified."""
    made = plan(sized, options, profile)
    program = lower(sized, gpu_layouts(sized))
    whole = merged(program) if options.merges else program
    return made.stages((("lower", program), ("merge", whole), ("split", made.program)))
