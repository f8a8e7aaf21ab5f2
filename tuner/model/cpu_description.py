"""How candidates for a CPU are described."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.tuner.model.described import Description
from tcl.tuner.model.features import SCHEMA, extract, extract_columns
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.cpu.mapping import MappingSpace


class CpuDescription(Description[Subject, MappingSpace]):
    """See ``Description``. Nothing is scheduled."""

    schema = SCHEMA
    title = "CPUs"
    count = 400

    def subject(self, program: ir.Program, device: CpuProfile) -> Subject:
        return Subject.of(program, device)

    def space(self, program: ir.Program, device: CpuProfile) -> MappingSpace:
        return MappingSpace(program, device)

    def covers(self, space: MappingSpace, subject: Subject) -> bool:
        return bool(subject.nests) and {n.position for n in subject.nests} <= space.positions

    def extract(
        self, subject: Subject, choices: Sequence[tuple[NestOptions, ...]]
    ) -> tuple[Floats, Floats]:
        return extract(subject, choices)

    def of_rows(self, subject: Subject, space: MappingSpace, rows: Rows) -> tuple[Places, Floats]:
        columns, count = space.columns(rows), len(rows.places)
        own = [columns[nest.position] for nest in subject.nests]
        return np.arange(count), extract_columns(subject, count, own)[0]


CPU = CpuDescription()
