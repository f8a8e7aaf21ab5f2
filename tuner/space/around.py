"""Configurations around another one: few knobs are changed, and nothing is drawn in vain."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Config, SearchSpace, reading

Change: TypeAlias = tuple[int, Value]
"""The place of a knob, and another one of its choices."""


def changes(knobs: tuple[Knob, ...], centre: Config) -> tuple[tuple[Change, ...], ...]:
    """All changes of one knob, by how far they are from ``centre``: one step of a knob with an
    order, or any other choice of one without, come first."""
    found: list[list[Change]] = []
    for place, (knob, value) in enumerate(zip(knobs, centre, strict=True)):
        own = knob.choices.index(value)
        for k, choice in enumerate(knob.choices):
            steps = abs(k - own) if knob.ordered else int(k != own)
            if steps:
                found += [[] for _ in range(steps - len(found))]
                found[steps - 1].append((place, choice))
    return tuple(map(tuple, found))


def around(space: SearchSpace, centre: Config) -> Iterator[Config]:
    """Valid configurations that differ from a valid one in one knob, then those that differ in two,
    by how far they are from it; always in the same order, each once."""
    valid = _Near(space, centre)
    by_steps = changes(space.knobs, centre)
    for same in by_steps:
        yield from filter(None, (valid.changed((change,)) for change in same))
    for steps in range(2, 2 * len(by_steps) + 1):
        for one, two in itertools.product(by_steps, repeat=2):
            if by_steps.index(one) + by_steps.index(two) + 2 == steps:
                pairs = ((a, b) for a, b in itertools.product(one, two) if a[0] < b[0])
                yield from filter(None, map(valid.changed, pairs))


class _Near:
    """Which changes are valid: constraints that look at no knob that is changed stay as they
    are."""

    def __init__(self, space: SearchSpace, centre: Config) -> None:
        self._space, self._centre = space, centre
        self._values = space.values(centre)
        checks = (*space.heuristics, *space.constraints)
        self._checks = [(check, reading(check, self._values)[1]) for check in checks]

    def changed(self, made: tuple[Change, ...]) -> Config | None:
        """The centre with these changes; None if that is not valid, or the double of another."""
        config = list(self._centre)
        for place, value in made:
            config[place] = value
        names = {self._space.knobs[place].name for place, _ in made}
        values: Mapping[str, Value] = self._space.values(tuple(config))
        for check, read in self._checks:
            if not names.isdisjoint(read) and check(values) is not None:
                return None
        return tuple(config) if self._space.stands(values) else None
