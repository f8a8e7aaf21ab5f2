"""The finals of a search: the fastest candidates and the one that it began with, timed in turns.

During the search candidates are timed one after the other, while the machine may change, and the
fastest of many is partly the luckiest. In the finals all see the same machine, on all placements
of the arrays. The incumbent, which the search began with, keeps its place unless another one is
clearly faster, and on no placement slower.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tcl.tuner.measure.harness import Timer, by_clock
from tcl.tuner.measure.timing import Placed, together

FINALISTS = 6
"""The fastest candidates, besides the incumbent."""
HEATS = 3
"""A candidate that was left out, but was once faster than the winner of a heat, gets another."""
ROUNDS = 15
BUDGET = 4.0
"""Seconds of a heat, in which everybody runs three times at least."""
SAMPLE = 2e-3
"""Least duration of a sample in seconds."""
LONG = 0.02
"""Seconds of a call that need not be repeated: what fills caches takes no part to speak of."""
_LEAST = 3
CLEARLY = 0.99
"""What the challenger's time has to be of the incumbent's."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Of finals."""

    finalists: int = FINALISTS
    heats: int = HEATS
    rounds: int = ROUNDS
    budget: float = BUDGET
    clearly: float = CLEARLY


USUAL = Rules()


_CHANCE = 0.05
"""That a median lies outside of its interval."""


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
    calls, long = [], []
    for run in runs:
        if reset is not None:
            reset()
        first = seconds(run, 1)
        long.append(first >= LONG)
        # By the fastest of three calls: with one that something interrupted, samples would be
        # shorter than those of others, and themselves hardly ever interrupted.
        fastest = first if long[-1] else min(seconds(run, 1) for _ in range(3))
        calls.append(max(1, round(SAMPLE / max(fastest, 1e-9))))
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
                runs[k]()  # the one before has filled the caches
            times[k].append(seconds(runs[k], calls[k]))
    return [tuple(t) for t in times]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate in the finals."""

    name: str
    """Its options as text."""
    placed: Placed
    """Its times."""

    @property
    def times(self) -> tuple[float, ...]:
        """Of each round, of all placements together."""
        return together(self.placed)


def entering(
    incumbent: str | None, ranked: Iterable[tuple[str, Hashable]], finalists: int = FINALISTS
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


def placed(
    entrants: Sequence[Entrant], incumbent: str | None, clearly: float = CLEARLY
) -> list[Entrant]:
    """The entrants in the order of the verdict: the winner, then the others by their medians."""
    first = winner(entrants, incumbent, clearly)
    others = (e for e in entrants if e is not first)
    return [first, *sorted(others, key=lambda e: median(e.times))]


def winner(entrants: Sequence[Entrant], incumbent: str | None, clearly: float = CLEARLY) -> Entrant:
    """The one with the least median that may take the incumbent's place, else the incumbent.

    It may if it is clearly faster, which it is if its median is below ``clearly`` times the
    incumbent's and it was faster in two rounds of three, and on no placement slower."""
    ordered = sorted(entrants, key=lambda e: median(e.times))
    own = next((e for e in entrants if e.name == incumbent), None)
    for best in ordered:
        if own is None or best is own:
            return best
        rounds = list(zip(best.times, own.times, strict=False))
        won = sum(b < o for b, o in rounds)
        ahead = median(best.times) < clearly * median(own.times) and 3 * won >= 2 * len(rounds)
        if ahead and not slower(best, own):
            return best
    raise ValueError("nobody takes part")


def slower(one: Entrant, other: Entrant) -> dict[str, float]:
    """The placements on which one is slower than another by more than the interval of the median
    of their rounds' ratios: name to that median."""
    found = {}
    for (name, ours), (_, theirs) in zip(one.placed, other.placed, strict=True):
        ratios = [a / b for a, b in zip(ours, theirs, strict=False)]
        if interval(ratios)[0] > 1:
            found[name] = median(ratios)
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median lies of what these are samples of, in 19 cases of 20: between two of them,
    whose ranks follow from the binomial distribution. The whole range of less than six."""
    ordered, count = sorted(values), len(values)
    rank, outside = 0, 2 * 0.5**count
    while outside + 2 * math.comb(count, rank + 1) * 0.5**count <= _CHANCE:
        rank += 1
        outside += 2 * math.comb(count, rank) * 0.5**count
    return ordered[rank], ordered[count - 1 - rank]
