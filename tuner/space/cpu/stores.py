"""Whether a nest writes past the caches, as a knob."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.stream import LEAST
from tcl.tuner.space.knobs import Knob, Value


@dataclass(frozen=True, slots=True)
class StreamKnobs:
    """One knob for a nest whose results do not fit the second cache, else none."""

    knobs: tuple[Knob, ...]
    along: int
    """The position of the dimension along which results lie next to each other."""
    itemsize: int

    @staticmethod
    def of(program: ir.Program, nest: ir.Nest, device: CpuProfile, lanes: bool) -> StreamKnobs:
        """The knob of an untiled nest that may have ``lanes``; off by default."""
        layout = program.tensor(nest.point.target.tensor).layout
        names = [d.name for d in nest.dims]
        along = -1
        rows = []
        for axis, subscript in enumerate(nest.point.target.subscripts):
            if isinstance(subscript, ir.Affine):
                moving = layout.offset(axis, subscript).terms
                for name, c in ((n, c) for n, c in moving if nest.dim(n).extent > 1):
                    if c == layout.itemsize:
                        along = names.index(name)
                    else:
                        rows.append(c)
        written = math.prod(layout.extents) * layout.itemsize
        worth = lanes and nest.point.op == "=" and written > device.l2_bytes
        if along < 0 or not worth or any(c % LEAST for c in rows):
            return StreamKnobs((), -1, 1)
        return StreamKnobs(
            (Knob(f"{nest.name}.stream", (0, 1), 0, ordered=False),), along, layout.itemsize
        )

    def chosen(self, values: Mapping[str, Value]) -> bool:
        """Whether the nest writes past the caches."""
        return bool(self.knobs) and values[self.knobs[0].name] == 1

    def values(self, stream: bool) -> dict[str, Value] | None:
        """Knob values for a choice; None if the knob cannot say it."""
        if not self.knobs:
            return None if stream else {}
        return {self.knobs[0].name: int(stream)}

    def why_not(
        self, values: Mapping[str, Value], target: int, lanes: int, tiles: Sequence[int]
    ) -> str | None:
        """Why the chosen lanes, and these tiles' points along them, cannot be written so."""
        if not self.chosen(values):
            return None
        if lanes == 1 or target != self.along or lanes * self.itemsize < LEAST:
            return "only lanes that lie next to each other are written past the caches"
        apart = next((t for t in tiles if t * self.itemsize % LEAST), 0)
        return (
            f"tiles of {apart} points do not begin at multiples of {LEAST} bytes" if apart else None
        )
