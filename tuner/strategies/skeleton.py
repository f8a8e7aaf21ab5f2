"""What strategies have in common: a memory, and for those that breed, how a search begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random

from tcl.tuner.space.search_space import Config, Space
from tcl.tuner.strategies.history import Memory
from tcl.tuner.strategies.opening import opening
from tcl.tuner.strategies.strategy import Result, SearchSettings, State


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
            return tuple(opening(memory, self._seeds, settings.population))
        return tuple(memory.fill(self._children(), settings.children))

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
