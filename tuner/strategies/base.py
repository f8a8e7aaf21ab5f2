"""What every search strategy is: it proposes configurations and is told their times.

A strategy knows nothing of compilers or clocks, so it can be replayed on recorded results, and
the same random state with the same results makes the same proposals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeAlias, cast

from tcl.tuner.space import Config, SearchSpace

Result: TypeAlias = tuple[Config, float | None]
"""A configuration and its time in seconds; None when it failed."""

State: TypeAlias = dict[str, object]
"""A strategy between two generations, as JSON data."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings that strategies share; each reads those that it has a use for."""

    population: int = 20
    """Members of a generation, elites included."""
    elites: int = 10
    """The best so far, which stay members without being evaluated again."""
    crossover: float = 0.8
    """Probability that a child mixes parents; otherwise it is the copy of one, mutated."""
    mutation: float = 0.15
    """Probability of a mutation, per knob of a child."""


class Strategy(Protocol):
    """The one signature. ``ask`` and ``tell`` alternate, a generation at a time."""

    def ask(self) -> tuple[Config, ...]:
        """The next generation: valid, different, never proposed before. Empty: nothing is left."""

    def tell(self, results: Sequence[Result]) -> None:
        """What became of them (or of others, measured elsewhere), in the order asked for."""

    def state(self) -> State:
        """Everything needed to go on from here; to be taken when every ``ask`` was told."""

    def restore(self, state: Mapping[str, object]) -> None:
        """Go on from a state of a strategy of the same kind and space."""


class Memory:
    """What has been proposed and what was measured: the part that all strategies share."""

    def __init__(self, space: SearchSpace, rng: Random) -> None:
        self.space = space
        self.rng = rng
        self.seen: dict[Config, None] = {}
        self.results: dict[Config, float | None] = {}

    def add(self, config: Config) -> bool:
        """Whether ``config`` was new; from now on it is not."""
        if config in self.seen:
            return False
        self.seen[config] = None
        return True

    def record(self, results: Iterable[Result]) -> None:
        """Keep results. A configuration reported twice keeps its last time."""
        for config, time in results:
            self.seen[config] = None
            self.results[config] = time

    def ranked(self) -> list[Config]:
        """Everything that worked, fastest first; equals in the order of their proposal."""
        timed = [(t, c) for c, t in self.results.items() if t is not None]
        return [c for _, c in sorted(timed, key=lambda item: item[0])]

    def fresh(self) -> Config | None:
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
        config = self.rng.choice(left)
        self.add(config)
        return config

    def state(self) -> State:
        """Random state, proposals and results as JSON data."""
        version, internal, gauss = self.rng.getstate()
        return {
            "rng": [version, list(internal), gauss],
            "seen": [list(c) for c in self.seen],
            "results": [[list(c), t] for c, t in self.results.items()],
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """The inverse of ``state``, for a state that may have been through JSON."""
        version, internal, gauss = cast(tuple[int, list[int], float | None], state["rng"])
        self.rng.setstate((version, tuple(internal), gauss))
        self.seen = {tuple(c): None for c in cast(list[list[int | str]], state["seen"])}
        results = cast(list[tuple[list[int | str], float | None]], state["results"])
        self.results = {tuple(c): t for c, t in results}


_ENUMERABLE = 100_000
"""Spaces up to this size are searched to the last configuration."""
