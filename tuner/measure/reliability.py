"""Whether what a search measures can be trusted: sentences for the user when it cannot."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator
from statistics import median

from tcl.tuner.measure.machine_speed import clear, quick
from tcl.tuner.measure.timing import spread
from tcl.tuner.measure.verdict import Outcome

BUSY = 0.1
"""Share of the measuring cores that other processes may use."""
ENOUGH = 1.0
"""Seconds of measuring before that is judged: the system counts in hundredths."""
NOISY = 0.05
"""Median absolute deviation over median that samples of one kernel may have ..."""
KERNELS = 10
"""... in the median of so many kernels."""
_SAMPLES = 5
"""That a kernel has, at least, for its spread to be judged."""
_LASTING = 3
"""Readings that agree that the machine is slower."""


class _Place:
    """What one yardstick takes in one place."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_LASTING)
        self._smoothed: list[float] = []

    def add(self, reading: float) -> None:
        self._last.append(reading)
        if len(self._last) == _LASTING:
            insort(self._smoothed, median(self._last))

    @property
    def pace(self) -> float:
        """How many times as slow it has become, if that lasts."""
        return clear(min(self._last) / quick(self._smoothed)) if self._smoothed else 1.0


def share_of_others(outcomes: Iterable[Outcome]) -> float:
    """Which share of the measuring cores' time other processes used while these were evaluated; 0
    where that is not known, or was too short to tell."""
    known = [c for o in outcomes if (c := o.conditions) is not None and c.others is not None]
    moments = {c.moment: c for c in known}.values()
    seconds = sum(c.seconds for c in moments)
    if seconds < ENOUGH / 2:
        return 0.0
    return sum((c.others or 0.0) * c.seconds for c in moments) / seconds


class Doubts:
    """Takes the outcomes of a search, and says each thing once."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, float]] = set()
        self._seconds = self._others = 0.0
        self._spreads: deque[float] = deque(maxlen=KERNELS)
        self._places: dict[tuple[str, str], _Place] = {}
        self._said: set[str] = set()

    def take(self, outcome: Outcome) -> list[str]:
        """What there is to say after one more candidate."""
        conditions = outcome.conditions
        if conditions is None or conditions.moment in self._seen:
            return []  # not measured, or the same kernel again
        self._seen.add(conditions.moment)
        if len(outcome.times) >= _SAMPLES:
            self._spreads.append(spread(outcome.times))
        if conditions.others is not None:
            self._seconds += conditions.seconds
            self._others += conditions.others * conditions.seconds
        if conditions.yardstick is not None:
            self._places.setdefault(conditions.series, _Place()).add(conditions.yardstick)
        found = dict(self._judged())
        new = [text for kind, text in found.items() if kind not in self._said]
        self._said.update(found)
        return new

    def raced(self, slower: float) -> list[str]:
        """What there is to say after finals that took so many times as long as the search."""
        if slower <= 1 or self._said & {"busy", "slower"}:
            return []
        self._said.add("slower")
        return [
            f"the finals took {slower:.2g} times as long as the same kernels in the search: their "
            "order holds, but times are too long; see what else runs"
        ]

    def _judged(self) -> Iterator[tuple[str, str]]:
        busy = self._others / self._seconds if self._seconds >= ENOUGH else 0.0
        if busy > BUSY:
            yield (
                "busy",
                f"other processes use {busy:.0%} of the cores that measure, so times are too long "
                "and compare badly: stop them, or keep them off these cores (taskset)",
            )
        noise = median(self._spreads) if len(self._spreads) == KERNELS else 0.0
        if noise > NOISY and busy <= BUSY:
            yield (
                "noisy",
                f"samples of one kernel differ by {noise:.0%}, several times as much as on a quiet "
                "machine: close differences between candidates say little until it is quieter",
            )
        pace = max((place.pace for place in self._places.values()), default=1.0)
        if pace > 1:
            yield (
                "slower",
                f"the machine is {pace:.2g} times as slow as before in this search, by a kernel "
                "that is timed again and again: candidates are ranked by how they compare to it, "
                "but the times shown are as measured; see what else runs",
            )
