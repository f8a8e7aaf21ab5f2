"""Which operands of a nest are copied into panels, as knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.cpu.stage import (
    MAX_BYTES,
    dims_of,
    natural_level,
    why_not_copied,
)
from tcl.tuner.space.knobs import Knob, Value

_OPERANDS = 3
"""Operands that get a knob: the first ones that can be staged."""
_ROUNDED = 12
"""Loops round an axis of a panel up to less than so many times its points: 3 for whole vectors and
register tiles, twice for tiles and twice for chunks. Only where there are fewer points than lanes,
it may be as many times more as there are lanes."""
_DOTS = 8
"""Likewise, for dot products of four points, whose factors may take twice as much memory."""


@dataclass(frozen=True, slots=True)
class StageKnobs:
    """One choice per operand: to leave it; to copy it inside of all loops over chunks and tiles
    that move it (further out a panel would be larger, further in it would be copied more often);
    or to copy all of it once, before the loops over chunks."""

    nest: ir.Nest
    reads: tuple[ir.Load, ...]
    chosen: Mapping[int, Knob]
    """By position of the operand."""

    @staticmethod
    def of(nest: ir.Nest, made: set[str]) -> StageKnobs:
        """The knobs of an untiled nest. ``made``: tensors that do not exist before its chunks."""
        reads = operands(nest.point)
        points = nest.points
        # A copy pays if its elements are read again.
        able = [
            k
            for k, load in enumerate(reads)
            if why_not_copied(nest, load) is None and _points(nest, load.ref) < points
        ]
        chosen = {
            k: Knob(
                f"{nest.name}.stage{k}",
                (0, 1) if reads[k].ref.tensor in made else (0, 1, 2),
                0,
                ordered=True,
            )
            for k in able[:_OPERANDS]
        }
        return StageKnobs(nest, reads, chosen)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return tuple(self.chosen.values())

    def may_be_too_large(self, lanes: int, dots: bool) -> tuple[Knob, ...]:
        """Of the operands whose panels may be, by some choice of the other knobs. ``lanes``: most
        that there may be; ``dots``: there may be dot products."""
        found = []
        lanes *= _DOTS if dots else 1
        for position, knob in self.chosen.items():
            load = self.reads[position]
            axes = len(dims_of(load.ref))
            room = _points(self.nest, load.ref) * load.type.compute.itemsize
            if room * lanes * _ROUNDED**axes + LINE > MAX_BYTES:
                found.append(knob)
        return tuple(found)

    def before_chunks(self, values: Mapping[str, Value]) -> bool:
        """Whether an operand is copied before the loops over chunks."""
        return any(values[k.name] == 2 for k in self.chosen.values())

    def copied(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """Which operands are copied, as the option for a nest without loops over tiles or chunks:
        before all loops, if they are."""
        knobs = map(self.chosen.get, range(len(self.reads)))
        return tuple(0 if knob and values[knob.name] else -1 for knob in knobs)

    def levels(
        self, values: Mapping[str, Value], tiles: Sequence[str], chunked: bool
    ) -> tuple[int, ...]:
        """The option; ``tiles`` are the dimensions that are tiled, in the order of their loops.
        Whether there are chunks around them, too."""
        levels = [-1] * len(self.reads)
        for position, knob in self.chosen.items():
            if values[knob.name] == 1:
                levels[position] = natural_level(tiles, self.reads[position].ref) + chunked
            elif values[knob.name] == 2:
                levels[position] = 0
        return tuple(levels) if any(level >= 0 for level in levels) else ()

    def values(
        self, levels: Sequence[int], tiles: Sequence[str], chunked: bool
    ) -> dict[str, Value] | None:
        """Knob values for the option; None if the knobs cannot say it."""
        found: dict[str, Value] = {k.name: 0 for k in self.chosen.values()}
        for position, level in enumerate(levels):
            if level < 0:
                continue
            if position not in self.chosen:
                return None
            before = chunked and level == 0
            if not before and level != natural_level(tiles, self.reads[position].ref) + chunked:
                return None
            found[self.chosen[position].name] = 2 if before else 1
        return found


def _points(nest: ir.Nest, ref: ir.TensorRef) -> int:
    return math.prod(nest.dim(d).extent for d in dims_of(ref))
