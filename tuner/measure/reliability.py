"""How fast the machine is while candidates are timed, and whether times can be trusted.

A search lasts long enough for the machine to change under it: other programs take a core, or the
clock is lowered. So the first kernel that was correct, the yardstick, is timed again and again
between candidates. Where it takes much longer than at other times, so do the candidates: what they
took is then compared in its time, so that one that was timed in a bad moment is not lost. What is
stored is what was measured.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import TypeVar

from tcl.tuner.measure.harness import Timer, by_clock
from tcl.tuner.measure.timing import spread
from tcl.tuner.measure.verdict import Conditions, Outcome

SHARE = 0.02
"""Of the time that candidates are timed, so much goes to the yardstick at most."""
MOVED = 1.2
"""A machine is slower than it was when the yardstick takes so many times as long. Readings differ
by a tenth, smoothed, where nothing has changed."""
_SAMPLE = 5e-4
"""Least duration of a sample in seconds."""
_SAMPLES = 3


_T = TypeVar("_T")


class Yardstick:
    """A kernel that is timed between candidates, in the process that times these.

    ``run`` took ``seconds`` when it was timed as a candidate. ``reset`` is called, untimed, before
    each sample. ``timer`` times samples, if not ``clock``.
    """

    def __init__(
        self,
        run: Callable[[], object],
        seconds: float,
        *,
        reset: Callable[[], object] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        timer: Timer | None = None,
    ) -> None:
        self._seconds = timer or by_clock(clock)
        self._run = run
        self._reset = reset or (lambda: None)
        self._clock = clock
        self._calls = max(1, math.ceil(_SAMPLE / max(seconds, 1e-9)))
        self._cost = seconds * (1 + _SAMPLES * self._calls)
        self._spent = self._measuring = 0.0
        self._readings = [seconds]

    @property
    def pace(self) -> float:
        """How many times as long as when the machine was fastest it takes now; 1 unless that is
        clear."""
        return clear(self._readings[-1] / quick(smooth(self._readings)))

    def timed(self, take: Callable[[float], _T]) -> tuple[_T, float | None]:
        """Time a candidate by ``take``, which gets the pace, then the yardstick if that may be
        afforded. If the machine has changed since the last time, the candidate is timed again: it
        is not known on which side of the change it was.

        The measurement that counts, and what the yardstick took then.
        """
        began = self._clock()
        before = self._readings[-1]
        measured, reading = take(self.pace), None
        self._measuring += self._clock() - began
        if self._spent + self._cost <= SHARE * self._measuring:
            reading = self._time_reading()
            if clear(max(reading / before, before / reading)) > 1:
                measured = take(self.pace)
        return measured, reading

    def _time_reading(self) -> float:
        began = self._clock()
        self._reset()
        self._run()  # the candidate has filled the caches
        samples = []
        for _ in range(_SAMPLES):
            self._reset()
            samples.append(self._seconds(self._run, self._calls))
        self._readings.append(median(samples))
        self._cost = self._clock() - began
        self._spent += self._cost
        return self._readings[-1]


def smooth(readings: Sequence[float]) -> list[float]:
    """Each with its neighbours' median: one bad moment is no change, and a change stays one."""
    return [median(readings[max(0, k - 1) : k + 2]) for k in range(len(readings))]


