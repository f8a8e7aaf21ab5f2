"""Which operands of a nest are copied into panels, as knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.ir_walk import operands
from tcl.codegen.passes.stage import MAX_BYTES, dims_of, natural_level, why_not_staged
from tcl.tuner.knobs import Knob, Value

_OPERANDS = 3
"""Operands that get a knob: the first ones that can be staged."""


@dataclass(frozen=True, slots=True)
class StageKnobs:
    """One switch per operand. It is copied inside of all loops over tiles that move it: further
    out a panel would be larger, further in it would be copied more often."""

    nest: ir.Nest
    reads: tuple[ir.Load, ...]
    chosen: Mapping[int, Knob]
    """By position of the operand."""

    @staticmethod
    def of(nest: ir.Nest) -> StageKnobs:
        """The knobs of an untiled nest."""
        reads = operands(nest.point)
        points = math.prod(d.extent for d in nest.dims)
        # A copy pays if its elements are read again.
        able = [
            k
            for k, load in enumerate(reads)
            if why_not_staged(nest, load) is None and _points(nest, load.ref) < points
        ]
        chosen = {
            k: Knob(f"{nest.name}.stage{k}", (0, 1), 0, ordered=True) for k in able[:_OPERANDS]
        }
        return StageKnobs(nest, reads, chosen)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return tuple(self.chosen.values())

    def levels(self, values: Mapping[str, Value], tiles: Sequence[str]) -> tuple[int, ...]:
        """The option; ``tiles`` are the dimensions that are tiled, in the order of their loops."""
        levels = [-1] * len(self.reads)
        for position, knob in self.chosen.items():
            if values[knob.name]:
                levels[position] = natural_level(tiles, self.reads[position].ref)
        return tuple(levels) if any(level >= 0 for level in levels) else ()

    def values(self, levels: Sequence[int], tiles: Sequence[str]) -> dict[str, Value] | None:
        """Knob values for the option; None if the knobs cannot say it."""
        found: dict[str, Value] = {k.name: 0 for k in self.chosen.values()}
        for position, level in enumerate(levels):
            if level < 0:
                continue
            if position not in self.chosen:
                return None
            if level != natural_level(tiles, self.reads[position].ref):
                return None
            found[self.chosen[position].name] = 1
        return found

    def too_large(self, values: Mapping[str, Value], sizes: Mapping[str, int]) -> str | None:
        """Why a panel would not fit, given the points of each dimension in a tile."""
        for position, knob in self.chosen.items():
            load = self.reads[position]
            # Each axis is rounded up to whole register tiles: to less than twice its size.
            room = math.prod(2 * sizes[d] for d in dims_of(load.ref)) * load.type.compute.bits // 8
            if values[knob.name] and room > MAX_BYTES:
                return f"nest {self.nest.name}: the panel of {load.ref.tensor} is too large"
        return None


def _points(nest: ir.Nest, ref: ir.TensorRef) -> int:
    return math.prod(nest.dim(d).extent for d in dims_of(ref))
