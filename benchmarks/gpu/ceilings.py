"""What the device could do, measured in the same run: copies, and products of large matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.gpu.peer import COPY


@dataclass(frozen=True, slots=True)
class Measured:
    """What a probe found."""

    name: str
    rate: str
    """``copy``, or an element type."""
    amount: int
    """Bytes or operations."""
    samples: tuple[float, ...]
    """Seconds. Empty if it failed."""
    error: str = ""

    @property
    def per_second(self) -> float | None:
        """Of the amount, by the median."""
        return self.amount / median(self.samples) if self.samples else None

    @staticmethod
    def of(data: Mapping[str, Any]) -> Measured:
        """From a contender's answer."""
        samples = tuple(data["seconds"])
        return Measured(data["name"], data["rate"], data["amount"], samples, data["error"])


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best rate of each kind; those that no probe found are not there."""

    rates: Mapping[str, float]

    @staticmethod
    def best(found: Iterable[Measured]) -> Ceilings:
        """Of the probes' findings."""
        rates: dict[str, float] = {}
        for probe in found:
            if probe.per_second is not None:
                rates[probe.rate] = max(rates.get(probe.rate, 0.0), probe.per_second)
        return Ceilings(rates)

    @property
    def copy(self) -> float | None:
        """Bytes per second, those read and those written both counted."""
        return self.rates.get(COPY)

    def seconds(self, flops: int, moved: int, type_: str) -> float | None:
        """The least time for this much work: arithmetic or memory, whichever takes longer. None if
        a rate is not known."""
        if self.copy is None or type_ not in self.rates:
            return None
        return max(flops / self.rates[type_], moved / self.copy)
