"""The finals of a search: which of several kernels is faster, told by paired comparisons.

During the search candidates are timed one after the other, while the machine may change, and the
fastest of many is partly the luckiest. In the finals all see the same machine.

Within a process, a *session*, kernels take turns: each round times all of them, so that what slows
the machine down slows all of them alike, and the ratio of two times of one round is hardly touched
by it. What a process does to one kernel alone (where its code and its arrays lie) is the same in
all its rounds, so that a session counts as one observation, however many rounds it has: the median
of its rounds' log ratios, as a mean over the placements of the arrays. The mean of the sessions is
the estimate; its standard error has a prior (a scaled inverse chi-squared distribution: Gelman et
al., Bayesian Data Analysis, 3.2), as the spread of two or three observations says little. More
sessions are held until a comparison is sure: a sequential test.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median

from tcl.tuner.measure.harness import Timer, by_clock
from tcl.tuner.measure.timing import Placed

SURE = 3.3
"""Standard errors that an estimate lies beyond a limit where an error would make users' kernels
slower: comparisons are looked at after each session, and there are many candidates ..."""
LIKELY = 1.7
"""... and where it would only leave a little speed: which candidate is dropped, or is the winner of
two that are both faster than the incumbent."""
CLEARLY = 0.99
"""What a challenger's time is of the incumbent's at most."""
_LEVEL = 1.01
"""What it may be on one placement of the arrays: less cannot be told."""
_NEAR = 1.03
"""The search for the best of several challengers ends when none is likely to be faster than the
first of them by more than this."""
PRIOR = 0.025
"""Standard deviation between sessions of the log ratio of two kernels, before any is known ..."""
WEIGHT = 4
"""... which counts as so many observations."""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """One kernel's time over another's, as a logarithm."""

    mean: float
    error: float
    """The standard error of the mean."""

    @property
    def ratio(self) -> float:
        return math.exp(self.mean)

    def below(self, limit: float, errors: float = SURE) -> bool:
        """Whether the ratio is below a limit by so many standard errors."""
        return self.mean + errors * self.error < math.log(limit)

    def above(self, limit: float, errors: float = SURE) -> bool:
        """Whether the ratio is above a limit by so many standard errors."""
        return self.mean - errors * self.error > math.log(limit)


@dataclass(slots=True)
class Sessions:
    """Times of kernels by their names, from one or more processes."""

    _times: list[Mapping[str, Placed]] = field(default_factory=list)
    _known: dict[tuple[int, str, str], list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, times: Mapping[str, Placed]) -> None:
        """Take over a session: samples of one round each, in the same order for all kernels."""
        self._times.append(times)

    def count(self, name: str) -> int:
        """How many sessions a kernel took part in."""
        return sum(name in times for times in self._times)

    def placements(self, name: str) -> list[str]:
        """The names of the placements that a kernel was timed on."""
        return next(([p for p, _ in times[name]] for times in self._times if name in times), [])

    def seconds(self, name: str) -> list[float]:
        """Of each placement the median over the sessions of a kernel's median time."""
        of_sessions = [
            [median(samples) for _, samples in times[name]]
            for times in self._times
            if name in times
        ]
        return [median(each) for each in zip(*of_sessions, strict=True)]

    def compare(self, one: str, other: str, placement: int | None = None) -> PairedComparison:
        """Over the sessions that both took part in, of which there must be one; on one placement,
        or all of them together."""
        found = self._observations(one, other, placement)
        means = [fmean(mean for mean, _ in each) for each in found]
        within = fmean(sum(e * e for _, e in each) / len(each) ** 2 for each in found)
        return over_sessions(means, within)

    def ratios(self, one: str, other: str) -> list[float]:
        """Of each session that both took part in, all placements together."""
        found = self._observations(one, other, None)
        return [math.exp(fmean(mean for mean, _ in each)) for each in found]

    def across(self, one: str, other: str, third: str) -> PairedComparison:
        """``compare``; of two that were in no session together, by what both are to a third."""
        if self._common(one, other):
            return self.compare(one, other)
        ours, theirs = self.compare(one, third), self.compare(other, third)
        return PairedComparison(ours.mean - theirs.mean, math.hypot(ours.error, theirs.error))

    def _observations(
        self, one: str, other: str, placement: int | None
    ) -> list[list[tuple[float, float]]]:
        found = [self._observed(number, one, other) for number in self._common(one, other)]
        return found if placement is None else [[each[placement]] for each in found]

    def _common(self, one: str, other: str) -> list[int]:
        return [k for k, times in enumerate(self._times) if one in times and other in times]

    def _observed(self, number: int, one: str, other: str) -> list[tuple[float, float]]:
        """Of each placement the median of a session's log ratios, and the standard error of that
        median."""
        key = (number, one, other)
        if key not in self._known:
            times = self._times[number]
            pairs = zip(times[one], times[other], strict=True)
            self._known[key] = [middle(_logs(ours, theirs)) for (_, ours), (_, theirs) in pairs]
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Standing:
    """What sessions say of the kernels that took part in them."""

    order: tuple[str, ...]
    """The winner, then the others by their ratio to the incumbent's time."""
    open: tuple[str, ...]
    """The challengers that may still be the best, the most likely first."""
    settled: bool
    """Whether more sessions would not change the winner."""


