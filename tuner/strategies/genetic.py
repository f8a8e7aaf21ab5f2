"""Plain genetic search."""

from __future__ import annotations

from tcl.tuner.space import Config
from tcl.tuner.strategies.breeding import Breeder
from tcl.tuner.strategies.search import Evolution


class Genetic(Evolution):
    """Elites, parents by rank or roulette, uniform crossover of two or three, mutation."""

    def _children(self) -> list[Config]:
        memory, settings = self._memory, self._settings
        breeder = Breeder(memory, settings, memory.ranked()[: settings.population])
        children: list[Config] = []
        for _ in range(settings.children):
            child = breeder.child(memory.seen)
            if child is not None and memory.add(child):
                children.append(child)
        return children
