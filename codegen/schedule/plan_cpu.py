"""The plan for a CPU: each nest's own options, else those for all nests, else the preset's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tcl.codegen.choose.cpu.presets import CpuPreset
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions, NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.cpu.fusion_limits import may_have_epilogues, results_at_once
from tcl.codegen.passes.cpu.prefetch import Prefetch
from tcl.codegen.passes.cpu.steps import LOOPS, STAGES, steps
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.fusion.siblings import Sibling
from tcl.codegen.schedule.plan import NestPlan, Plan, asked_for

_LEFT_OFF = ("register", "stage", "prefetch", "stream")
"""Options that a nest does without where it cannot have them, and nobody asked for them in it."""


def plan_cpu(program: ir.Program, options: MappingOptions, device: CpuProfile) -> Plan[CpuProfile]:
    """What becomes of a program on a CPU. A nest that can be fused with another one gets the loops
    that were chosen for that, where nothing else is said of it.

    Raises ``OptionsError`` for choices for a nest that the program lacks, and for those that no
    CPU has.
    """
    nests = asked_for(program, options, "CPU")
    options.default.check_on("CPU", "all nests")
    for nest, own in zip(program.nests, options.nests, strict=False):
        own.check_on("CPU", f"nest {nest.name}")
    if all(nest.complete_on("CPU") for nest in nests.values()):
        return Plan(device, program, nests)
    preset = CpuPreset.of(options.preset, program, device)
    divided, nests = _divided(program, nests, preset)
    sums = {group.leader.name: group.sums for group in fusion_groups(divided.nests)}
    leaders = _Leaders(divided, nests, preset, sums)
    found: dict[str, NestPlan] = {}
    for group in fusion_groups(divided.nests, leaders):
        found[group.leader.name] = leaders.plan(group.leader)
        for name in group.followers:
            found[name] = leaders.following(group.leader, divided.nest(name))
    return Plan(device, program, {name: found[name] for name in nests})


def _divided(
    program: ir.Program, nests: Mapping[str, NestPlan], preset: CpuPreset
) -> tuple[ir.Program, dict[str, NestPlan]]:
    """The program in which nests have their chunks, and the choices of these."""
    found = {}
    for name, asked in nests.items():
        plan = asked.or_else(preset.reason, preset.chunks.get(name, NestOptions()))
        passes = steps(name, plan.options, preset.device)
        program, _ = _applied(program, passes["chunk"])
        program, reason = _applied(program, passes["fuse"])
        if reason and not plan.asked("fuse"):
            plan = plan.without("fuse", reason)
        found[name] = plan
    return program, found


def _applied(program: ir.Program, passes: Iterable[Pass]) -> tuple[ir.Program, str]:
    """The program after these passes; as it was, and why, if it cannot have them."""
    made = program
    try:
        for each in passes:
            made = each(made)
    except OptionsError as error:
        return program, str(error).split(": ", 2)[-1]
    return made, ""


@dataclass(frozen=True, slots=True)
class _Leaders:
    """As ``FusionLimits``: nests that have their chunks, and get all other loops when they are
    asked for. What goes along with one has to have the same."""

    program: ir.Program
    nests: Mapping[str, NestPlan]
    preset: CpuPreset
    sums: Mapping[str, int]
    """Accumulators for each result, by nest that could lead."""
    known: dict[str, tuple[NestPlan, ir.Nest | None]] = field(default_factory=dict)

    def plan(self, nest: ir.Nest) -> NestPlan:
        """What is chosen for a nest that leads."""
        return self._known(nest)[0]

    def following(self, leader: ir.Nest, nest: ir.Nest) -> NestPlan:
        """What is chosen for a nest that follows."""
        choices = self.preset.following(self.program, self.plan(leader).options, leader, nest)
        return self._possible(self.nests[nest.name].or_else(f"as {leader.name}", choices), nest)[0]

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """Whether the nest of a reduction can get the leader's loops."""
        _, loops = self._known(group.leader)
        if loops is None or not results_at_once(loops):
            return False
        # Without lanes, two values per point take longer than a second pass with them.
        lanes = any(x.kind is ir.Kind.VECTOR for x in loops.loops)
        return lanes or self.preset.name == "naive"

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """Whether the nest can get the leader's loops over its results."""
        _, loops = self._known(leader)
        return loops is not None and may_have_epilogues(loops, calls)

    def _known(self, nest: ir.Nest) -> tuple[NestPlan, ir.Nest | None]:
        """The choices for a nest that leads, and the nest with all of its loops; None if these
        cannot be, which is said when they are made."""
        if nest.name not in self.known:
            plan = self.nests[nest.name]
            if not plan.options.complete_on("CPU"):
                sums = self.sums.get(nest.name, 1)
                chosen = self.preset.leading(self.program, nest, sums)
                plan = plan.or_else(self.preset.reason, chosen)
            self.known[nest.name] = self._possible(plan, nest)
        return self.known[nest.name]

    def _possible(self, plan: NestPlan, nest: ir.Nest) -> tuple[NestPlan, ir.Nest | None]:
        """The choices without what nobody asked for in this very nest, and cannot be: asked for in
        all nests, or made for other lanes and tiles than it now has. Likewise its loops."""
        program, loops = self.program, None
        for key in STAGES[2:]:
            passes = steps(nest.name, plan.options, self.preset.device)
            program, reason = _applied(program, passes[key])
            if reason and (key not in _LEFT_OFF or plan.asked(key)):
                break  # refused with its reason by the pass itself
            if reason and key == "prefetch":
                alone = [(*[0] * k, n) for k, n in enumerate(plan.options.prefetch or ())]
                able = [not _applied(program, (Prefetch(nest.name, n),))[1] for n in alone]
                ahead = [n[-1] if ok else 0 for n, ok in zip(alone, able, strict=True)]
                plan = plan.without(key, reason, tuple(ahead) if any(ahead) else ())
            elif reason:
                plan = plan.without(key, reason)
            if key == LOOPS[-1]:
                loops = program.nest(nest.name)
        return plan, loops
