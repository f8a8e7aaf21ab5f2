"""What strategies have in common: a memory, and for those that breed, how a search begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random

import numpy as np

from tcl.tuner.space.around import Change, singles
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
        self._rooted = False
        """Whether something was measured before the first generation, and works."""

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory, settings = self._memory, self._settings
        if not self._begun:
            self._begun, self._rooted = True, self._best is not None
            return tuple(self._opening())
        return tuple(memory.fill(self._children(), settings.children))

    def _opening(self) -> list[Config]:
        """The seeds, brought to ``population``: half of what they lack is next to the best of what
        the search began with, if it began with anything, and comes first. The rest is spread over
        the space: of most defs it takes much longer than the default, and is timed later."""
        population = self._settings.population
        found = self._known_seeds()
        found += self._next_to_best(max(0, population - len(found)) // 2)
        return self._spread(found, population)

    @property
    def _best(self) -> Config | None:
        """The fastest known, if anything works."""
        ranked = self._memory.ranked()
        return ranked[0][1] if ranked else None

    def _next_to_best(self, count: int) -> list[Config]:
        """Up to ``count`` that differ from the fastest known in one knob, by now in memory: those
        first of whose kind most was gained elsewhere."""
        memory, best = self._memory, self._best
        if best is None or not count:
            return []
        return [c for c in islice(self._beside(best), count) if memory.add(c)]

    def _beside(self, best: Config) -> Iterator[Config]:
        """New configurations that differ from it in one knob, those first of whose kind most was
        gained elsewhere."""
        memory = self._memory

        def new(changes: tuple[Change, ...]) -> Config | None:
            config = list(best)
            for place, value in changes:
                config[place] = value
            found = tuple(config)
            return found if found not in memory.seen and memory.space.valid(found) else None

        return singles(memory.space.knobs, best, new)

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
        return {**super().state(), "begun": self._begun, "rooted": self._rooted}

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        super().restore(state)
        self._begun, self._rooted = bool(state["begun"]), bool(state.get("rooted"))