def quick(smoothed: Sequence[float]) -> float:
    """The reading that stands for the machine at its fastest: nine of ten take longer. The least of
    many is mere luck."""
    return sorted(smoothed)[(len(smoothed) - 1) // 10]


def paces(conditions: Sequence[Conditions | None]) -> list[float]:
    """How many times as long as when the machine was fastest kernels took at these moments; 1
    where that is not clear, or not known.

    Between two readings the lower of them counts: what was timed there is not made faster than it
    is."""
    known: dict[tuple[str, str], dict[float, float]] = {}
    for c in conditions:
        if c is not None and c.yardstick is not None:
            known.setdefault(c.series, {})[c.at] = c.yardstick
    moments = {series: sorted(readings) for series, readings in known.items()}
    readings = {s: smooth([known[s][at] for at in times]) for s, times in moments.items()}
    of_kernel: dict[str, list[float]] = {}
    for (kernel, _), found in readings.items():
        of_kernel.setdefault(kernel, []).extend(found)
    fastest = {kernel: quick(found) for kernel, found in of_kernel.items()}

    def pace(c: Conditions | None) -> float:
        if c is None or c.series not in known:
            return 1.0
        times = moments[c.series]
        around = readings[c.series][max(0, bisect_right(times, c.at) - 1) :]
        around = around[: 1 if c.at in known[c.series] or c.at < times[0] else 2]
        return clear(min(around) / fastest[c.kernel])

    return [pace(c) for c in conditions]


def settled(outcomes: Sequence[Outcome]) -> list[float | None]:
    """What the candidates would have taken on the machine as it was when it was fastest: seconds
    to compare them by. None for those without a time."""
    found = paces([o.conditions for o in outcomes])
    return [o.time and o.time / pace for o, pace in zip(outcomes, found, strict=True)]


def clear(ratio: float) -> float:
    """The ratio of two readings; 1 if it may be chance."""
    return ratio if ratio >= MOVED else 1.0


def scale(pairs: Sequence[tuple[float, float]]) -> float:
    """How many times as slow the machine is when the same kernels are timed once more: ``pairs`` of
    what each takes now and took before. 1 unless that is clear."""
    ratio = median(now / before for now, before in pairs)
    return ratio if clear(max(ratio, 1 / ratio)) > 1 else 1.0


BUSY = 0.1
"""Share of the measuring cores that other processes may use."""
ENOUGH = 1.0
"""Seconds of measuring before that is judged: the system counts in hundredths."""
NOISY = 0.05
"""Median absolute deviation over median that samples of one kernel may have ..."""
KERNELS = 10
"""... in the median of so many kernels."""
_JUDGED = 5
"""Samples that a kernel has, at least, for its spread to be judged."""
_LASTING = 3
"""Readings that agree that the machine is slower."""


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
        self._readings: dict[tuple[str, str], list[float]] = {}
        self._said: set[str] = set()

    def take(self, outcome: Outcome) -> list[str]:
        """What there is to say after one more candidate."""
        conditions = outcome.conditions
        if conditions is None or conditions.moment in self._seen:
            return []  # not measured, or the same kernel again
        self._seen.add(conditions.moment)
        if len(outcome.times) >= _JUDGED:
            self._spreads.append(spread(outcome.times))
        if conditions.others is not None:
            self._seconds += conditions.seconds
            self._others += conditions.others * conditions.seconds
        if conditions.yardstick is not None:
            self._readings.setdefault(conditions.series, []).append(conditions.yardstick)
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
            f"the same kernels took {slower:.2g} times as long in the finals as in the search: "
            "their order is right, but the times are too long; check what else runs"
        ]

    def _judged(self) -> Iterator[tuple[str, str]]:
        busy = self._others / self._seconds if self._seconds >= ENOUGH else 0.0
        if busy > BUSY:
            yield (
                "busy",
                f"other processes use {busy:.0%} of the measuring cores, so times are too long "
                "and hard to compare: stop them, or keep them off these cores (taskset)",
            )
        noise = median(self._spreads) if len(self._spreads) == KERNELS else 0.0
        if noise > NOISY and busy <= BUSY:
            yield (
                "noisy",
                f"samples of one kernel differ by {noise:.0%}, several times as much as on a "
                "quiet machine: small differences between candidates mean little until the "
                "machine is quieter",
            )
        lasting = (r for r in self._readings.values() if len(r) >= _LASTING)
        pace = max((min(r[-_LASTING:]) / quick(smooth(r)) for r in lasting), default=1.0)
        if clear(pace) > 1:
            yield (
                "slower",
                f"the machine is now {pace:.2g} times as slow as earlier in this search, "
                "measured by one kernel that is timed repeatedly: the ranking allows for this, "
                "but the shown times do not; check what else runs",
            )
