"""Candidates for a GPU: every one is scheduled and counted, in milliseconds and without a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.common.errors import OptionsError
from tcl.tuner.model.gpu_features import SCHEMA, DescribedCandidate
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

Kernels = tuple[KernelCounts, ...]


@dataclass(frozen=True, slots=True)
class GpuSubject(Subject[Kernels, GpuMappingSpace]):
    """A def for its sizes on a GPU."""

    schema = SCHEMA
    title = "GPUs"
    count = 100

    program: ir.Program
    """As it was lowered, or with dimensions that lie together as one."""
    device: GpuProfile
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: Kernels
    """The kernels where nothing is known."""

    @classmethod
    def read(cls, program: ir.Program, device: GpuProfile) -> GpuSubject:
        whole = merged(program)
        default = _counted(whole, DEFAULT, device)
        return cls(whole, device, cost_of(program), whole != program, default)

    @staticmethod
    def space(program: ir.Program, device: GpuProfile) -> GpuMappingSpace:
        return GpuMappingSpace(program, device)

    def covered_by(self, space: GpuMappingSpace) -> bool:
        return bool(space.space.knobs) and bool(self.default)

    def choices(self, options: MappingOptions) -> Kernels:
        """The counts of the kernels that these options make.

        ``OptionsError`` for options that cannot be applied, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so the nests are different")
        return _counted(self.program, options, self.device)

    def extract(self, choices: Sequence[Kernels]) -> tuple[Floats, Floats]:
        schema = self.schema
        usual, before = self._longest(self.default)
        rows, seconds = np.zeros((len(choices), len(schema.names))), np.ones(len(choices))
        for k, kernels in enumerate(choices):
            own, seconds[k] = self._longest(kernels)
            change = own[schema.compared] - usual[schema.compared]
            rows[k] = *own, *change, math.log2(seconds[k] / before)
        return rows, seconds

    def extract_rows(self, space: GpuMappingSpace, rows: Rows) -> tuple[Places, Floats]:
        configs = [(k, rows.config(k)) for k in range(len(rows.places))]
        valid = [(k, space.to_options(c)) for k, c in configs if space.space.valid(c)]
        described = self.describable([options for _, options in valid])
        places = np.array([valid[place][0] for place, _ in described], np.intp)
        return places, self.extract([choices for _, choices in described])[0]

    def _longest(self, kernels: Kernels) -> tuple[Floats, float]:
        """The features of the kernel that takes the longest, and the seconds of all of them."""
        if not kernels:
            return np.zeros(len(self.schema.features)), 1.0
        predicted = [(counts, predict(counts)) for counts in kernels]
        longest = max(predicted, key=lambda each: each[1].rank)
        described = DescribedCandidate(self.cost, len(kernels), *longest)
        row = np.array([float(f.of(described)) for f in self.schema.features])
        return row, sum(prediction.rank for _, prediction in predicted)


def _counted(program: ir.Program, options: MappingOptions, device: GpuProfile) -> Kernels:
    """The counts of the kernels that do something."""
    plan = plan_gpu(program, options, device)
    *_, (_, mapped) = plan.applied()  # not verified, which takes as long again
    counts = count_program(plan.build(mapped), device)
    return tuple(c for c in counts if c.blocks and any(c.instructions.values()))
