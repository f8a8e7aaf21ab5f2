"""Random search: what every other strategy has to beat."""

from __future__ import annotations

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.skeleton import Search


class RandomSearch(Search):
    """Generations of ``population`` random configurations, the seeds first."""

    def ask(self) -> tuple[Config, ...]:
        """See ``Strategy``."""
        return tuple(self._memory.fill(self._known_seeds(), self._settings.population))
