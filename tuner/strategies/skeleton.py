"""What strategies have in common: a memory, and for those that breed, how a search begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from tcl.tuner.space.search_space import Config, Space
from tcl.tuner.strategies.features import Features
from tcl.tuner.strategies.history import Memory
from tcl.tuner.strategies.strategy import Result, SearchSettings, State

_DRAWN = 4
"""Of so many random configurations the one is taken that is furthest from all others. With many
more, nothing but the corners of the space would be tried."""


class Search(ABC):
    """A ``Strategy`` whose proposals follow from its memory; it adds ``ask``."""

    def __init__(
        self, space: Space, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self._memory = Memory(space, rng)
        self._settings = settings
        self._seeds = tuple(seeds)

    @property
    def pending(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        return self._memory.pending

    @abstractmethod
    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""

    def _known_seeds(self) -> list[Config]:
        """Those seeds that are valid and new, which they now are not."""
        return [c for c in self._seeds if self._memory.space.valid(c) and self._memory.add(c)]

    def tell(self, results: Sequence[Result]) -> None:
        """See ``Strategy``."""
        self._memory.record(results)

    def state(self) -> State:
        """See ``Strategy``."""
        return self._memory.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        self._memory.restore(state)


class Evolution(Search):
    """A search by generations: an opening, then children of what was measured."""

    def __init__(
        self, space: Space, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._begun = False

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory, settings = self._memory, self._settings
        if not self._begun:
            self._begun = True
            return tuple(self._opening())
        return tuple(memory.fill(self._children(), settings.children))

    def _opening(self) -> list[Config]:
        """The seeds, brought to ``population`` by configurations spread over the space."""
        return self._spread(self._known_seeds(), self._settings.population)

    def _spread(self, found: list[Config], count: int) -> list[Config]:
        """``found``, brought to ``count`` by configurations far from all others."""
        memory, features = self._memory, Features(self._memory.space)
        while len(found) < count:
            drawn = [memory.space.sample(memory.rng) for _ in range(_DRAWN)]
            new = [c for c in drawn if c is not None and c not in memory.seen]
            if not new:
                return memory.fill(found, count)
            others = features.rows(list(memory.seen))
            far = features.distances(features.rows(new), others).min(axis=1, initial=np.inf)
            config = new[int(np.argmax(far))]
            memory.add(config)
            found.append(config)
        return found

    @abstractmethod
    def _children(self) -> list[Config]:
        """The next generation, by now in memory; what it lacks is drawn at random."""

    def state(self) -> State:
        """See ``Strategy``."""
        return {**super().state(), "begun": self._begun}

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        super().restore(state)
        self._begun = bool(state["begun"])
