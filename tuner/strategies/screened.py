"""Genetic search with a screen, the default.

Each generation breeds far more children than it may measure. A model that is trained on all
results so far ranks them; those that promise most are measured: expected to be fast, or too
different from anything known to say. It learns from nothing else, unless there is a model of other
measurements to begin with: then that one chooses the first generation, and what is learned is how
far off it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Protocol

import numpy as np

from tcl.tuner.space.search_space import Config, ConfigSpace
from tcl.tuner.strategies.evolution import ENOUGH_TO_BREED, Breeder, Evolution
from tcl.tuner.strategies.gaussian import Floats, GaussianProcess, Posterior
from tcl.tuner.strategies.strategy import SearchSettings, logarithms

_TRUSTED = 4
"""Results that outweigh a prior's word for what is fast."""
_AGREES = 0.5
"""A prior that agrees less with what was measured is not believed at all. Else it would lead to the
same places again and again, as far as results of other places are missing that speak against it."""
_WORTH = 60
"""Results that are worth as much as a prior. It knows something of the space, and nothing of the
device: where it is wrong, what it adds is in the way of those who know better."""


class Expectation(Protocol):
    """What a model expects of configurations, one after the other (N each)."""

    @property
    def logs(self) -> Floats:
        """Natural logarithms of their times, up to a number that they have in common."""

    @property
    def spread(self) -> Floats:
        """Standard deviations of ``logs``."""


class Prior(Protocol):
    """A model that was made of other measurements, as of another device or other sizes."""

    def predict(self, configs: Sequence[Config]) -> Expectation:
        """Equal configurations are expected to take equal times, whatever they are asked with, but
        for what all have in common."""


class NamedPrior(Prior, Protocol):
    """One that a search which is resumed can be found to have begun with."""

    @property
    def identity(self) -> str:
        """What stands for its contents: another model has another one."""

    @property
    def title(self) -> str:
        """How it is called."""


def agreement(expected: Floats, logs: Floats) -> float:
    """From 0 to 1: how far measured logarithms of times have the order that a prior expects, by
    Spearman's coefficient of correlation with a few results more that agree."""
    x, y = _ranks(expected), _ranks(logs)
    scale = math.sqrt(np.einsum("n,n->", x, x) * np.einsum("n,n->", y, y))
    # Of results without an order the first one tells nothing, and the others speak against it.
    agreeing = len(logs) * float(np.einsum("n,n->", x, y)) / scale if scale else 1.0
    return max(0.0, (_TRUSTED + agreeing) / (_TRUSTED + len(logs)))


