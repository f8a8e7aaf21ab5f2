"""How far ahead of their use operands are asked for, as knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.tuner.space.knobs import Knob, Value

_DISTANCES = (0, 1024, 2048, 4096, 16384)
"""Bytes."""
_OPERANDS = 3
"""Operands that get a knob: the first ones that come from memory."""


@dataclass(frozen=True, slots=True)
class PrefetchKnobs:
    """One distance for each operand that the second cache does not hold; 0 asks for nothing."""

    chosen: Mapping[int, Knob]
    """By position of the operand."""
    lanes: Mapping[int, frozenset[int]]
    """The positions of the dimensions that may be lanes then: along which elements lie next to
    each other, or are the same."""

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, default: Sequence[int]
    ) -> PrefetchKnobs:
        """The knobs of an untiled nest, with the ``default`` distances among their choices."""
        chosen: dict[int, Knob] = {}
        lanes: dict[int, frozenset[int]] = {}
        seen: set[str] = set()
        for position, load in enumerate(operands(nest.point)):
            layout = program.tensor(load.ref.tensor).layout
            own = default[position] if position < len(default) else 0
            large = math.prod(layout.extents) * layout.itemsize > device.l2_bytes
            affine = all(isinstance(s, ir.Affine) for s in load.ref.subscripts)
            first = load.ref.tensor not in seen and len(chosen) < _OPERANDS
            if nest.sequential or not affine or not (own or (large and first)):
                continue
            seen.add(load.ref.tensor)
            place = layout.place(load.ref)
            steps = enumerate(place.coefficient(d.name) for d in nest.dims)
            lanes[position] = frozenset(k for k, c in steps if c in (0, layout.itemsize))
            distances = tuple(sorted({*_DISTANCES, own}))
            chosen[position] = Knob(f"{nest.name}.prefetch{position}", distances, 0, ordered=True)
        return PrefetchKnobs(chosen, lanes)

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

    def why_not(
        self, values: Mapping[str, Value], target: int, lanes: int, staged: Sequence[int]
    ) -> str | None:
        """Why operands cannot be asked for with these lanes, and these levels of copying."""
        for position, distance in enumerate(self.distances(values)):
            if not distance:
                continue
            if lanes > 1 and target not in self.lanes[position]:
                return "lanes that lie apart from each other are not prefetched"
            if position < len(staged) and staged[position] >= 0:
                return "what is read from a copy is not prefetched"
        return None
