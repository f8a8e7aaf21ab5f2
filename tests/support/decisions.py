"""Searches whose kernels have known times, read through noise: what their finals decide."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, TypeAlias

from tcl.tuner.measure.paired import ROUNDS
from tcl.tuner.measure.placement import ALIGNED, NUMPY
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import Candidate
from tcl.tuner.run.finals import Finals
from tcl.tuner.run.ledger import Ledger

_SECONDS = 1e-3
PLACES = (ALIGNED.name, NUMPY.name)
RECORDED = Path(__file__).with_name("recorded_noise.json.gz")
"""Readings of real kernels over their own medians, as sessions of kernels of placements of rounds:
of four rows of the suite in eight processes, quiet and beside two busy processes a core."""


@dataclass(frozen=True)
class Kernel:
    """What a call takes on each placement, in the mode of most processes, and in the other one."""

    seconds: tuple[float, ...]
    rare: float = 0.0
    """The share of processes in which it is slow ..."""
    slow: float = 1.0
    """... by this factor."""

    @property
    def true(self) -> float:
        """The geometric mean over placements and processes."""
        return geometric_mean(self.seconds) * math.pow(self.slow, self.rare)

    def mode(self, rng: random.Random) -> float:
        """What a process makes of it."""
        return self.slow if rng.random() < self.rare else 1.0


Noise: TypeAlias = Callable[[random.Random, int, int], Sequence[Sequence[Sequence[float]]]]
"""A process: factors for so many kernels, on each placement, in so many rounds."""


def rough(rng: random.Random, kernels: int, rounds: int) -> list[list[list[float]]]:
    """Spikes of 1.6 times in a fifth of the readings, a drift of 30 %, every fifth process 10 %
    slow throughout."""
    process = 1.1 if rng.random() < 0.2 else 1.0
    drift, back = rng.choice((1.0, 1.3, 1 / 1.3)), rng.random() < 0.5
    found: list[list[list[float]]] = [[[] for _ in PLACES] for _ in range(kernels)]
    turns = [(kernel, place) for kernel in range(kernels) for place in range(len(PLACES))]
    for number in range(rounds):
        for turn, (kernel, place) in enumerate(rng.sample(turns, len(turns))):
            at = (number + turn / len(turns)) / rounds
            pace = process * drift ** (math.sin(2 * math.pi * at) if back else at)
            spike = 1.6 if rng.random() < 0.2 else 1.0
            found[kernel][place].append(pace * spike * math.exp(rng.gauss(0, 0.01)))
    return found


@cache
def _recorded(load: str) -> Any:
    return json.loads(gzip.decompress(RECORDED.read_bytes()))[load]


def recorded(load: str) -> Noise:
    """Noise that was recorded on a machine which was ``quiet`` or ``loaded``."""

    def noise(rng: random.Random, kernels: int, rounds: int) -> list[list[list[float]]]:
        session = rng.choice(_recorded(load))
        order = rng.sample(range(len(session)), len(session))
        picked = [session[order[k % len(order)]] for k in range(kernels)]
        # More kernels than were recorded have their noise from another round on.
        shifts = [rounds // 2 * (k // len(order)) for k in range(kernels)]
        return [
            [(place[shift:] + place[:shift])[:rounds] for place in kernel]
            for shift, kernel in zip(shifts, picked, strict=True)
        ]

    return noise


class _Names:
    """Options that are numbers of kernels."""

    def to_json(self, options: int) -> str:
        return str(options)


@dataclass(frozen=True)
class Decided:
    """What finals have decided, in true times."""

    winner: float
    """The winner's over the incumbent's."""
    best: float
    """The winner's over that of the best kernel which is on no placement slower than the
    incumbent."""
    sessions: int
    kept: bool
    """Whether the incumbent won."""


def decided(seed: int, noise: Noise, candidates: int = 40) -> Decided:
    """What finals make of a search for kernels with these times, the incumbent first."""
    rng = random.Random(seed)
    least = rng.choice((0.7, 0.85, 0.95, 1.0, 1.1))
    kernels = [_kernel(rng, _SECONDS)]
    kernels += [
        _kernel(rng, _SECONDS * least * math.exp(abs(rng.gauss(0, 0.25))))
        for _ in range(candidates)
    ]
    ledger: Any = Ledger("it", _Names(), None, None, "", lambda event: None)  # type: ignore[arg-type]
    for number, kernel in enumerate(kernels):
        # Candidates come up one after the other, while the machine may be slower for a time.
        found = _session([kernel], noise, rng, 5, rng.choice((1.0, 1.0, 1.1)))
        outcome = Outcome(Verdict.CORRECT, (1.0,), placed=found[0])
        ledger.add(Candidate(number, None, min(number, 1), outcome), 1, 1, known=True)
    sessions: list[int] = []

    def race(options: Sequence[int]) -> list[Placed]:
        sessions.append(len(options))
        return _session([kernels[k] for k in options], noise, rng, ROUNDS)

    Finals(ledger, _Names(), lambda event: None, Doubts()).hold_race(race)  # type: ignore[arg-type]
    own, winner = kernels[0], kernels[ledger.best.options]
    fair = [
        k.true
        for k in kernels
        if all(a <= 1.01 * b for a, b in zip(k.seconds, own.seconds, strict=True))
    ]
    return Decided(winner.true / own.true, winner.true / min(fair), len(sessions), winner is own)


def _kernel(rng: random.Random, seconds: float) -> Kernel:
    placed = tuple(seconds * math.exp(rng.gauss(0, 0.05)) for _ in PLACES)
    if rng.random() < 0.25:
        return Kernel(placed, rng.uniform(0.1, 0.5), rng.uniform(1.05, 1.2))
    return Kernel(placed)


def _session(
    kernels: Sequence[Kernel], noise: Noise, rng: random.Random, rounds: int, pace: float = 1.0
) -> list[Placed]:
    modes = [k.mode(rng) * pace for k in kernels]
    return [
        tuple(
            (name, tuple(seconds * mode * factor for factor in factors))
            for name, seconds, factors in zip(PLACES, kernel.seconds, places, strict=True)
        )
        for kernel, mode, places in zip(
            kernels, modes, noise(rng, len(kernels), rounds), strict=True
        )
    ]


def summary(found: Sequence[Decided]) -> dict[str, float]:
    """What a number of decisions come to."""
    return {
        "decisions": len(found),
        "within 3 % of the best": sum(d.best <= 1.03 for d in found) / len(found),
        "slower than the default by more than 1 %": sum(d.winner > 1.01 for d in found),
        "default kept": sum(d.kept for d in found) / len(found),
        "sessions, mean": sum(d.sessions for d in found) / len(found),
        "winner over default, median": median(d.winner for d in found),
    }