def standing(
    sessions: Sessions, names: Sequence[str], incumbent: str, clearly: float = CLEARLY
) -> Standing:
    """Who wins: the fastest of the challengers that are surely faster than the incumbent, on no
    placement slower, and by estimate at most ``clearly`` times its time; else the incumbent.
    ``names``: all kernels, the incumbent among them; each has been in a session with it."""
    ratios = {name: sessions.compare(name, incumbent) for name in names}
    parts = range(len(sessions.placements(incumbent)))
    on = {n: [sessions.compare(n, incumbent, part) for part in parts] for n in names}
    ranked = sorted(names, key=lambda name: ratios[name].mean)
    level = {n: all(c.ratio <= _LEVEL for c in on[n]) for n in names}
    may_win = [
        name
        for name in ranked
        if name != incumbent
        and not ratios[name].above(clearly, LIKELY)
        and not any(c.above(1.0) for c in on[name])
    ]
    # One that is slower on a placement, as far as is known, is not what others have to beat.
    first = next((name for name in may_win if level[name]), None)
    if first is not None:
        beaten = [sessions.across(name, first, incumbent) for name in may_win]
        may_win = [n for n, c in zip(may_win, beaten, strict=True) if not c.above(1.0, LIKELY)]
    faster = [
        name
        for name in may_win
        if level[name] and ratios[name].ratio <= clearly and ratios[name].below(1.0)
    ]
    best = faster[0] if faster else incumbent
    rivals = [sessions.across(best, name, incumbent) for name in may_win if name != best]
    settled = all(c.below(_NEAR, LIKELY) for c in rivals) if faster else not may_win
    return Standing((best, *(n for n in ranked if n != best)), tuple(may_win), settled)


