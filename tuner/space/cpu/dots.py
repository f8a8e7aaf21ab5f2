"""Dot products of a nest as a knob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.dot import depths
from tcl.tuner.space.knobs import Knob, Value

_NONE = "none"


@dataclass(frozen=True, slots=True)
class DotKnobs:
    """One knob where the device has an instruction for the nest's sums: the reduction and how many
    of its points are added up at once, as ``2 4``; else none."""

    rank: int
    knobs: tuple[Knob, ...]

    @staticmethod
    def of(nest: ir.Nest, device: CpuProfile, default: Sequence[int]) -> DotKnobs:
        """The knob of an untiled nest, with the sizes ``default`` among its choices."""
        pairs = [
            _text(position, depth)
            for position, dim in enumerate(nest.dims)
            if dim.reduction and dim.extent > 1
            for depth in depths(nest, device)
        ]
        own = [_text(k, size) for k, size in enumerate(default) if size > 1]
        choices = tuple(dict.fromkeys((_NONE, *pairs, *own)))
        some = len(choices) > 1
        knob = Knob(f"{nest.name}.dot", choices, _NONE, ordered=False)
        return DotKnobs(len(nest.dims), (knob,) if some else ())

    def sizes(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        chosen = str(values[self.knobs[0].name]) if self.knobs else _NONE
        if chosen == _NONE:
            return ()
        position, depth = map(int, chosen.split())
        return tuple(depth if k == position else 0 for k in range(self.rank))

    def values(self, sizes: Sequence[int]) -> dict[str, Value] | None:
        """Knob values for the option; None if the knob cannot say it."""
        chosen = [_text(k, size) for k, size in enumerate(sizes) if size > 1]
        if not self.knobs or len(chosen) > 1:
            return None if chosen else {}
        return {self.knobs[0].name: chosen[0] if chosen else _NONE}


def _text(position: int, depth: int) -> str:
    return f"{position} {depth}"
