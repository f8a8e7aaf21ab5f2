"""Timing a kernel.

The first call is excluded and only estimates. Calls are batched so that a sample lasts at least
a millisecond; two samples are discarded, as the first is nearly always the slowest; sampling ends
when the samples agree or the budget is spent. Their median counts, as a few slow ones raise the
mean by up to a third. Candidates that are far behind the best are dropped after one or two calls,
and after two samples those that are clearly behind, which are not timed on other placements: what
has few samples is never the best. Of long calls two have to do, of which the second counts: finals
tell them apart.

Where arrays may lie in several ways, a kernel is timed on each, and what it takes is the geometric
mean: of two kernels the one is ahead that is so by the mean ratio of their times.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import geometric_mean, median
from types import FrameType
from typing import TypeAlias

from tcl.tuner.measure.harness import Timer, by_clock


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How long and how often to measure. Times in seconds."""

    sample: float = 1e-3
    """Least duration of a sample."""
    discard: int = 2
    """Samples thrown away at the start."""
    samples: int = 9
    """Least number of samples, where the budget allows."""
    agreement: float = 0.01
    """Enough once ``samples`` samples agree so well, or more samples as a whole: see ``error``."""
    budget: float = 0.2
    """Sampling ends after this long, but not before three samples of what may be good."""
    hopeless: float = 100.0
    """Dropped if the first call takes this many times the best."""
    slow: float = 5.0
    """Dropped if the second call still takes this many times the best."""
    behind: float = 1.05
    """No more than three samples if even the fastest takes this many times the best."""
    clear: float = 1.2
    """Dropped if the fastest of two samples takes this many times the best ..."""
    certain: float = 2.0
    """... or one that is discarded, and the second call as well, this many times."""
    long: float = 0.05
    """A call that takes so long is timed once, after one that does not count ..."""
    doubtful: float = 2.0
    """... and not at all if that one takes this many times the best, which is long, too."""
    far: float = 1.25
    """Dropped if a long call takes this many times the best."""
    single: bool = True
    """Whether a call alone tells enough of what takes less than a sample to drop it. If not, the
    second is followed by as many as fill a sample, and the first tells of long calls only."""

    def for_each_of(self, placements: int) -> MeasureSettings:
        """For each of so many placements, which together get as much time."""
        if placements == 1:
            return self
        return replace(
            self,
            discard=math.ceil(self.discard / placements),
            samples=math.ceil(self.samples / placements),
            budget=self.budget / placements,
        )

    def calls(self, seconds: float) -> int:
        """Calls of a sample, where one takes so long."""
        return max(1, math.ceil(self.sample / max(seconds, 1e-9)))

    def gives_up(self, first: float, best: float | None) -> bool:
        """Whether a kernel whose first call took so long is not timed."""
        if best is None or not (self.single or first >= self.long):
            return False
        return first >= (self.doubtful if best >= self.long else self.hopeless) * best


@dataclass(frozen=True, slots=True)
class Measurement:
    """Samples of one kernel."""

    times: tuple[float, ...]
    """Seconds per call of each sample, in order; at least one."""
    dropped: bool
    """Measuring ended early because the kernel is far behind the best."""

    @property
    def median(self) -> float:
        """Median seconds per call."""
        return median(self.times)


Placed: TypeAlias = tuple[tuple[str, tuple[float, ...]], ...]
"""Seconds per call of each sample on each placement, by its name."""


def together(placed: Placed) -> tuple[float, ...]:
    """Of each sample the geometric mean over the placements."""
    return tuple(map(geometric_mean, zip(*(times for _, times in placed), strict=False)))


_FEWEST = 3


def measure(
    run: Callable[[], object],
    *,
    first: float | None = None,
    best: float | None = None,
    reset: Callable[[], object] | None = None,
    settings: MeasureSettings = MeasureSettings(),
    clock: Callable[[], float] = time.perf_counter,
    timer: Timer | None = None,
) -> Measurement:
    """Time ``run``.

    ``first`` is the duration of a first call that was already made (to verify, say), ``best`` the
    time to beat; both in seconds. ``reset`` is called, untimed, before each sample. ``timer``
    times samples, if not ``clock``, which tells how long all this takes.
    """
    seconds = timer or by_clock(clock)

    def take_sample(calls: int) -> float:
        if reset is not None:
            reset()
        return seconds(run, calls)

    if first is None:
        first = take_sample(1)
    if settings.gives_up(first, best):
        return Measurement((first,), True)
    second = take_sample(1)
    if not settings.single and second < settings.sample:
        second = take_sample(settings.calls(second))
    long = second >= settings.long
    if best is not None and second >= (settings.far if long else settings.slow) * best:
        return Measurement((second,), True)
    if long:
        return Measurement((second,), False)
    calls = settings.calls(second)
    started = clock()
    times: list[float] = []
    if second * (settings.discard + _FEWEST) > settings.budget:
        times.append(second)  # long calls are warm after one, and too dear to throw away
    else:
        for _ in range(settings.discard):
            fastest = take_sample(calls)
            if best is not None and min(second, fastest) >= settings.certain * best:
                return Measurement((fastest,), True)
            # The estimate came from a cold call: correct it while samples are still discarded.
            calls = max(calls, settings.calls(fastest))
    while not _enough(times, clock() - started, best, settings):
        times.append(take_sample(calls))
        if len(times) > 1 and best is not None and min(times) >= settings.clear * best:
            return Measurement(tuple(times), True)
    return Measurement(tuple(times), False)


def _enough(
    times: list[float], spent: float, best: float | None, settings: MeasureSettings
) -> bool:
    if len(times) < _FEWEST:
        return False
    if spent >= settings.budget or (best is not None and min(times) > settings.behind * best):
        return True
    return len(times) >= settings.samples and error(times, settings.samples) < settings.agreement


def error(times: Sequence[float], samples: int) -> float:
    """How far the samples disagree, brought to that many of them: the median of four times as many
    is known twice as well."""
    return spread(tuple(times)) * math.sqrt(samples / len(times))


def spread(times: tuple[float, ...]) -> float:
    """Median absolute deviation over median: how far the samples disagree."""
    middle = median(times)
    return median(abs(t - middle) for t in times) / middle if middle > 0 else 0.0


class TooSlowError(Exception):
    """A call was ended because it took too long."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """A block that ends with ``TooSlowError`` if it takes longer; None: as long as it takes.

    Kernels of the CPU hear of that between pieces of their work (see
    ``tcl.codegen.cpu.run.launch.Launcher.attentive``). Only the main thread can be ended so: in
    others the block takes as long as it takes.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"it was stopped after {seconds:.2g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
