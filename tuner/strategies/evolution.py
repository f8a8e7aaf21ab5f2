"""A search by generations that breeds: how it begins, and what is near the best."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice

import numpy as np

from tcl.tuner.space.around import Change, singles
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.gaussian import Features
from tcl.tuner.strategies.strategy import Strategy, logarithms

ENOUGH_TO_BREED = 3
"""With fewer parents there is nothing to mix."""
_TRIES = 50
_PRESSURE = 6.0
_NEAR = 0.4
"""Share of the children that differ from a parent in one knob only."""


class Breeder:
    """Makes children of parents; better parents have more of them. While there are too few
    parents to mix, children are scattered around the best, and elsewhere."""

    def __init__(
        self,
        search: Strategy,
        parents: Sequence[tuple[float, Config]],
        pressure: float = _PRESSURE,
    ) -> None:
        """``search``: the strategy that will propose the children; its space, settings and random
        numbers are used. ``parents``: seconds and configurations, fastest first. ``pressure``: how
        much selection by rank prefers better parents; 1 prefers none."""
        self._seen, self._space = search.seen, search.space
        self._rng, self._settings = search.rng, search.settings
        self._knobs = search.space.knobs
        self._pressure = pressure
        self._parents = [c for _, c in parents]
        self._wheel = list(accumulate(1 / max(t, 1e-12) for t, _ in parents))
        """Where each parent's part of a roulette wheel ends: in proportion to its speed."""
        self._free = [i for i, k in enumerate(self._knobs) if k.cardinality > 1]

    def child(self) -> Config | None:
        """A valid configuration that was never proposed; None if many tries made none."""
        for _ in range(_TRIES):
            child = self.untested()
            if child is None:
                return None
            if child not in self._seen and self._space.valid(child):
                return child
        return None

    def untested(self) -> Config | None:
        """A configuration that is rarely known and often invalid: whether it is valid takes far
        longer to find out than to make it. None if there is nothing to make it of."""
        child = self._bred() if len(self._parents) >= ENOUGH_TO_BREED else self._explored()
        if child is not None and child in self._seen:  # step away from it rather than give up
            knobs = 1 if self._rng.random() < 0.7 else 2
            return self._changed(child, min(len(self._free), knobs))
        return child

    def _bred(self) -> Config:
        """A parent with one knob changed; or a parent, or several mixed, and then mutated."""
        rng = self._rng
        if self._free and rng.random() < _NEAR:
            return self._changed(self._select(), 1)
        if rng.random() >= self._settings.crossover:
            child = self._select()
        else:
            mixed = [self._select() for _ in range(self._settings.parents)]
            child = tuple(rng.choice(genes) for genes in zip(*mixed, strict=True))
        return tuple(
            knob.mutate(value, rng) if rng.random() < self._settings.mutation else value
            for knob, value in zip(self._knobs, child, strict=True)
        )

    def _explored(self) -> Config | None:
        """Half of the time near the best, if there is one: a third of the knobs drawn anew."""
        if not self._parents or self._rng.random() >= 0.5:
            return self._space.sample(self._rng)
        changed = list(self._parents[0])
        for i in self._rng.sample(self._free, max(1, len(self._free) // 3) if self._free else 0):
            changed[i] = self._knobs[i].sample(self._rng)
        return tuple(changed)

    def _select(self) -> Config:
        last = len(self._parents) - 1
        if self._settings.selection == "roulette":
            position = bisect(self._wheel, self._rng.random() * self._wheel[-1])
        else:  # the beta distribution with parameters 1 and the pressure, by its inverse
            share = 1 - (1 - self._rng.random()) ** (1 / self._pressure)
            position = int(share * len(self._parents))
        return self._parents[min(position, last)]

    def _changed(self, config: Config, count: int) -> Config:
        changed = list(config)
        for i in self._rng.sample(self._free, count):
            changed[i] = self._knobs[i].mutate(changed[i], self._rng)
        return tuple(changed)


_DRAWN = 4
"""Of so many random configurations the one is taken that is furthest from all others. With many
more, nothing but the corners of the space would be tried."""
_PART = 2
"""What is left of the first generation is asked for in parts of so many, each of which learns from
those before. Of one at a time little more would come, and executors would wait for each other."""


class Evolution(Strategy):
    """A search by generations: an opening, then children of what was measured."""

    _blind = 1.0
    """Share of what is spread in the first generation that is chosen before anything is known."""

    _begun = False
    _rooted = False
    """Whether something was measured before the first generation, and works."""

    @cached_property
    def _features(self) -> Features:
        return Features(self.space)

    def ask(self) -> tuple[Config, ...]:
        if not self._begun:
            self._begun, self._rooted = True, self._best is not None
            found = self._opening()
            self.rest = max(0, self.settings.population - len(found))
        else:
            count = min(_PART, self.rest) or self.settings.children
            found = self.fill(self._children(count), count)
            self.rest = max(0, self.rest - count)
        return tuple(found)

    def _opening(self) -> list[Config]:
        """The seeds; of what they lack of ``population`` half is next to the best of what the
        search began with, if it began with anything, and comes first. What is left, or ``_blind``
        of it, is spread over the space: of most defs it takes much longer than the default, and is
        timed later."""
        population = self.settings.population
        found = self.new_seeds()
        found += self._next_to_best(max(0, population - len(found)) // 2)
        return self._spread(found, len(found) + math.ceil(self._blind * (population - len(found))))

    @property
    def _best(self) -> Config | None:
        """The fastest known, if anything works."""
        ranked = self.ranked()
        return ranked[0][1] if ranked else None

    def _next_to_best(self, count: int) -> list[Config]:
        """Up to ``count`` that differ from the fastest known in one knob, by now in memory: those
        first of whose kind most was gained elsewhere."""
        best = self._best
        if best is None or not count:
            return []
        return [c for c in islice(self._beside(best), count) if self.add(c)]

    def _beside(self, best: Config) -> Iterator[Config]:
        """New configurations that differ from it in one knob, those first of whose kind most was
        gained elsewhere."""

        def unseen(changes: tuple[Change, ...]) -> Config | None:
            config = list(best)
            for place, value in changes:
                config[place] = value
            found = tuple(config)
            return found if found not in self.seen and self.space.valid(found) else None

        return singles(self.space.knobs, best, unseen)

    def _spread(self, found: list[Config], count: int) -> list[Config]:
        """``found``, brought to ``count`` by configurations far from all others, of powers of two
        where these are valid: with other numbers far fewer are fast."""
        features = self._features
        while len(found) < count:
            drawn = [self.space.sample(self.rng) for _ in range(_DRAWN)]
            new = [c for c in map(self._rounded, filter(None, drawn)) if c not in self.seen]
            if not new:
                return self.fill(found, count)
            others = features.rows(list(self.seen))
            far = features.distances(features.rows(new), others).min(axis=1, initial=np.inf)
            config = new[int(np.argmax(far))]
            self.add(config)
            found.append(config)
        return found

    def _rounded(self, config: Config) -> Config:
        pairs = zip(self.space.knobs, config, strict=True)
        rounded = tuple(knob.nearest_power(value) for knob, value in pairs)
        return rounded if rounded not in self.seen and self.space.valid(rounded) else config

    @abstractmethod
    def _children(self, count: int) -> list[Config]:
        """The next ``count``, by now in memory; what they lack is drawn at random."""


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
