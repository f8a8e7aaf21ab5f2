"""Genetic search: children of the best, of which those of better relatives are measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np

from tcl.tuner.space.search_space import Config, ConfigSpace
from tcl.tuner.strategies.evolution import ENOUGH_TO_BREED, Breeder, Evolution
from tcl.tuner.strategies.features import Features
from tcl.tuner.strategies.strategy import SearchSettings, logarithms

_LITTER = 2
"""Children that are bred for one that is measured."""
_RELATIVES = 3
"""Measured configurations that speak for a child: those nearest to it."""
_EAGER = 8.0
"""Pressure of the selection while the search gets on; it is half as large after one and a half
populations without a better result."""
_PATIENT = 2.0
"""And at least."""
_LIFETIME = 2.5
"""Parents are among so many populations of results, the latest: a search leaves what it cannot
improve."""


class Genetic(Evolution):
    """Parents by rank or roulette, uniform crossover of two or three, mutation.

    Most children are worse than their parents, and many are like something that is known to be
    bad. So for each that is measured two are bred, and the nearest results choose between them.
    """

    def __init__(
        self, space: ConfigSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._features = Features(space)

    def _children(self, count: int) -> list[Config]:
        measured = self.measured()
        latest = measured[-math.ceil(_LIFETIME * self.settings.population) :]
        working = sorted(((t, c) for c, t in latest if t is not None), key=lambda item: item[0])
        if len(working) < ENOUGH_TO_BREED:
            working = self.ranked()
        times = [math.inf if t is None else t for _, t in measured]
        since_best = len(times) - 1 - times.index(min(times)) if times else 0
        pressure = max(
            _PATIENT, _EAGER / (1 + max(0.0, since_best / self.settings.population - 0.5))
        )
        breeder = Breeder(self, working[: self.settings.population], pressure)
        rows = self._features.rows([c for c, _ in measured])
        values = np.array(logarithms(measured))
        children: list[Config] = []
        for _ in range(count):
            bred = [breeder.child() for _ in range(_LITTER)]
            litter = [c for c in bred if c is not None]
            if litter:
                # The child whose relatives were fastest; the first of equals.
                apart = self._features.distances(self._features.rows(litter), rows)
                near = np.argsort(apart, axis=1, kind="stable")[:, :_RELATIVES]
                child = litter[int(np.argmin(values[near].sum(axis=1)))]
                self.add(child)
                children.append(child)
        return children
