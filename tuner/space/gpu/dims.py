"""How the points of one dimension are divided among a GPU's blocks and threads, as knobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcl.codegen.loopir import ir
from tcl.tuner.space.knobs import Knob, Value

_REGISTER = (1, 2, 4, 8, 16)
_STEPS = (0, 1, 2, 4, 8, 16)
_TILE_STEPS = (0, 1, 2, 4, 8, 16, 32)
_SMALL = 8
"""Dimensions of so few points may be written out as a whole, and are not divided further."""


@dataclass(frozen=True, slots=True)
class DimKnobs:
    """Threads, points that each of them holds, and steps.

    Threads, times what each of them holds, times lanes are a *unit* of points. The chunk of a
    result, or the tile of a reduction, is so many units as there are steps, and so a multiple of
    them whatever is chosen. 0 steps: the dimension is whole.
    """

    position: int
    dim: ir.Dim
    threads: Knob
    register: Knob
    steps: Knob
    default_unit: int
    default_held: int

    @staticmethod
    def of(position: int, dim: ir.Dim, most: int, own: Mapping[str, Value], lanes: int) -> DimKnobs:
        """The knobs of a dimension that has up to ``most`` threads; ``own`` are their defaults,
        with so many ``lanes``."""
        extent, name = dim.extent, dim.name
        powers = [1 << p for p in range((extent - 1).bit_length() + 1)]
        register = [r for r in _REGISTER if r in powers] + [extent] * (extent <= _SMALL)
        steps = _TILE_STEPS if dim.reduction else _STEPS
        few = [s for s in steps if s <= (1 if extent <= _SMALL else extent)]
        return DimKnobs(
            position,
            dim,
            _knob(f"{name}.threads", [t for t in powers if t <= most], own),
            _knob(f"{name}.register", register, own),
            _knob(f"{name}.steps", few, own),
            lanes * int(own[f"{name}.threads"]) * int(own[f"{name}.register"]),
            int(own[f"{name}.register"]),
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Those that are a choice."""
        return tuple(k for k in (self.threads, self.register, self.steps) if len(k.choices) > 1)


def _knob(name: str, choices: list[int], own: Mapping[str, Value]) -> Knob:
    default = int(own[name])
    return Knob(name, tuple(sorted({*choices, default})), default, ordered=True)


def number(values: Mapping[str, Value], knob: Knob) -> int:
    """The value of a knob, which is not looked at where there is only one."""
    return int(knob.default if len(knob.choices) == 1 else values[knob.name])
