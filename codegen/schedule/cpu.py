"""The schedule: a pure function from a def, options and a device to loops.

The options become a plan, in which nothing is left open; its passes apply it, from top to bottom.
Options are honoured or refused with ``OptionsError``; nothing has been compiled by then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from tcl.codegen.choose.cpu.presets import MODELLED, CpuPreset, parts_for_threads
from tcl.codegen.choose.cpu.scatter_loops import with_loops
from tcl.codegen.choose.cpu.thread_worth import with_threads_worth, with_vectors_worth
from tcl.codegen.choose.scatters import CPU
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.base import Pass, RefusedError, Trials
from tcl.codegen.passes.cpu.build import Build
from tcl.codegen.passes.cpu.fusion_limits import may_have_epilogues, results_at_once
from tcl.codegen.passes.cpu.steps import DIVIDING, LOOPS, MARKS, STEPS
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.fusion.siblings import Sibling
from tcl.codegen.schedule.parts import with_parts, with_scatters
from tcl.codegen.schedule.plan import NestPlan, Plan, asked_for, planned, with_chunks
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import Undecided


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


@dataclass(frozen=True, slots=True)
class CpuPlan(Plan[CpuProfile]):
    def passes(self) -> Iterator[tuple[str, tuple[Pass, ...]]]:
        order = OrderChunks({name: o.chunk_order or () for name, o in self.options.items()})
        for step in STEPS:
            of_nests = [step.passes(name, o, self.target) for name, o in self.options.items()]
            last = (order,) if step.name == "fuse" else ()
            yield step.name, (*itertools.chain.from_iterable(of_nests), *last)

    def build(self, program: ir.Program) -> ir.Built:
        return Build(self.target)(program)


def plan_cpu(program: ir.Program, options: MappingOptions, device: CpuProfile) -> CpuPlan:
    """What becomes of a program on a CPU. A nest that can be fused with another one gets the loops
    that were chosen for that, where nothing else is said of it.

    Raises ``OptionsError`` for choices for a nest that the program lacks, and for those that no
    CPU has.
    """
    if options == DEFAULT:
        with suppress(Undecided):  # whether it is one of the last, where sizes are formulas
            found = default_plan(program, device)
            divided = len(found.program.nests) > len(program.nests)
            return found if divided else replace(found, program=program)
    return _new_plan(program, options, device)


@lru_cache(maxsize=4)
def default_plan(program: ir.Program, device: CpuProfile) -> CpuPlan:
    """The last plans of programs of which nobody says anything: one takes 10 ms and more, and who
    chooses options asks for it, then who compiles."""
    return _new_plan(program, DEFAULT, device)


_TIMED_NESTS = 2
"""Nests whose lanes and tiles ``other_plans`` changes: those with the most points ..."""
_PART = 0.3
"""... if these are no fewer than this part of the first one's."""