def _logs(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    # A clock may have no time for what is very short.
    return [math.log(max(a, 1e-12) / max(b, 1e-12)) for a, b in zip(ours, theirs, strict=False)]


def over_sessions(means: Sequence[float], within: float, prior: float = PRIOR) -> PairedComparison:
    """The mean of what sessions found, of which each has the variance ``within``. ``prior``: the
    standard deviation between sessions, before any is known."""
    count, mean = len(means), fmean(means)
    variance = WEIGHT * (prior**2 + within) + sum((m - mean) ** 2 for m in means)
    return PairedComparison(mean, math.sqrt(variance / (WEIGHT + count - 1) / count))


def middle(values: Sequence[float]) -> tuple[float, float]:
    """The median, and its standard error for normal values with their ``spread_of``."""
    return median(values), 1.2533 * spread_of(values) / math.sqrt(len(values))


def spread_of(values: Sequence[float]) -> float:
    """The standard deviation that the median absolute deviation of normal values tells."""
    centre = median(values)
    return 1.4826 * median(abs(v - centre) for v in values)


FINALISTS = 20
"""The fastest candidates, besides the incumbent: first readings differ from the truth by more than
the best candidates from each other ..."""
NEAR = 1.4
"""... up to so many times the least of them ..."""
FEWEST = 6
"""... but no fewer than this, however far behind, nor more where calls take long."""
ROUNDS = 15
BUDGET = 1.5
"""Seconds of a session, in which everybody runs three times at least."""
SAMPLE = 2e-3
"""Least duration of a sample in seconds."""
LONG = 0.02
"""Seconds of a call that need not be repeated: what fills caches takes no part to speak of."""
_LEAST = 3
_FASTER = 0.97
"""What a call takes of the fastest one before, at most, while caches are being filled ..."""
_IN_VAIN = 2
"""... so many calls in a row that do not are enough ..."""
_MOST_WARM = 12
"""... and so many calls at most."""


@dataclass(frozen=True, slots=True)
class RaceRules:
    finalists: int = FINALISTS
    near: float = NEAR
    least: int = 3
    """Sessions, each in a process of its own, unless no challenger is left before ..."""
    most: int = 12
    """... and so many at most ..."""
    seconds: float = 15.0
    """... of which none begins after so long."""
    rounds: int = ROUNDS
    budget: float = BUDGET
    clearly: float = CLEARLY

    def room(self, seconds: float, placements: int) -> int:
        """How many challengers a session has time for, where a call takes so long."""
        round_ = placements * max(SAMPLE, seconds)
        return max(
            min(self.finalists, FEWEST), min(self.finalists, int(self.budget / round_ / _LEAST))
        )


USUAL = RaceRules()

_LONGEST = 4.0
"""Times as long as ``SAMPLE`` that the samples of slow kernels may take."""


def race(
    runs: Sequence[Callable[[], object]],
    reset: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    timer: Timer | None = None,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
) -> list[tuple[float, ...]]:
    """Seconds per call of each, one sample per round, in a new order each round, of which there
    are up to ``rounds``: fewer where these would take more than ``budget`` seconds. ``timer`` times
    samples, if not ``clock``."""
    seconds = timer or by_clock(clock)
    fastest, long = [], []
    for run in runs:
        if reset is not None:
            reset()
        first = seconds(run, 1)
        long.append(first >= LONG)
        fastest.append(first if long[-1] else min(seconds(run, 1) for _ in range(3)))
    # As many calls of each, but for what takes far longer: the more there are in a sample, the more
    # of the arrays its calls find in the caches, and the first run's estimate is too long. On Zen 4
    # a kernel of 24 MB took 1.05 times as long as itself by one call instead of two or three.
    most = SAMPLE / max(min(fastest), 1e-9)
    calls = [max(1, round(min(most, _LONGEST * SAMPLE / max(own, 1e-9)))) for own in fastest]
    times: list[list[float]] = [[] for _ in runs]
    rng = random.Random(len(runs))
    began = clock()
    for done in range(rounds):
        if done >= _LEAST and clock() - began > budget:
            break
        for k in rng.sample(range(len(runs)), len(runs)):
            if reset is not None:
                reset()
            if not long[k]:
                _warm(partial(seconds, runs[k], 1))
            times[k].append(seconds(runs[k], calls[k]))
    return [tuple(t) for t in times]


def _warm(call: Callable[[], float]) -> None:
    """Call a kernel until it takes no less time, as where a program calls it again and again: the
    one before has filled the caches, and where it stored past them, it can take seven calls before
    the last one's lines stay where this one finds them. ``call`` gives the seconds of a call."""
    least, in_vain = math.inf, 0
    for _ in range(_MOST_WARM):
        taken = call()
        in_vain = 0 if taken < _FASTER * least else in_vain + 1
        least = min(least, taken)
        if in_vain == _IN_VAIN:
            break


def entering(
    incumbent: str | None, ranked: Iterable[tuple[str, Hashable]], finalists: int
) -> list[str]:
    """Who is timed: the incumbent and the first of ``ranked``, names with what tells kernels
    apart. Several options may make one kernel, which is timed once; None is like nothing else."""
    kernels = dict(ranked)
    names = [name for name in kernels if name != incumbent]
    found, seen = [], set()
    for name in names if incumbent is None else [incumbent, *names]:
        kernel = kernels.get(name)
        if kernel is None or kernel not in seen:
            seen.add(kernel)
            found.append(name)
    return found[: finalists + (incumbent is not None)]
