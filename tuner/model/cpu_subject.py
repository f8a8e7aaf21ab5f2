"""Candidates for a CPU: described by arrays, thousands at a time, without scheduling any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.cpu import plan_cpu
from tcl.codegen.schedule.parts import unsplit
from tcl.common.errors import OptionsError
from tcl.tuner.model.cpu_features import SCHEMA, DescribedNest
from tcl.tuner.model.estimate import estimate
from tcl.tuner.model.loops import READ, Floats, LoopColumns, SubjectNest, read_nest
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Column, Places, Rows, equal_row_codes
from tcl.tuner.space.cpu.mapping import MappingSpace

_OPEN = NestOptions()
_NESTS = 8
"""Nests that are described: those with the most points."""


@dataclass(frozen=True, slots=True)
class CpuSubject(Subject[tuple[NestOptions, ...], MappingSpace]):
    """A def for its sizes on a CPU, with as many threads as are worth waking."""

    schema = SCHEMA
    title = "CPUs"
    count = 400

    program: ir.Program
    """Dimensions that lie together are one."""
    device: CpuProfile
    nests: tuple[SubjectNest, ...]
    """Those that are not fused with others; at least one if the program has any."""
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: tuple[NestOptions, ...]
    """What each of ``nests`` gets where nothing is known, with nothing left open."""

    @classmethod
    def read(cls, program: ir.Program, device: CpuProfile) -> CpuSubject:
        whole = merged(program)
        along = set[str]().union(*(g.followers for g in fusion_groups(whole.nests)))
        free = [i for i, n in enumerate(whole.nests) if not n.sequential and n.name not in along]
        by_points = sorted(free or range(len(whole.nests)), key=lambda i: -whole.nests[i].points)
        nests = tuple(read_nest(whole, i) for i in sorted(by_points[:_NESTS]))
        used = with_threads_worth(whole, device)
        planned = unsplit(whole, plan_cpu(whole, DEFAULT, used))
        default = tuple(planned[n.nest.name] for n in nests)
        return cls(whole, used, nests, cost_of(program), whole != program, default)

    @staticmethod
    def space(program: ir.Program, device: CpuProfile) -> MappingSpace:
        return MappingSpace(program, device)

    def covered_by(self, space: MappingSpace) -> bool:
        return bool(self.nests) and {n.position for n in self.nests} <= space.positions

    def choices(self, options: MappingOptions) -> tuple[NestOptions, ...]:
        """What each of ``nests`` gets, with nothing left open. A candidate of a search says it
        all; what others leave open is planned, which takes milliseconds.

        ``OptionsError`` for options that cannot be planned, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so the nests are different")
        own = tuple(options.own(n.position) for n in self.nests)
        if options.default == _OPEN and all(o.complete_on("CPU") for o in own):
            return own
        planned = unsplit(self.program, plan_cpu(self.program, options, self.device))
        return tuple(planned[n.nest.name] for n in self.nests)

    def extract(self, choices: Sequence[tuple[NestOptions, ...]]) -> tuple[Floats, Floats]:
        columns = [
            {name: Column.from_values([getattr(o, name) for o in own]) for name in READ}
            for own in zip(*choices, strict=True)
        ]
        return self.extract_columns(len(choices), columns)

    def extract_rows(self, space: MappingSpace, rows: Rows) -> tuple[Places, Floats]:
        columns, count = space.columns(rows), len(rows.places)
        own = [columns[nest.position] for nest in self.nests]
        return np.arange(count), self.extract_columns(count, own)[0]

    def extract_columns(
        self, count: int, columns: Sequence[Mapping[str, Column[Any]]]
    ) -> tuple[Floats, Floats]:
        """As ``extract``, of N choices that stand in columns: for each nest, name of an option →
        its values. Candidates that are alike in all that is said of a nest are described once for
        it."""
        schema = self.schema
        if not count or not self.nests:
            return np.zeros((count, len(schema.names))), np.ones(count)
        rows, every_time = self._by_nest(columns)
        own, usual = rows[:, :, :-1], rows[:, :, -1:]
        seconds, before = every_time[:, :-1], every_time[:, -1:]
        # What counts is what changes: the nest of which most time is another one's than the
        # default's.
        differs = (own != usual).any(axis=1)
        several = np.where(differs.any(axis=0), differs, True)
        at = np.where(several, before, -1.0).argmax(axis=0)
        # F x N, so that each feature lies together.
        found = np.empty((len(schema.names), count))
        own_part, about = len(schema.features), len(schema.names) - len(schema.whole)
        for nest in range(len(rows)):
            taken = slice(None) if len(rows) == 1 else np.flatnonzero(at == nest)
            row = own[nest][:, taken]
            found[:own_part, taken] = row
            found[own_part:about, taken] = row[schema.compared] - usual[nest][schema.compared]
        # One after the other: other orders of adding up have other last digits.
        total, whole = np.zeros(count), 0.0
        for each, of_default in zip(seconds, before, strict=True):
            total += each
            whole += float(of_default[0])
        every = np.arange(count)
        found[about:] = (
            np.log2(total / whole),
            np.log2(seconds[at, every] / before[at, 0]),
            before[at, 0] / whole,
            differs.sum(axis=0),
        )
        return found.T, total

    def _by_nest(self, columns: Sequence[Mapping[str, Column[Any]]]) -> tuple[Floats, Floats]:
        """Of each nest: its features (P x F x N + 1), and what it takes (P x N + 1), the
        default's last."""
        count = len(columns[0][READ[0]].codes) + 1
        rows = np.empty((len(self.nests), len(self.schema.features), count))
        seconds = np.empty((len(self.nests), count))
        nests = zip(self.nests, columns, self.default, strict=True)
        for place, (nest, candidates, default) in enumerate(nests):
            chosen = {name: candidates[name].and_one(getattr(default, name)) for name in READ}
            same = equal_row_codes([chosen[name].codes for name in READ])
            firsts = np.unique(same, return_index=True)[1]
            own = {name: chosen[name].part(firsts) for name in READ}
            loops = LoopColumns.from_columns(nest, self.device, len(firsts), own)
            described = DescribedNest(self.cost, len(self.nests), loops, estimate(loops))
            row = np.empty((len(self.schema.features), loops.count))
            for k, feature in enumerate(self.schema.features):
                row[k] = feature.of(described)
            row.take(same, axis=1, out=rows[place], mode="clip")
            seconds[place] = described.estimate.seconds[same]
        return rows, seconds
