"""Genetic search with a screen, the default.

Each generation breeds far more children than it may measure. A model that is trained on all
results so far, and on nothing else, ranks them; those that promise most are measured: expected to
be fast, or too different from anything known to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from tcl.tuner.space.search_space import Config, Space
from tcl.tuner.strategies.breeding import ENOUGH_TO_BREED, Breeder
from tcl.tuner.strategies.features import Features, Floats
from tcl.tuner.strategies.gaussian import GaussianProcess
from tcl.tuner.strategies.history import logarithms
from tcl.tuner.strategies.skeleton import Evolution
from tcl.tuner.strategies.strategy import SearchSettings, State

_CHILDREN = 150
"""Tries to breed a child for the screen."""
_STRANGERS = 20
"""Random configurations that join them."""
_BOLDNESS = 1.5
"""How many standard deviations better than expected a candidate is assumed to be."""
_LEARNT = 256
"""Results that the model is given at most."""
_FITTED = 100
"""Results that its lengths are fitted to at most."""


class Screened(Evolution):
    """Genetic proposals, ranked by a Gaussian process."""

    def __init__(
        self, space: Space, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._features = Features(space)
        self._model = GaussianProcess(self._features)

    def _children(self) -> list[Config]:
        memory, settings = self._memory, self._settings
        ranked = memory.ranked()
        breeder = Breeder(memory, settings, ranked[: settings.population])
        if len(ranked) < ENOUGH_TO_BREED:
            bred = (breeder.child(memory.seen) for _ in range(settings.children))
            return [c for c in bred if c is not None and memory.add(c)]
        return self._screen(self._pool(breeder), settings.children)

    def state(self) -> State:
        """See ``Strategy``."""
        return {**super().state(), "model": self._model.state()}

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        super().restore(state)
        self._model.restore(state["model"])

    def _pool(self, breeder: Breeder) -> list[Config]:
        """Children and strangers to choose from, in an order that is always the same."""
        memory, pool = self._memory, dict[Config, None]()
        for _ in range(_CHILDREN):
            child = breeder.child(memory.seen, tries=1)
            if child is not None:
                pool[child] = None
        for _ in range(_STRANGERS):
            stranger = memory.space.sample(memory.rng)
            if stranger is not None and stranger not in memory.seen:
                pool[stranger] = None
        return list(pool)

    def _screen(self, pool: list[Config], count: int) -> list[Config]:
        """The most promising of the pool, given what else is being measured."""
        if not pool or not self._features.count:
            return []
        results = self._memory.measured()
        rows = self._features.rows([c for c, _ in results])
        # Logarithms of times, brought to mean 0 and spread 1.
        logs = np.array(logarithms(results))
        values = (logs - logs.mean()) / (float(logs.std()) or 1.0)
        fitted = _selected(values, _FITTED)
        self._model.fit(rows[fitted], values[fitted])
        kept = _selected(values, _LEARNT)
        pending = self._memory.pending
        places = self._features.rows([*pool, *pending])
        posterior = self._model.posterior(rows[kept], values[kept], places)
        for place in range(len(pool), len(places)):
            posterior.chosen(place)
        found: list[Config] = []
        left = np.zeros(len(places))
        left[len(pool) :] = np.inf
        for _ in range(min(count, len(pool))):
            place = int(np.argmin(posterior.mean - _BOLDNESS * posterior.spread + left))
            left[place] = np.inf
            posterior.chosen(place)
            self._memory.add(pool[place])
            found.append(pool[place])
        return found


def _selected(values: Floats, count: int) -> list[int]:
    """Which results to learn from: the best, and of the others as many, evenly spread in time."""
    if len(values) <= count:
        return list(range(len(values)))
    order = np.argsort(values, kind="stable")
    best, others = order[: count // 2], np.sort(order[count // 2 :])
    few = count - len(best)
    spread = others[(np.arange(few) * len(others)) // few]
    return sorted(int(i) for i in np.concatenate([best, spread]))
