"""How far ahead of their use operands are asked for, as knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.prefetching import from_memory
from tcl.tuner.knobs import Knob, Value

_DISTANCES = (0, 1024, 2048, 4096, 16384)
"""Bytes."""
_OPERANDS = 3
"""Operands that get a knob: the first ones that come from memory."""


@dataclass(frozen=True, slots=True)
class PrefetchKnobs:
    """One distance for each operand that is read in order from memory; 0 asks for nothing."""

    chosen: Mapping[int, Knob]
    """By position of the operand."""
    along: Mapping[int, frozenset[int]]
    """The positions of the dimensions along which it lies in memory in order, likewise."""

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, default: Sequence[int], lanes: bool
    ) -> PrefetchKnobs:
        """The knobs of an untiled nest that may have ``lanes``, with the ``default`` distances
        among their choices."""
        names = [d.name for d in nest.dims]
        chosen: dict[int, Knob] = {}
        along: dict[int, frozenset[int]] = {}
        for read in from_memory(program, nest, device)[:_OPERANDS] if lanes else ():
            layout = program.tensor(read.ref.tensor).layout
            own = default[read.position] if read.position < len(default) else 0
            distances = tuple(sorted({*_DISTANCES, own}))
            name = f"{nest.name}.prefetch{read.position}"
            chosen[read.position] = Knob(name, distances, 0, ordered=True)
            moving = layout.place(read.ref).terms
            along[read.position] = frozenset(
                names.index(dim) for dim, step in moving if step == layout.itemsize
            )
        return PrefetchKnobs(chosen, along)

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
            if lanes == 1 or target not in self.along[position]:
                return "only lanes that lie next to each other are prefetched"
            if position < len(staged) and staged[position] >= 0:
                return "what is read from a copy is not prefetched"
        return None
