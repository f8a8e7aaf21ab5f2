"""Searches that learn nothing: all valid configurations in a fixed order, and random ones, which
are what every other strategy has to beat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import cast

from tcl.tuner.space.search_space import Config, ConfigSpace
from tcl.tuner.strategies.strategy import SearchSettings, State, Strategy


class Exhaustive(Strategy):
    """The seeds, then the space from one end to the other, ``population`` at a time."""

    def __init__(
        self, space: ConfigSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        super().__init__(space, rng, settings, seeds)
        self._position = 0
        """How much of the enumeration has been passed."""
        self._rest: Iterator[Config] = space.enumerate()

    def ask(self) -> tuple[Config, ...]:
        found = self.new_seeds()
        while len(found) < self.settings.population:
            config = next(self._rest, None)
            if config is None:
                break
            self._position += 1
            if self.add(config):
                found.append(config)
        return tuple(found)

    def state(self) -> State:
        return {**super().state(), "position": self._position}

    def restore(self, state: Mapping[str, object]) -> None:
        super().restore(state)
        self._position = cast(int, state["position"])
        self._rest = islice(self.space.enumerate(), self._position, None)


class RandomSearch(Strategy):
    """Generations of ``population`` random configurations, the seeds first."""

    def ask(self) -> tuple[Config, ...]:
        return tuple(self.fill(self.new_seeds(), self.settings.population))
