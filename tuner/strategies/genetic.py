"""Genetic search, after Tensor Comprehensions' tuner.

The elites are the best configurations found so far; each generation adds children of them and
of the generation before. A child mixes three parents knob by knob, better ones being likelier
parents, and mutates; or it is one of them with one knob changed. Nothing is evaluated twice. While
fewer than three configurations work, there is nothing to breed from: the generation is drawn anew
around the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tcl.tuner.space import Config, Space
from tcl.tuner.strategies.base import Result, SearchSettings, State
from tcl.tuner.strategies.breeding import Breeder
from tcl.tuner.strategies.memory import Memory
from tcl.tuner.strategies.opening import opening


class Genetic:
    """Elites, parents by rank or roulette, uniform crossover of two or three, mutation."""

    def __init__(
        self, space: Space, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self._memory = Memory(space, rng)
        self._settings = settings
        self._seeds = tuple(seeds)
        self._begun = False

    @property
    def pending(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        return self._memory.pending

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory, settings = self._memory, self._settings
        if not self._begun:
            self._begun = True
            return tuple(opening(memory, self._seeds, settings.population))
        breeder = Breeder(memory, settings, memory.ranked()[: settings.population])
        children: list[Config] = []
        for _ in range(settings.children):
            child = breeder.child(memory.seen)
            if child is not None and memory.add(child):
                children.append(child)
        return tuple(memory.fill(children, settings.children))

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
