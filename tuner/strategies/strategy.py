"""What every search strategy is: it proposes configurations and is told their times.

A strategy knows nothing of compilers or clocks, so it can be replayed on recorded results, and
the same random state with the same results makes the same proposals: in which order results come in
makes no difference to what follows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TypeAlias

from tcl.tuner.space.search_space import Config, ConfigSpace

Result: TypeAlias = tuple[Config, float | None]
"""A configuration and its time in seconds; None when it failed."""

SELECTIONS = ("rank", "roulette")
_ENUMERABLE = 100_000
"""Spaces up to this size are searched to the last configuration."""
_FAILED = math.log(2)
"""A failure counts as so much slower than the slowest, as a logarithm."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings that strategies share; each reads those that it has a use for."""

    population: int = 20
    """Configurations of the first generation; as many of the best are parents of later ones."""
    elites: int = 10
    """How many fewer are measured in later generations, of strategies that breed: the best so far
    count as members, and keep their times."""
    crossover: float = 0.8
    """Probability that a child mixes parents; otherwise it begins as the copy of one. Not of those
    children that are a parent with one knob changed, nor is ``mutation``."""
    mutation: float = 0.1
    """Probability of a mutation, per knob of a child."""
    selection: str = "rank"
    """How parents are drawn: by ``rank``, or by ``roulette``, in proportion to 1 / time."""
    parents: int = 3
    """Of a child that mixes them: two or three."""

    @property
    def children(self) -> int:
        """How many are measured in a generation after the first."""
        return max(1, self.population - self.elites)


class Strategy(ABC):
    """``ask`` and ``tell`` alternate, a generation at a time, or a part of the first one while it
    has a ``rest``; the results may come in any order, in parts, or not at all. Where there is
    more to be done it may be asked again before it is told: what is pending is not proposed again.
    ``seeds`` open the first generation.
    """

    def __init__(
        self, space: ConfigSpace, rng: Random, settings: SearchSettings, seeds: Sequence[Config]
    ) -> None:
        self.space = space
        self.rng = rng
        self.settings = settings
        self._seeds = tuple(seeds)
        self.seen: dict[Config, None] = {}
        """What was proposed or told, in that order."""
        self.results: dict[Config, float | None] = {}
        self.rest = 0
        """How many more of its generation it will ask for at most, once it is told of these."""

    @abstractmethod
    def ask(self) -> tuple[Config, ...]:
        """The next generation, or a part of it: valid, different, never proposed before. Empty:
        nothing is left."""

    def tell(self, results: Sequence[Result]) -> None:
        """What became of them, or of others, measured elsewhere. Of a configuration that is told
        twice the last time counts."""
        for config, time in results:
            self.seen[config] = None
            self.results[config] = time if time is not None and math.isfinite(time) else None

    @property
    def pending(self) -> tuple[Config, ...]:
        """What was asked and not told."""
        return tuple(c for c in self.seen if c not in self.results)

    def measured(self) -> list[Result]:
        """All results, in the order of their proposal."""
        return [(c, self.results[c]) for c in self.seen if c in self.results]

    def ranked(self) -> list[tuple[float, Config]]:
        """Everything that worked, fastest first; equals in the order of their proposal."""
        timed = [(t, c) for c, t in self.measured() if t is not None]
        return sorted(timed, key=lambda item: item[0])

    def add(self, config: Config) -> bool:
        """Whether ``config`` was new; from now on it is not."""
        if config in self.seen:
            return False
        self.seen[config] = None
        return True

    def new_seeds(self) -> list[Config]:
        """Those seeds that are valid and new, which they now are not."""
        return [c for c in self._seeds if self.space.valid(c) and self.add(c)]

    def fill(self, found: list[Config], count: int) -> list[Config]:
        """``found``, brought to ``count`` by random configurations while there are new ones."""
        while len(found) < count and (config := self._fresh()) is not None:
            found.append(config)
        return found

    def _fresh(self) -> Config | None:
        """A random configuration not seen before; None when there seem to be no more."""
        for _ in range(50):
            config = self.space.sample(self.rng)
            if config is None:
                break
            if self.add(config):
                return config
        if self.space.cardinality > _ENUMERABLE:
            return None
        left = [c for c in self.space.enumerate() if c not in self.seen]
        if not left:
            return None
        self.add(config := self.rng.choice(left))
        return config


def logarithms(results: Sequence[Result]) -> list[float]:
    """Of the times, from which to learn, with failures as times that are longer than all."""
    logs = [math.log(max(t, 1e-12)) for _, t in results if t is not None]
    worst = max(logs, default=0.0) + _FAILED
    return [math.log(max(t, 1e-12)) if t is not None else worst for _, t in results]


class Exhaustive(Strategy):
    """The seeds, then the space from one end to the other, ``population`` at a time."""

    @cached_property
    def _rest(self) -> Iterator[Config]:
        return self.space.enumerate()

    def ask(self) -> tuple[Config, ...]:
        found = self.new_seeds()
        while len(found) < self.settings.population:
            config = next(self._rest, None)
            if config is None:
                break
            if self.add(config):
                found.append(config)
        return tuple(found)


class RandomSearch(Strategy):
    """Generations of ``population`` random configurations, the seeds first."""

    def ask(self) -> tuple[Config, ...]:
        return tuple(self.fill(self.new_seeds(), self.settings.population))
