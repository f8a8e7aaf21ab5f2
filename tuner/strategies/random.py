"""Random search: what every other strategy has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tcl.tuner.space import Config, SearchSpace
from tcl.tuner.strategies.base import Memory, Result, SearchSettings, State


class RandomSearch:
    """Generations of ``population`` random configurations, the seeds first."""

    def __init__(
        self, space: SearchSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self._memory = Memory(space, rng)
        self._settings = settings
        self._seeds = tuple(seeds)

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory = self._memory
        found = [c for c in self._seeds if memory.space.valid(c) and memory.add(c)]
        while len(found) < self._settings.population:
            config = memory.fresh()
            if config is None:
                break
            found.append(config)
        return tuple(found)

    def tell(self, results: Sequence[Result]) -> None:
        """See ``Strategy``."""
        self._memory.record(results)

    def state(self) -> State:
        """See ``Strategy``."""
        return self._memory.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        self._memory.restore(state)
