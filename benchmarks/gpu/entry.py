"""What a contender did on a row: samples with clock rates, which of them count, when they do."""

from __future__ import annotations

from statistics import median, quantiles

from tcl.bench.summary import Entry
from tcl.common.dataclass import dataclass

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
class GpuEntry(Entry):
    """Its samples are replays, each divided by its launches."""

    mhz: tuple[int | None, ...] = ()
    """Clock of the multiprocessors at each sample; None if unknown."""
    launches: int = 0
    """In a replay."""
    copies: int = 0
    """Sets of buffers that they went over."""
    captured: bool = False
    """Whether a replay was one graph; else the host launched everything."""
    highest_mhz: int | None = None

    @property
    def counted(self) -> tuple[float, ...]:
        """The samples that were not taken at a low clock; all of them if all were, as then that is
        what the device does under this load."""
        if self.highest_mhz is None:
            return self.samples
        least, pairs = _CLOCK * self.highest_mhz, zip(self.samples, self.mhz, strict=True)
        kept = tuple(seconds for seconds, mhz in pairs if mhz is None or mhz >= least)
        return kept or self.samples

    @property
    def seconds(self) -> float | None:
        """Median of the samples that count."""
        return median(self.counted) if self.samples else None

    @property
    def enough(self) -> bool:
        """Whether there are all the samples that are needed."""
        times = self.samples
        if not times:
            return False
        if len(times) < (_ENOUGH if times[0] * self.launches < _LONG else _SLOW_ENOUGH):
            return False
        if len(times) >= _MOST or sum(times) * self.launches >= _MEASURED:
            return True
        low, middle, high = quantiles(times, n=4, method="inclusive")
        return high - low < _STEADY * middle