def _ranks(values: Floats) -> Floats:
    """Places in their order, those of equals as one, from the middle."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (counts.cumsum() - (counts + len(values)) / 2)[places]
    return ranks


def believed(expected: Floats, logs: Floats) -> float:
    """By how much of a prior's expectations to go: 1 before anything is measured, less the less
    they agree with what was, and the more of that there is."""
    agreeing = agreement(expected, logs)
    return agreeing * _WORTH / (_WORTH + len(logs)) if agreeing >= _AGREES else 0.0


_CHILDREN = 150
"""Tries to breed a child for the screen."""
_STRANGERS = 20
"""Random configurations that join them."""
_BOLDNESS = 1.5
"""How many standard deviations better than expected a candidate is assumed to be ..."""
_LED = 1.0
"""... and how many as far as a prior is believed. What this is not sure of is assumed to be as much
slower, as where it chooses without a search."""
_LEARNT = 256
"""Results that the model is given at most."""
_FITTED = 100
"""Results that its lengths are fitted to at most."""
_DRAWN = 1000
"""Random configurations that a prior chooses of, before anything is known."""
_AROUND = 400
"""Afterwards so many around the best, besides all that differ from it in one knob ..."""
_CHANGED = (1, 2, 2, 3, 4)
"""... that differ from it in so many knobs."""
_HEDGED = 30
"""Results up to which part of what a search with a prior tries is chosen without it: a prior may be
wrong."""
_CONTRAST = 0.2
"""That part, of the first generation; of others it is the larger the less the prior agrees with
what was measured."""
_FAR = 1
"""Of a generation so many are far from all others, whatever is expected: the first generation is
soon where something is fast, and may stay there."""
_KNOWN = 0.5
"""Share of the variance that a prior is taken to know before anything is measured."""


class Screened(Evolution):
    """Genetic proposals, ranked by a Gaussian process, from within the first generation on."""

    _blind = 0.4

    def __init__(
        self,
        space: ConfigSpace,
        rng: Random,
        settings: SearchSettings,
        seeds: Sequence[Config],
        prior: Prior | None = None,
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._prior = prior
        self._model = GaussianProcess(self._features)
        self._strangers: list[Config] = []

    def _opening(self) -> list[Config]:
        """With a prior: the seeds and, half of ``population`` with them or a quarter without,
        mostly those that it prefers. So what it knows is put to the test early."""
        if self._prior is None or not self._features.count:
            return super()._opening()
        found = self.new_seeds()
        pool = self._drawn()
        population = self.settings.population
        count = max(1, population // 4, population // 2 - len(found))
        if pool:
            few = round(_CONTRAST * count)
            expected = self._prior.predict(pool)
            scale = float(expected.logs.std()) or 1.0
            mean = (expected.logs - expected.logs.mean()) * (math.sqrt(_KNOWN) / scale)
            posterior = self._model.unmeasured(mean, 1 - _KNOWN, self._features.rows(pool))
            mean += _LED * expected.spread / scale
            found += self._most_promising(pool, posterior, mean, _LED, count - few)
            found += self._explored(few)
        return self.fill(found, 1)

    def _drawn(self) -> list[Config]:
        """What a prior chooses of: configurations around the best that is known, all that differ in
        one knob among them; from anywhere before anything is known."""
        best = self._best
        if best is None:
            sampled = (self.space.sample(self.rng) for _ in range(_DRAWN))
            drawn = [config for config in sampled if config is not None]
        else:
            drawn = [*self._beside(best)]
            open_ = [k for k, knob in enumerate(self.space.knobs) if knob.cardinality > 1]
            for _ in range(_AROUND):
                changed = list(best)
                for k in self.rng.sample(open_, min(len(open_), self.rng.choice(_CHANGED))):
                    changed[k] = self.space.knobs[k].mutate(changed[k], self.rng)
                if self.space.valid(config := tuple(changed)):
                    drawn.append(config)
        return [c for c in dict.fromkeys(drawn) if c not in self.seen]

    def _children(self, count: int) -> list[Config]:
        ranked = self.ranked()
        breeder = Breeder(self, ranked[: self.settings.population])
        if len(ranked) < ENOUGH_TO_BREED:
            bred = (breeder.child() for _ in range(count))
            return [c for c in bred if c is not None and self.add(c)]
        few = 0
        if self._prior is not None and len(self.results) < _HEDGED:
            results = self.measured()
            expected = self._prior.predict([c for c, _ in results]).logs
            few = round((1 - agreement(expected, np.array(logarithms(results)))) * count)
        far = 0 if self.rest else min(_FAR, count - few)
        found = self._screen(self._pool(breeder), count - few - far) + self._explored(few)
        return self._spread(found, len(found) + far)

    def _explored(self, count: int) -> list[Config]:
        """What is tried whatever models expect: next to the best, where the search began with
        something, and far from all others."""
        found = self._next_to_best(count) if self._rooted else []
        return self._spread(found, count)

    def _pool(self, breeder: Breeder) -> list[Config]:
        """Children and strangers to choose from, in an order that is always the same. Whether a
        child is valid is asked of those alone that would be chosen."""
        bred = (breeder.untested() for _ in range(_CHILDREN))
        pool = dict.fromkeys(c for c in bred if c is not None and c not in self.seen)
        # To draw a valid one takes long. Those of one part of a generation serve the next.
        kept = self._strangers if self.rest else []
        drawn = (self.space.sample(self.rng) for _ in range(_STRANGERS - len(kept)))
        found = dict.fromkeys((*kept, *(c for c in drawn if c is not None)))
        self._strangers = [c for c in found if c not in self.seen]
        pool.update(dict.fromkeys(self._strangers))
        if self._prior is not None:
            pool.update(dict.fromkeys(self._drawn()))
        return list(pool)

    def _screen(self, pool: list[Config], count: int) -> list[Config]:
        """The most promising of the pool, given what else is being measured."""
        if not pool or not self._features.count:
            return []
        results, pending = self.measured(), self.pending
        at = [*pool, *pending]
        rows, places = (self._features.rows(cs) for cs in ([c for c, _ in results], at))
        times = logs = np.array(logarithms(results))
        known, bold = np.zeros(len(at)), _BOLDNESS
        if self._prior is not None:
            expected = self._prior.predict([*(c for c, _ in results), *at])
            part = believed(expected.logs[: len(results)], logs)
            logs = times - part * expected.logs[: len(results)]
            known = part * (expected.logs + _LED * expected.spread)[len(results) :]
            bold += part * (_LED - _BOLDNESS)
        # Logarithms of times, or how far off they are, brought to mean 0 and spread 1.
        scale = float(logs.std()) or 1.0
        values = (logs - logs.mean()) / scale
        fitted = _selected(times, _FITTED)
        self._model.fit(rows[fitted], values[fitted])
        kept = _selected(times, _LEARNT)
        posterior = self._model.posterior(rows[kept], values[kept], places)
        for place in range(len(pool), len(places)):
            posterior.chosen(place)
        return self._most_promising(pool, posterior, posterior.mean + known / scale, bold, count)

    def _most_promising(
        self, pool: list[Config], posterior: Posterior, mean: Floats, bold: float, count: int
    ) -> list[Config]:
        """The most promising of the pool that are valid, from now on in memory; others that
        ``posterior`` knows come after it. ``bold``: how many standard deviations better than
        ``mean`` they may be."""
        found: list[Config] = []
        left = np.zeros(len(mean))
        left[len(pool) :] = np.inf
        for _ in pool:
            if len(found) == count:
                break
            place = int(np.argmin(mean - bold * posterior.spread + left))
            left[place] = np.inf
            if self.space.valid(pool[place]):
                posterior.chosen(place)
                self.add(pool[place])
                found.append(pool[place])
        return found


def _selected(times: Floats, count: int) -> list[int]:
    """Which results to learn from: the best, and of the others as many, evenly spread in time."""
    if len(times) <= count:
        return list(range(len(times)))
    order = np.argsort(times, kind="stable")
    best, others = order[: count // 2], np.sort(order[count // 2 :])
    few = count - len(best)
    spread = others[(np.arange(few) * len(others)) // few]
    return sorted(int(i) for i in np.concatenate([best, spread]))
