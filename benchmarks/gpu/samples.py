"""What samples say: medians, spread, when there are enough, and which not to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_ENOUGH = 15
"""Samples that a contender gives at least."""
_SLOW_ENOUGH = 5
"""The same for calls that take long."""
_LONG = 0.05
"""Seconds of a call that takes long."""
_STEADY = 0.01
"""Interquartile range over median below which no more samples are needed."""
_MEASURED = 0.1
"""Seconds of the device after which no more are taken."""
_MOST = 60
_CLOCK = 0.75
"""Share of the highest clock below which a sample does not count."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One replay, divided by how often the work is done in it."""

    seconds: float
    mhz: int | None = None
    """Clock of the multiprocessors meanwhile; None if unknown."""


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The first, the median and the third, by linear interpolation; ``ValueError`` if empty."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no quartiles of nothing")

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (position - below) * (ordered[above] - ordered[below])

    return at(0.25), median(tuple(ordered)), at(0.75)


def spread(values: Sequence[float]) -> float:
    """Interquartile range over the median."""
    low, middle, high = quartiles(values)
    return (high - low) / middle if middle else 0.0


def enough(samples: Sequence[Sample], launches: int) -> bool:
    """Whether a contender has given all the samples that are needed."""
    times = [s.seconds for s in samples]
    if not times:
        return False
    least = _ENOUGH if times[0] * launches < _LONG else _SLOW_ENOUGH
    if len(times) < least:
        return False
    measured = sum(times) * launches
    return len(times) >= _MOST or measured >= _MEASURED or spread(times) < _STEADY


def counted(samples: Sequence[Sample], highest: int | None) -> list[Sample]:
    """Those that were not taken at a low clock; all of them if all were, as then that is what the
    device does under this load."""
    if highest is None:
        return list(samples)
    kept = [s for s in samples if s.mhz is None or s.mhz >= _CLOCK * highest]
    return kept or list(samples)
