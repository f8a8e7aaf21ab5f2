"""Whether results are written past the caches, and how far ahead of their use operands are asked
for, as knobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.cpu.prefetch import why_not_prefetched
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


_DISTANCES = (0, 1024, 2048, 4096, 16384)
"""Bytes."""
_OPERANDS = 3
"""Operands that get a knob: the first ones that come from memory."""


@dataclass(frozen=True, slots=True)
class PrefetchKnobs:
    """One distance for each operand that the second cache does not hold; 0 asks for nothing."""

    chosen: Mapping[int, Knob]
    """By position of the operand."""

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, default: Sequence[int]
    ) -> PrefetchKnobs:
        """The knobs of an untiled nest, with the ``default`` distances among their choices."""
        chosen: dict[int, Knob] = {}
        seen: set[str] = set()
        for position, load in enumerate(operands(nest.point)):
            layout = program.tensor(load.ref.tensor).layout
            own = default[position] if position < len(default) else 0
            large = math.prod(layout.extents) * layout.itemsize > device.l2_bytes
            first = load.ref.tensor not in seen and len(chosen) < _OPERANDS
            alone = (*[0] * position, 1)
            if not (own or (large and first)) or why_not_prefetched(program, nest, alone, None, ()):
                continue
            seen.add(load.ref.tensor)
            distances = tuple(sorted({*_DISTANCES, own}))
            chosen[position] = Knob(f"{nest.name}.prefetch{position}", distances, 0, ordered=True)
        return PrefetchKnobs(chosen)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return tuple(self.chosen.values())

    def distances(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        found = [0] * (max(self.chosen, default=-1) + 1)
        for position, knob in self.chosen.items():
            found[position] = int(values[knob.name])
        return tuple(found) if any(found) else ()

    def values(self, distances: Sequence[int]) -> dict[str, Value] | None:
        """Knob values for the option; None if the knobs cannot say it."""
        found: dict[str, Value] = {k.name: 0 for k in self.chosen.values()}
        for position, distance in enumerate(distances):
            if distance and position not in self.chosen:
                return None
            if distance:
                found[self.chosen[position].name] = distance
        return found
