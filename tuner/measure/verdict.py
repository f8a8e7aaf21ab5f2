"""How a candidate ended, in the vocabulary of the auto-tuning community's T4 format."""

from __future__ import annotations

import math
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from tcl.common.dataclass import dataclass
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    import statistics
else:
    statistics = Lazy("statistics")


class Verdict(Enum):
    """Every candidate ends with exactly one."""

    CORRECT = "correct"
    """Verified and timed."""
    CONSTRAINTS = "constraints"
    """The options cannot be applied to this def, sizes or device."""
    COMPILE = "compile"
    """The compiler failed."""
    RUNTIME = "runtime"
    """The kernel raised or killed its process."""
    TIMEOUT = "timeout"
    """Compiling or running took too long and was ended."""
    CORRECTNESS = "correctness"
    """It ran, and its results differ from the reference."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of the machine while a candidate was evaluated."""

    at: float
    """When that ended, in seconds since the epoch."""
    seconds: float
    """How long it took."""
    others: float | None = None
    """Share of the measuring cores' time that other processes used; None if unknown."""
    yardstick: float | None = None
    """What the yardstick took, in seconds, if it was timed with this candidate."""
    place: str = ""
    """Which machine and cores."""
    kernel: str = ""
    """Which one is the yardstick; empty before there is one."""

    @property
    def series(self) -> tuple[str, str]:
        """Of readings that tell how the pace of one place changes."""
        return self.kernel, self.place

    @property
    def moment(self) -> tuple[str, float]:
        """What no other evaluation has."""
        return self.place, self.at

    @classmethod
    def from_json(cls, data: Any) -> Conditions:
        """From their values as JSON data; ``ValueError`` if they cannot be such."""
        match data:
            case [
                float() | int(),
                float() | int(),
                float() | int() | None,
                float() | None,
                str(),
                str(),
            ] if all(math.isfinite(x) for x in data[:4] if x is not None) and (
                data[3] is None or data[3] > 0
            ):
                return cls(*data)
        raise ValueError("conditions must be four numbers, two of them optional, and two names")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a candidate after its evaluation."""

    verdict: Verdict
    times: tuple[float, ...] = ()
    """Seconds per call, one per sample, in the order measured. Empty unless ``CORRECT``."""
    message: str = ""
    """Why it failed, or that measuring stopped early; a sentence."""
    heat: int | None = None
    """Which heat of the finals this is from; None outside of the finals."""
    place: int | None = None
    """The place that this heat's verdict gave, from 1; None outside of the finals."""
    conditions: Conditions | None = field(default=None, compare=False, repr=False)
    """Of the machine meanwhile; None if not evaluated, or not in this run."""
    placed: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """The samples on each placement of the arrays, by its name; empty if that is not known."""

    @property
    def time(self) -> float | None:
        """Seconds per call, None unless ``CORRECT``: the median, or the geometric mean of the
        medians on each placement of the arrays."""
        if self.placed:
            return math.prod(self.placements.values()) ** (1 / len(self.placements))
        return statistics.median(self.times) if self.times else None

    @property
    def placements(self) -> dict[str, float]:
        """Median seconds per call on each placement, by its name."""
        return {name: statistics.median(times) for name, times in self.placed}
