"""What has been proposed and what was measured: the part that all strategies share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import cast

from tcl.tuner.space.search_space import Config, Space
from tcl.tuner.strategies.strategy import Result, State

_ENUMERABLE = 100_000
"""Spaces up to this size are searched to the last configuration."""
_FAILED = math.log(2)
"""A failure counts as so much slower than the slowest, as a logarithm."""


def logarithms(results: Sequence[Result]) -> list[float]:
    """Of the times, from which to learn, with failures as times that are longer than all."""
    logs = [math.log(max(t, 1e-12)) for _, t in results if t is not None]
    worst = max(logs, default=0.0) + _FAILED
    return [math.log(max(t, 1e-12)) if t is not None else worst for _, t in results]


class Memory:
    """Proposals in their order, and results by proposal: in which order results come in makes no
    difference to what follows."""

    def __init__(self, space: Space, rng: Random) -> None:
        self.space = space
        self.rng = rng
        self.seen: dict[Config, None] = {}
        self.results: dict[Config, float | None] = {}

    @property
    def pending(self) -> tuple[Config, ...]:
        """What was proposed and has no result."""
        return tuple(c for c in self.seen if c not in self.results)

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
            works = time is not None and math.isfinite(time)
            self.results[config] = time if works else None

    def measured(self) -> list[Result]:
        """All results, in the order of their proposal."""
        return [(c, self.results[c]) for c in self.seen if c in self.results]

    def ranked(self) -> list[tuple[float, Config]]:
        """Everything that worked, fastest first; equals in the order of their proposal."""
        timed = [(t, c) for c, t in self.measured() if t is not None]
        return sorted(timed, key=lambda item: item[0])

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

    def fill(self, found: list[Config], count: int) -> list[Config]:
        """``found``, brought to ``count`` by random configurations while there are new ones."""
        while len(found) < count:
            config = self.fresh()
            if config is None:
                break
            found.append(config)
        return found

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
