"""Random search: what every other strategy has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tcl.tuner.space import Config, Space
from tcl.tuner.strategies.base import Result, SearchSettings, State
from tcl.tuner.strategies.memory import Memory
from tcl.tuner.strategies.opening import known


class RandomSearch:
    """Generations of ``population`` random configurations, the seeds first."""

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

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        memory = self._memory
        return tuple(memory.fill(known(memory, self._seeds), self._settings.population))

    def tell(self, results: Sequence[Result]) -> None:
        """See ``Strategy``."""
        self._memory.record(results)

    def state(self) -> State:
        """See ``Strategy``."""
        return self._memory.state()

    def restore(self, state: Mapping[str, object]) -> None:
        """See ``Strategy``."""
        self._memory.restore(state)
