"""Exhaustive search: every valid configuration, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import cast

from tcl.tuner.space import Config, Space
from tcl.tuner.strategies.base import Result, SearchSettings, State
from tcl.tuner.strategies.memory import Memory
from tcl.tuner.strategies.opening import known


class Exhaustive:
    """The seeds, then the space from one end to the other, ``population`` at a time."""

    def __init__(
        self, space: Space, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self._memory = Memory(space, rng)
        self._settings = settings
        self._seeds = tuple(seeds)
        self._position = 0
        """How much of the enumeration has been passed."""
        self._rest: Iterator[Config] = space.enumerate()

    @property
    def pending(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        return self._memory.pending

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        found = known(self._memory, self._seeds)
        while len(found) < self._settings.population:
            config = next(self._rest, None)
            if config is None:
                break
            self._position += 1
            if self._memory.add(config):
                found.append(config)
        return tuple(found)

    def tell(self, results: Sequence[Result]) -> None:
        """See ``Strategy``."""
        self._memory.record(results)

    def state(self) -> State:
        """See ``Strategy``."""
        return {**self._memory.state(), "position": self._position}

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        self._memory.restore(state)
        self._position = cast(int, state["position"])
        self._rest = islice(self._memory.space.enumerate(), self._position, None)
