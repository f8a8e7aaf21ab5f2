"""Whether a nest writes past the caches, as a knob."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.stream import why_not_streamed
from tcl.codegen.passes.vectorize import vectorized
from tcl.tuner.space.knobs import Knob, Value


@dataclass(frozen=True, slots=True)
class StreamKnobs:
    """One knob for a nest whose results do not fit the second cache, else none."""

    knobs: tuple[Knob, ...]

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, lanes: Iterable[tuple[int, int]]
    ) -> StreamKnobs:
        """The knob of an untiled nest that may have these ``lanes``; off by default."""
        layout = program.tensor(nest.point.target.tensor).layout
        worth = math.prod(layout.extents) * layout.itemsize > device.l2_bytes
        if worth and any(why_not_streamed(program, vectorized(nest, *x)) is None for x in lanes):
            return StreamKnobs((Knob(f"{nest.name}.stream", (0, 1), 0, ordered=False),))
        return StreamKnobs(())

    def chosen(self, values: Mapping[str, Value]) -> bool:
        """Whether the nest writes past the caches."""
        return bool(self.knobs) and values[self.knobs[0].name] == 1

    def values(self, stream: bool) -> dict[str, Value] | None:
        """Knob values for a choice; None if the knob cannot say it."""
        if not self.knobs:
            return None if stream else {}
        return {self.knobs[0].name: int(stream)}
