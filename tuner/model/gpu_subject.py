"""Candidates for a GPU: every one is scheduled, which takes milliseconds, and no GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.common.errors import OptionsError
from tcl.tuner.model.gpu_features import SCHEMA, DescribedCandidate
from tcl.tuner.model.gpu_mapped import Mapped
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.gpu.mapping import GpuMappingSpace


@dataclass(frozen=True, slots=True)
class GpuSubject(Subject[tuple[Mapped, ...], GpuMappingSpace]):
    """A def for its sizes on a GPU."""

    schema = SCHEMA
    title = "GPUs"
    count = 200

    program: ir.Program
    """As it was lowered, or with dimensions that lie together as one."""
    device: GpuProfile
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: tuple[Mapped, ...]
    """The nests as they are where nothing is known."""

    @classmethod
    def read(cls, program: ir.Program, device: GpuProfile) -> GpuSubject:
        whole = merged(program)
        default = _nests_after_passes(whole, DEFAULT, device)
        return cls(whole, device, cost_of(program), whole != program, default)

    @staticmethod
    def space(program: ir.Program, device: GpuProfile) -> GpuMappingSpace:
        return GpuMappingSpace(program, device)

    def covered_by(self, space: GpuMappingSpace) -> bool:
        return bool(space.space.knobs) and bool(_taking_time(self.default))

    def choices(self, options: MappingOptions) -> tuple[Mapped, ...]:
        """The nests with all of their loops, as these options make them.

        ``OptionsError`` for options that cannot be applied, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so that the nests are others")
        return _nests_after_passes(self.program, options, self.device)

    def extract(self, choices: Sequence[tuple[Mapped, ...]]) -> tuple[Floats, Floats]:
        schema = self.schema
        usual, before = self._longest(self.default)
        rows, seconds = np.zeros((len(choices), len(schema.names))), np.ones(len(choices))
        for k, nests in enumerate(choices):
            own, seconds[k] = self._longest(nests)
            change = own[schema.compared] - usual[schema.compared]
            rows[k] = *own, *change, math.log2(seconds[k] / before)
        return rows, seconds

    def extract_rows(self, space: GpuMappingSpace, rows: Rows) -> tuple[Places, Floats]:
        configs = [(k, rows.config(k)) for k in range(len(rows.places))]
        valid = [(k, space.to_options(c)) for k, c in configs if space.space.valid(c)]
        described = self.describable([options for _, options in valid])
        places = np.array([valid[place][0] for place, _ in described], np.intp)
        return places, self.extract([choices for _, choices in described])[0]

    def _longest(self, nests: tuple[Mapped, ...]) -> tuple[Floats, float]:
        """The features of the nest that takes the longest, and the seconds of all of them."""
        timed = _taking_time(nests)
        if not timed:
            return np.zeros(len(self.schema.features)), 1.0
        longest = max(timed, key=lambda m: m.seconds)
        described = DescribedCandidate(self.cost, longest, len({m.kernel[0].name for m in nests}))
        row = np.array([float(f.of(described)) for f in self.schema.features])
        return row, sum(m.seconds for m in timed)


def _taking_time(nests: tuple[Mapped, ...]) -> list[Mapped]:
    """Those that take time."""
    return [m for m in nests if m.nest.points and not m.nest.sequential]


def _nests_after_passes(
    program: ir.Program, options: MappingOptions, device: GpuProfile
) -> tuple[Mapped, ...]:
    """The nests that have loops of their own, after all passes."""
    planned = plan_gpu(program, options, device)
    *_, (_, built) = planned.applied()
    along = set[str]().union(*(g.followers for g in fusion_groups(planned.program.nests)))
    return tuple(
        Mapped(built, nest, tuple(group), device)
        for group in groups(built.nests)
        for nest in group
        if nest.name not in along
    )
