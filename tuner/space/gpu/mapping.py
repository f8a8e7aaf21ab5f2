"""The search space of a def on a GPU: mapping options as knobs, derived from its nests and the
device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.codegen.schedule.parts import unsplit
from tcl.tuner.space.gpu.constraints import constraints
from tcl.tuner.space.gpu.heuristics import heuristics
from tcl.tuner.space.gpu.kernel_groups import KernelKnobs
from tcl.tuner.space.program_space import ProgramSpace

_NESTS = 8
"""Nests that get knobs: those with the most points, and those that share a kernel with them by
default. The rest is mapped by the preset."""


class GpuMappingSpace(ProgramSpace):
    """Configurations that encode ``MappingOptions`` of one program on a GPU.

    Per nest, for each dimension: the threads along it, the points that each of them holds, and the
    steps in which the block goes through its chunk, or through a tile of a reduction, which is so
    always a multiple of what threads hold at once; the vectorised dimension and its lanes; the
    orders of loops over reductions; the operands that are copied to shared memory, and how many
    copies of these there are; whether it joins the kernel of the nest before. Nests that can go
    along with others follow these. The default is what the preset ``mlp`` chooses. For ``fixed``
    see ``ProgramSpace``.
    """

    _preset = "mlp"

    def __init__(
        self, program: ir.Program, profile: GpuProfile, fixed: Mapping[str, Value] | None = None
    ) -> None:
        super().__init__(program, fixed)
        self._profile = profile
        self._default = self._resolved(MappingOptions(self._preset))
        self._groups = self._with_knobs(self._default)
        if any(group.from_options(self._default) is None for group in self._groups):
            # The knobs cannot encode what the preset joins: each nest has a kernel of its own,
            # then.
            apart = {name: replace(o, fuse=False) for name, o in self._default.items()}
            self._groups = self._with_knobs(apart)
        self._known = {n.name for g in self._groups for m in g.members for n in m.nests}
        knobs = [k for group in self._groups for k in group.knobs]
        canonical = self._canonical({k.name: k.default for k in knobs})
        legal = (c for g in self._groups for c in constraints(g, self._program, profile))
        worth = (h for g in self._groups for h in heuristics(g, profile, canonical))
        self._declare((replace(k, default=canonical[k.name]) for k in knobs), legal, worth)

    def _with_knobs(self, default: Mapping[str, NestOptions]) -> tuple[KernelKnobs, ...]:
        led = fusion_groups(self._program.nests)
        kernels: list[list[ir.Nest]] = []
        for fused in led:
            names = fused.names
            first = next(n for n in self._program.nests if n.name in names)
            if not (kernels and default[first.name].fuse):
                kernels.append([])
            kernels[-1].append(fused.leader)
        able = [k for k in kernels if all(map(_has_choices, k))]
        able.sort(key=lambda kernel: -max(n.points for n in kernel))
        found: list[str] = []
        for kernel in able:
            if len(found) < _NESTS:
                found += [n.name for n in kernel]
        return KernelKnobs.all_of(self._program, self._profile, default, found)

    def _canonical(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: v for g in self._groups for name, v in g.canonical(values).items()}

    def _decode(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        found = {name: o for name, o in self._default.items() if name not in self._known}
        for group in self._groups:
            found.update(group.options(values))
        return found

    def _encode(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        values: dict[str, Value] = {}
        for group in self._groups:
            found = group.from_options(resolved)
            if found is None:
                return None
            values.update(found)
        return values

    def _resolved(self, options: MappingOptions) -> dict[str, NestOptions]:
        return unsplit(self._program, plan_gpu(self._program, options, self._profile))

    def _mapped(self, options: MappingOptions) -> list[ir.Nest]:
        plan = plan_gpu(self._program, options, self._profile)
        *_, (_, program) = plan.applied()
        return [n for n in program.nests if n.name not in self._known]


def _has_choices(nest: ir.Nest) -> bool:
    return not nest.sequential and nest.points > 0
