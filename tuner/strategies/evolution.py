"""A search by generations that breeds: how it begins, and what is near the best."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import cast

import numpy as np

from tcl.tuner.space.around import Change, singles
from tcl.tuner.space.search_space import Config, ConfigSpace
from tcl.tuner.strategies.features import Features
from tcl.tuner.strategies.strategy import SearchSettings, State, Strategy

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

    def __init__(
        self, space: ConfigSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._begun = False
        self._rooted = False
        """Whether something was measured before the first generation, and works."""

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
        features = Features(self.space)
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
        rounded = tuple(knob.rounded(value) for knob, value in pairs)
        return rounded if rounded not in self.seen and self.space.valid(rounded) else config

    @abstractmethod
    def _children(self, count: int) -> list[Config]:
        """The next ``count``, by now in memory; what they lack is drawn at random."""

    def state(self) -> State:
        own = {"begun": self._begun, "rooted": self._rooted, "rest": self.rest}
        return {**super().state(), **own}

    def restore(self, state: Mapping[str, object]) -> None:
        super().restore(state)
        self._begun, self._rooted = bool(state["begun"]), bool(state.get("rooted"))
        self.rest = cast(int, state.get("rest", 0))
