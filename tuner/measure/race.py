"""The finals of a search: the fastest candidates and the one that it began with, timed in turns.

During the search candidates are timed one after the other, while the machine may change, and the
fastest of many is partly the luckiest. In the finals all see the same machine, in several
processes, on all placements of the arrays; ``tcl.tuner.measure.paired`` says who wins.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from tcl.tuner.measure.harness import Timer, by_clock
from tcl.tuner.measure.paired import CLEARLY

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
    """Of finals."""

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
