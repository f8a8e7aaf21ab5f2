"""Genetic search, after Tensor Comprehensions' tuner.

The elites are the best configurations found so far; each generation adds children of them and
of the generation before. A child mixes three parents knob by knob, better ones being likelier
parents, and mutates. Nothing is evaluated twice. While fewer than three configurations work,
there is nothing to breed from: the generation is drawn anew around the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tcl.tuner.space import Config, SearchSpace
from tcl.tuner.strategies.base import Memory, Result, SearchSettings, State

_TRIES = 50
_PRESSURE = 2.5
"""Of the selection by rank: above 1 prefers better parents, 1 would treat all alike."""
ENOUGH_TO_BREED = 3


class Genetic:
    """Elites, parents by rank, uniform crossover of three, mutation."""

    def __init__(
        self, space: SearchSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self._memory = Memory(space, rng)
        self._settings = settings
        self._seeds = tuple(seeds)
        self._begun = False
        self._free = [i for i, k in enumerate(space.knobs) if k.cardinality > 1]

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory, settings = self._memory, self._settings
        if not self._begun:
            self._begun = True
            found = [c for c in self._seeds if memory.space.valid(c) and memory.add(c)]
            return tuple(self._fill(found, settings.population))
        parents = memory.ranked()[: settings.population]
        wanted = max(1, settings.population - settings.elites)
        children: list[Config] = []
        for _ in range(wanted):
            child = self._child(parents)
            if child is not None:
                children.append(child)
        return tuple(self._fill(children, wanted))

    def tell(self, results: Sequence[Result]) -> None:
        """See ``Strategy``."""
        self._memory.record(results)

    def state(self) -> State:
        """See ``Strategy``."""
        return {**self._memory.state(), "begun": self._begun}

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        self._memory.restore(state)
        self._begun = bool(state["begun"])

    def _fill(self, found: list[Config], count: int) -> list[Config]:
        """``found``, brought to ``count`` by random configurations while there are new ones."""
        while len(found) < count:
            config = self._memory.fresh()
            if config is None:
                break
            found.append(config)
        return found

    def _child(self, parents: list[Config]) -> Config | None:
        """A new valid configuration bred from ``parents`` (best first); None if none was found."""
        memory = self._memory
        for _ in range(_TRIES):
            if len(parents) >= ENOUGH_TO_BREED:
                child = self._mutate(self._cross(parents))
            elif parents and memory.rng.random() < 0.5:
                child = self._scatter(parents[0])
            else:
                return memory.fresh()
            if child in memory.seen:  # converged: step away from it rather than give up
                child = self._step(child)
            if memory.space.valid(child) and memory.add(child):
                return child
        return None

    def _cross(self, parents: list[Config]) -> Config:
        rng = self._memory.rng
        if rng.random() >= self._settings.crossover:
            return self._select(parents)
        trio = [self._select(parents) for _ in range(3)]
        return tuple(rng.choice(genes) for genes in zip(*trio, strict=True))

    def _select(self, parents: list[Config]) -> Config:
        position = int(self._memory.rng.betavariate(1, _PRESSURE) * len(parents))
        return parents[min(position, len(parents) - 1)]

    def _mutate(self, config: Config) -> Config:
        rng, knobs = self._memory.rng, self._memory.space.knobs
        return tuple(
            knob.mutate(value, rng) if rng.random() < self._settings.mutation else value
            for knob, value in zip(knobs, config, strict=True)
        )

    def _step(self, config: Config) -> Config:
        """One or two knobs changed."""
        rng, knobs = self._memory.rng, self._memory.space.knobs
        count = min(len(self._free), 1 if rng.random() < 0.7 else 2)
        changed = list(config)
        for i in rng.sample(self._free, count):
            changed[i] = knobs[i].mutate(changed[i], rng)
        return tuple(changed)

    def _scatter(self, config: Config) -> Config:
        """A third of the knobs drawn anew, at least one."""
        rng, knobs = self._memory.rng, self._memory.space.knobs
        changed = list(config)
        for i in rng.sample(self._free, max(1, len(self._free) // 3) if self._free else 0):
            changed[i] = knobs[i].sample(rng)
        return tuple(changed)