def other_plans(program: ir.Program, device: CpuProfile, most: int) -> Iterator[CpuPlan]:
    """As many plans as ``most`` for a program of which nobody says anything, with other lanes and
    register tiles in one nest, and all that follows from these: those first that take the least by
    the model of a core. Some may be alike."""
    leaders = [g.leader for g in fusion_groups(program.nests) if not g.leader.sequential]
    leaders = sorted(leaders, key=lambda nest: -nest.points)[:_TIMED_NESTS]
    wide = [nest.name for nest in leaders if nest.points >= _PART * leaders[0].points]
    for place in range(most if wide else 0):
        others = {wide[place % len(wide)]: 1 + place // len(wide)}
        with suppress(OptionsError):  # the nest has fewer ways
            yield _new_plan(program, DEFAULT, device, others)


def _new_plan(
    program: ir.Program,
    options: MappingOptions,
    device: CpuProfile,
    others: Mapping[str, int] = MappingProxyType({}),
) -> CpuPlan:
    """``others``: as of ``CpuPreset``."""
    nests = asked_for(program, options, device.kind)
    options.default.check_on(device.kind, "all nests")
    for nest, own in zip(program.nests, options.nests, strict=False):
        own.check_on(device.kind, f"nest {nest.name}")
    chosen_for = with_vectors_worth(program, device)
    if options.preset in MODELLED:
        nests = _with_parts_for_threads(program, nests, device, options.preset)
    program, nests = with_parts(
        *with_scatters(program, nests, CPU, lambda made, nest: with_loops(made, nest, chosen_for))
    )
    if all(nest.complete_on(device.kind) for nest in nests.values()):
        return CpuPlan(device, program, nests)
    preset = CpuPreset.named(options.preset, program, chosen_for, others)
    nests = {
        name: asked.or_else(preset.reason, preset.chunks.get(name, NestOptions()))
        for name, asked in nests.items()
    }
    divided, nests = with_chunks(program, nests, DIVIDING, device)
    fused = {group.leader.name: group for group in fusion_groups(divided.nests)}
    leaders = _Leaders(divided, nests, preset, fused, Trials(divided, (*LOOPS, *MARKS), device))
    found: dict[str, NestPlan] = {}
    for group in fusion_groups(divided.nests, leaders):
        found[group.leader.name] = leaders.plan(group.leader)
        for name in group.followers:
            found[name] = leaders.following(group.leader, divided.nest(name))
    return CpuPlan(device, program, {name: found[name] for name in nests})


def _with_parts_for_threads(
    program: ir.Program, nests: Mapping[str, NestPlan], device: CpuProfile, preset: str
) -> dict[str, NestPlan]:
    """The choices, and parts for reductions of which nothing was said. What runs in the loops of
    another nest stays there: it has the same parts, or uses the results."""
    found = dict(nests)
    for group in fusion_groups(program.nests):
        members = [program.nest(name) for name in (group.leader.name, *group.followers)]
        parts = parts_for_threads(program, group.leader, device)
        if not parts or any(nests[nest.name].options.made() for nest in members):
            continue
        divided = [nest for nest in members if nest.reduces]
        if all(parts_for_threads(program, nest, device) == parts for nest in divided):
            for nest in divided:
                own = NestOptions(split=parts)
                found[nest.name] = nests[nest.name].or_else(f"preset {preset}", own)
    return found


@dataclass(frozen=True, slots=True)
class _Leaders:
    """As ``FusionLimits``: nests that have their chunks, and get all other loops when they are
    asked for. What is fused with one has to have the same."""

    program: ir.Program
    nests: Mapping[str, NestPlan]
    preset: CpuPreset
    fused: Mapping[str, FusionGroup]
    """What could be fused with each nest that could lead."""
    trials: Trials[CpuProfile]
    """Of the passes after chunks."""
    known: dict[str, tuple[NestPlan, ir.Nest | None]] = field(default_factory=dict)

    def plan(self, nest: ir.Nest) -> NestPlan:
        """What is chosen for a nest that leads."""
        return self._planned(nest)[0]

    def following(self, leader: ir.Nest, nest: ir.Nest) -> NestPlan:
        """What is chosen for a nest that follows."""
        choices = self.preset.following(self.program, self.plan(leader).options, leader, nest)
        return self._possible(self.nests[nest.name].or_else(f"as {leader.name}", choices), nest)[0]

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """Whether the nest of a reduction can get the leader's loops."""
        plan, loops = self._planned(group.leader)
        if plan.options.skip or self.nests[nest.name].options.skip:
            return False  # nor does what is fused with it leave out the same points
        if loops is None or not results_at_once(loops) or loops.dot_product is not None:
            return False
        # Without lanes, two values per point take longer than a second pass with them.
        return loops.lane is not None or self.preset.name == "naive"

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """Whether the nest can get the leader's loops over its results."""
        _, loops = self._planned(leader)
        return loops is not None and may_have_epilogues(loops, calls)

    def _planned(self, nest: ir.Nest) -> tuple[NestPlan, ir.Nest | None]:
        """The choices for a nest that leads, and the nest with all of its loops; None if these
        cannot be, which is said when they are made."""
        if nest.name not in self.known:
            plan = self.nests[nest.name]
            if not plan.options.complete_on(self.trials.device.kind):
                group = self.fused.get(nest.name, FusionGroup(nest))
                before = {name: made for name, (_, made) in self.known.items() if made is not None}
                chosen = self.preset.leading(self.program, nest, group.per_result, before)
                plan = plan.or_else(self.preset.reason, chosen)
            self.known[nest.name] = self._possible(plan, nest)
        return self.known[nest.name]

    def _possible(self, plan: NestPlan, nest: ir.Nest) -> tuple[NestPlan, ir.Nest | None]:
        """The choices without what nobody asked for in this very nest, and its passes refuse: asked
        for in all nests, or made for other lanes and tiles than it now has. Likewise its loops."""
        while True:
            loops = self.trials.through("register", nest.name, plan.options)
            _, refused = self.trials.first_refusal(nest.name, plan.options) or (None, None)
            if not isinstance(refused, RefusedError) or plan.asked(refused.option):
                break
            if refused.option in _NEVER_LEFT_OFF:
                break
            able = self._able(plan, nest.name) if refused.option == "prefetch" else None
            plan = plan.without(refused.option, refused.reason, able)
        return plan, None if isinstance(loops, OptionsError) else loops.nest(nest.name)

    def _able(self, plan: NestPlan, nest: str) -> tuple[int, ...]:
        """What is left of the distances of prefetches without those that are refused."""

        def refused(*ahead: int) -> bool:
            alone = replace(plan.options, prefetch=ahead)
            return isinstance(self.trials.through("prefetch", nest, alone), OptionsError)

        distances = enumerate(plan.options.prefetch or ())
        able = tuple(0 if refused(*[0] * k, distance) else distance for k, distance in distances)
        return able if any(able) else ()


_NEVER_LEFT_OFF = ("tile", "order", "inner_order", "vectorize")
"""Options for all nests are cut to what a nest can have of these before; what is refused still is
refused when the plan is applied."""
