"""A search space: knobs, and the constraints that a configuration has to meet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Protocol, TypeAlias, TypeVar

from tcl.codegen.options.knobs import Knob, Value
from tcl.common.dataclass import dataclass

Config: TypeAlias = tuple[Value, ...]
"""One value per knob, in the order of the knobs."""

Constraint: TypeAlias = Callable[[Mapping[str, Value]], str | None]
"""Knob name → value, to the reason against it; None when there is none. Where it
is not met, those values are drawn again that it has read by ``[]``, not by ``get``."""

Canonical: TypeAlias = Callable[[Mapping[str, Value]], Mapping[str, Value]]
"""Knob name → value, to the canonical ones among all values that mean the same."""

_T = TypeVar("_T")
_TRIES = 300
_PATIENCE = 150
"""Times that a constraint may not be met before its knobs are all at their defaults."""


class ConfigSpace(Protocol):
    """What a search asks of its space: ours, derived from a def, or a recorded one."""

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The decisions: default, sample, mutate, encode, cardinality of each."""

    @property
    def cardinality(self) -> int:
        """Number of configurations, constraints not counted."""

    def valid(self, config: Config) -> bool:
        """Whether all constraints are met: free, as nothing is compiled for it."""

    def sample(self, rng: Random) -> Config | None:
        """A random valid configuration; None if none was found."""

    def enumerate(self) -> Iterator[Config]:
        """All valid configurations, in a fixed order."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The configurations a search may propose."""

    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...] = ()
    """What can be scheduled: a configuration meets all of them just where its options are not
    refused."""
    heuristics: tuple[Constraint, ...] = ()
    """What is worth trying, of that which can be scheduled."""
    canonical: Canonical = dict
    """Of configurations that mean the same, only the one that this gives is proposed."""

    def __post_init__(self) -> None:
        names = [k.name for k in self.knobs]
        if len(set(names)) != len(names):
            raise ValueError(f"knob names must differ: {', '.join(names)}")

    @property
    def cardinality(self) -> int:
        """Number of configurations, constraints not counted."""
        return math.prod(k.cardinality for k in self.knobs)

    @property
    def default(self) -> Config:
        """Every knob at its default."""
        return tuple(k.default for k in self.knobs)

    def values(self, config: Config) -> dict[str, Value]:
        """The configuration as knob name → value."""
        return {k.name: v for k, v in zip(self.knobs, config, strict=True)}

    def config(self, values: Mapping[str, Value]) -> Config:
        """A configuration from knob name → value; what is not named is at its default.

        ``ValueError`` for an unknown knob, or a value that is not one of its choices.
        """
        known = {k.name for k in self.knobs}
        for name in values:
            if name not in known:
                raise ValueError(f"there is no knob {name!r}; knobs are {', '.join(sorted(known))}")
        return tuple(
            k.fixed(values[k.name]).default if k.name in values else k.default for k in self.knobs
        )

    def fix(self, values: Mapping[str, Value]) -> SearchSpace:
        """The same space with these knobs fixed: sampling, mutation and crossover leave them be.

        ``ValueError`` as in ``config``.
        """
        self.config(values)
        knobs = tuple(k.fixed(values[k.name]) if k.name in values else k for k in self.knobs)
        return replace(self, knobs=knobs)

    def contains(self, config: Config) -> bool:
        """Whether every value is one of its knob's choices."""
        return len(config) == len(self.knobs) and all(
            v in k.choices for k, v in zip(self.knobs, config, strict=True)
        )

    def reason(self, config: Config) -> str | None:
        """Why the configuration is not proposed; None when it may be."""
        values = self.values(config)
        reasons = (c(values) for c in (*self.constraints, *self.heuristics))
        reason = next((r for r in reasons if r is not None), None)
        return self._why_not_canonical(values) if reason is None else reason

    def _why_not_canonical(self, values: Mapping[str, Value]) -> str | None:
        """Which other configuration means the same and is canonical; None if this one is."""
        for name, value in self._canonical_where_free(values).items():
            if values[name] != value:
                return f"{name} {values[name]} has the same effect as {value} here"
        return None

    def is_canonical(self, values: Mapping[str, Value]) -> bool:
        """Whether values that meet all constraints are canonical among those that mean the same."""
        return self._why_not_canonical(values) is None

    def _canonical_where_free(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """What ``canonical`` gives, or ``values`` where that needs a choice that is fixed."""
        canonical = self.canonical(values)
        fixed = (k.name for k in self.knobs if len(k.choices) == 1)
        return values if any(canonical.get(n, values[n]) != values[n] for n in fixed) else canonical

    def valid(self, config: Config) -> bool:
        """Whether all constraints and heuristics are met."""
        return self.reason(config) is None

    def sample(self, rng: Random) -> Config | None:
        """A random valid configuration; None if a bounded number of tries finds none.

        The knobs that a constraint which is not met has looked at are drawn again, and no others:
        a def of many nests has so many constraints that hardly any draw meets them all at once.
        The more often one has not been met, the more of its knobs are left at their defaults.
        """
        by_name = {k.name: k for k in self.knobs}
        values = {name: k.sample(rng) for name, k in by_name.items()}
        met: dict[int, frozenset[str]] = {}
        """What constraints have looked at that are met, and need not look again before it
        changes."""
        failed: Counter[int] = Counter()
        for _ in range(_TRIES):
            place, again = self._unmet(values, met)
            if place is None:
                values.update(self._canonical_where_free(values))
                return tuple(values[k.name] for k in self.knobs)
            failed[place] += 1
            for name in sorted(again):
                knob, patience = by_name[name], failed[place] / _PATIENCE
                values[name] = knob.default if rng.random() < patience else knob.sample(rng)
            for known in [p for p, read in met.items() if not again.isdisjoint(read)]:
                del met[known]
        return self.default if self.valid(self.default) else None

    def _unmet(
        self, values: dict[str, Value], met: dict[int, frozenset[str]]
    ) -> tuple[int | None, frozenset[str]]:
        """The place of the first constraint that is not met, and what is to be drawn again for it;
        no place if all are. Those that are met join ``met``. Heuristics come first: they take less
        time."""
        for place, constraint in enumerate((*self.heuristics, *self.constraints)):
            if place not in met:
                read = _Reading(values)
                if constraint(read) is not None:
                    return place, frozenset(read)
                met[place] = frozenset(read) | read.got
        return None, frozenset()

    def enumerate(self) -> Iterator[Config]:
        """All valid configurations, in a fixed order. If a constraint is not met, it is met by none
        that has the same values of the knobs that it has looked at."""
        last = len(self.knobs) - 1
        at = [0] * len(self.knobs)
        while True:
            values = {k.name: k.choices[i] for k, i in zip(self.knobs, at, strict=True)}
            place = self._refusing(values)
            if place is None:
                if self.is_canonical(values):
                    yield tuple(values.values())
                place = last
            at[place + 1 :] = [0] * (last - place)
            while place >= 0 and at[place] + 1 == self.knobs[place].cardinality:
                at[place] = 0
                place -= 1
            if place < 0:
                return
            at[place] += 1

    def _refusing(self, values: Mapping[str, Value]) -> int | None:
        """The last knob that the first constraint which is not met has looked at; None if all are
        met."""
        for constraint in (*self.heuristics, *self.constraints):
            reason, read = reading(constraint, values)
            if reason is not None:
                return max((i for i, k in enumerate(self.knobs) if k.name in read), default=-1)
        return None


def reading(
    function: Callable[[Mapping[str, Value]], _T], values: Mapping[str, Value]
) -> tuple[_T, frozenset[str]]:
    """What a function gives for these values, and the names of those that it has looked at: where
    they are the same, it gives the same."""
    read = _Reading(values)
    found = function(read)
    return found, frozenset(read) | read.got


class _Reading(dict[str, Value]):
    """The values that have been read by ``[]``, and the names of those that were only got."""

    __slots__ = ("_values", "got")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self.got: set[str] = set()

    def __missing__(self, name: str) -> Value:
        value = self[name] = self._values[name]
        return value

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """A value, which is not drawn again for that."""
        self.got.add(name)
        return self._values.get(name, default)


class Quiet(dict[str, Value]):
    """Values none of which is drawn again for having been looked at."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __missing__(self, name: str) -> Value:
        value = self._values.get(name)
        assert value is not None
        self[name] = value
        return value
