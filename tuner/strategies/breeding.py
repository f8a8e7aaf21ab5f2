"""How configurations are made of others: selection, crossover, mutation."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.strategy import Strategy

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

    def child(self, tries: int = _TRIES) -> Config | None:
        """A valid configuration that was never proposed; None if so many tries made none."""
        for _ in range(tries):
            child = self._bred() if len(self._parents) >= ENOUGH_TO_BREED else self._scattered()
            if child is None:
                return None
            if child in self._seen:  # converged: step away from it rather than give up
                knobs = 1 if self._rng.random() < 0.7 else 2
                child = self._changed(child, min(len(self._free), knobs))
            if child not in self._seen and self._space.valid(child):
                return child
        return None

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

    def _scattered(self) -> Config | None:
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
