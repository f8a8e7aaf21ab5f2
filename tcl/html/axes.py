"""Scales of charts: where a value lies, and which values are written beside an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_WIDE = 4.0
"""Values that differ by more than this factor are shown on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from ``low`` to ``high``, shown between two coordinates."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """The coordinate of a value."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values on the axis, a few."""
        if self.logarithmic and self.high / self.low > 8:
            for leads in ((1, 2, 5), (1, 3), (1,)):
                found = _decades(self.low, self.high, leads)
                if len(found) <= most + 1:
                    return found
            return found[:: math.ceil(len(found) / most)]
        step = _round_step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def of_times(values: Iterable[float], start: float, end: float) -> Axis:
    """An axis for positive values, with a margin; logarithmic where they differ much."""
    values = list(values)
    low, high = min(values), max(values)
    if high / low > _WIDE:
        return Axis(low / 1.15, high * 1.15, start, end, True)
    spread = max(high - low, 0.05 * high)
    return Axis(max(low - 0.1 * spread, 0.0), high + 0.1 * spread, start, end)


def _decades(low: float, high: float, leads: tuple[int, ...]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # By a power of ten, and not by multiplying a fraction: 5e-05 and not 5.000000000000001e-05.
    found = (float(f"{lead}e{power}") for power in powers for lead in leads)
    return [value for value in found if low <= value <= high]


def _round_step(least: float) -> float:
    power = math.floor(math.log10(least)) if least > 0 else 0
    steps = (float(f"{lead}e{power}") for lead in (1, 2, 5, 10))
    return next(step for step in steps if step >= least * 0.999)
