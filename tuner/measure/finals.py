"""The finals of a search: the fastest candidates and the one that it began with, timed in turns.

During the search candidates are timed one after the other, while the machine may change, and the
fastest of many is partly the luckiest. In the finals all see the same machine. The incumbent, which
the search began with, keeps its place unless another one is clearly faster.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tcl.tuner.measure.harness import Timer, by_clock

FINALISTS = 6
"""The fastest candidates, besides the incumbent."""
HEATS = 3
"""A candidate that was left out, but was once faster than the winner of a heat, gets another."""
ROUNDS = 15
BUDGET = 4.0
"""Seconds of a heat, in which everybody runs three times at least."""
SAMPLE = 2e-3
"""Least duration of a sample in seconds."""
_LEAST = 3
_CLEARLY = 0.99
"""What the challenger's time has to be of the incumbent's."""


def race(
    runs: Sequence[Callable[[], object]],
    reset: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    timer: Timer | None = None,
) -> list[tuple[float, ...]]:
    """Seconds per call of each, one sample per round, in a new order each round. ``timer`` times
    samples, if not ``clock``."""
    seconds = timer or by_clock(clock)
    calls = []
    for run in runs:
        if reset is not None:
            reset()
        run()
        # By the fastest of three calls: with one that something interrupted, samples would be
        # shorter than those of others, and themselves hardly ever interrupted.
        fastest = min(seconds(run, 1) for _ in range(3))
        calls.append(max(1, round(SAMPLE / max(fastest, 1e-9))))
    times: list[list[float]] = [[] for _ in runs]
    rng = random.Random(len(runs))
    began = clock()
    for done in range(ROUNDS):
        if done >= _LEAST and clock() - began > BUDGET:
            break
        for k in rng.sample(range(len(runs)), len(runs)):
            if reset is not None:
                reset()
            runs[k]()  # the one before has filled the caches
            times[k].append(seconds(runs[k], calls[k]))
    return [tuple(t) for t in times]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate in the finals."""

    name: str
    """Its options as text."""
    times: tuple[float, ...]


def entering(incumbent: str | None, ranked: Iterable[tuple[str, Hashable]]) -> list[str]:
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
    return found[: FINALISTS + (incumbent is not None)]


def placed(entrants: Sequence[Entrant], incumbent: str | None) -> list[Entrant]:
    """The entrants in the order of the verdict: the winner, then the others by their medians."""
    first = winner(entrants, incumbent)
    others = (e for e in entrants if e is not first)
    return [first, *sorted(others, key=lambda e: median(e.times))]


def winner(entrants: Sequence[Entrant], incumbent: str | None) -> Entrant:
    """The one with the least median; the incumbent unless that one is clearly faster, which it is
    if its median is lower and it was faster in two rounds of three."""
    best = min(entrants, key=lambda e: median(e.times))
    own = next((e for e in entrants if e.name == incumbent), None)
    if own is None or own is best:
        return best
    rounds = list(zip(best.times, own.times, strict=False))
    won = sum(b < o for b, o in rounds)
    clearly = median(best.times) < _CLEARLY * median(own.times) and 3 * won >= 2 * len(rounds)
    return best if clearly else own
