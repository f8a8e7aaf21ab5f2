"""How candidates for a GPU are described."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.tuner.model.described import Description
from tcl.tuner.model.gpu_features import SCHEMA, extract
from tcl.tuner.model.gpu_mapped import Mapped
from tcl.tuner.model.gpu_subject import GpuSubject
from tcl.tuner.model.loops import Floats
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.gpu.mapping import GpuMappingSpace


class GpuDescription(Description[GpuSubject, GpuMappingSpace]):
    """See ``Description``. Every candidate is scheduled, which takes milliseconds."""

    schema = SCHEMA
    title = "GPUs"
    count = 200

    def subject(self, program: ir.Program, device: GpuProfile) -> GpuSubject:
        return GpuSubject.of(program, device)

    def space(self, program: ir.Program, device: GpuProfile) -> GpuMappingSpace:
        return GpuMappingSpace(program, device)

    def covers(self, space: GpuMappingSpace, subject: GpuSubject) -> bool:
        return bool(space.space.knobs) and bool(subject.timed(subject.default))

    def extract(
        self, subject: GpuSubject, choices: Sequence[tuple[Mapped, ...]]
    ) -> tuple[Floats, Floats]:
        return extract(subject, choices)

    def of_rows(
        self, subject: GpuSubject, space: GpuMappingSpace, rows: Rows
    ) -> tuple[Places, Floats]:
        configs = [(k, rows.config(k)) for k in range(len(rows.places))]
        valid = [(k, space.to_options(c)) for k, c in configs if space.space.valid(c)]
        described = subject.describable([options for _, options in valid])
        places = np.array([valid[place][0] for place, _ in described], np.intp)
        return places, extract(subject, [choices for _, choices in described])[0]


GPU = GpuDescription()
