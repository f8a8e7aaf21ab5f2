"""Whether results are written past the caches, and on boundaries, and how far ahead of their use
operands are asked for, as knobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.choose.cpu.prefetch_distances import next_block
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.cpu.peel import why_not_peeled
from tcl.codegen.passes.cpu.prefetch import why_not_prefetched
from tcl.codegen.passes.cpu.stream import why_not_streamed
from tcl.codegen.passes.vectorize import vectorized
from tcl.tuner.space.knobs import Knob, Value


@dataclass(frozen=True, slots=True)
class StreamKnobs:
    """For a nest whose results do not fit the second cache: whether these go past the caches, and
    whether its vectors begin on boundaries; else none."""

    knobs: tuple[Knob, ...]

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, lanes: Iterable[tuple[int, int]]
    ) -> StreamKnobs:
        """The knobs of an untiled nest that may have these ``lanes``; off by default."""
        layout = program.tensor(nest.point.target.tensor).layout
        if math.prod(layout.extents) * layout.itemsize <= device.l2_bytes:
            return StreamKnobs(())
        with_lanes = [vectorized(nest, *x) for x in lanes]
        peel = any(
            why_not_peeled(program, n, stream=False, copied=False) is None for n in with_lanes
        )
        stream = any(why_not_streamed(program, n, peel) is None for n in with_lanes)
        names = ["stream"] * stream + ["peel"] * peel
        return StreamKnobs(tuple(Knob(f"{nest.name}.{n}", (0, 1), 0, ordered=False) for n in names))

    def chosen(self, values: Mapping[str, Value]) -> tuple[bool, bool]:
        """Whether the nest writes past the caches, and begins on boundaries."""
        said = {k.name.rpartition(".")[2]: values[k.name] == 1 for k in self.knobs}
        return said.get("stream", False), said.get("peel", False)

    def values(self, stream: bool, peel: bool) -> dict[str, Value] | None:
        """Knob values for these choices; None if the knobs cannot say them."""
        wanted = {"stream": stream, "peel": peel}
        names = {k.name.rpartition(".")[2]: k.name for k in self.knobs}
        if any(on and name not in names for name, on in wanted.items()):
            return None
        return {names[name]: int(wanted[name]) for name in names}


_DISTANCES = (0, 1024, 2048, 4096, 16384)
"""Bytes; besides, that to the next block which a loop reads."""
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
            block = next_block(nest, layout, load.ref, device)
            distances = tuple(sorted({*_DISTANCES, own, block}))
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
