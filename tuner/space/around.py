"""Configurations around another one: few knobs are changed, and nothing is drawn in vain."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import OPTIONS
from tcl.tuner.space.search_space import Config, SearchSpace, reading

Change: TypeAlias = tuple[int, Value]
"""The place of a knob, and another one of its choices."""
Valid: TypeAlias = Callable[[tuple[Change, ...]], Config | None]
"""The centre with these changes; None if that is not valid."""


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


Kind: TypeAlias = tuple[str, bool | None]
"""Of changes: the knob's name without its loop and number, and, of one with an order, whether the
value goes up."""


def change_kind(knob: Knob, old: Value, new: Value) -> Kind:
    up = knob.choices.index(new) > knob.choices.index(old) if knob.ordered else None
    return knob.name.rpartition(".")[2].rstrip("0123456789"), up


PAID: Mapping[Kind, float] = {
    (knob, up): gain
    for option in OPTIONS.values()
    for knob, gains in option.gains.items()
    for up, gain in zip((False, True) if len(gains) > 1 else (None,), gains, strict=True)
}
"""What changes of one kind have gained."""
_OTHERS = 0.004
"""Of kinds that nothing is known of."""
_AGAIN = 0.8
"""What is left of that with each change of a kind that was tried: they gain alike."""


def singles(
    knobs: tuple[Knob, ...], centre: Config, valid: Valid, gains: Mapping[Kind, float] = PAID
) -> Iterator[Config]:
    """Configurations that differ from ``centre`` in one knob: those first that gain most; of a kind
    those in one step first. ``valid`` gives a configuration for changes that are valid; only these
    count as tried."""
    kinds: dict[Kind, deque[Change]] = {}
    for place, value in itertools.chain.from_iterable(changes(knobs, centre)):
        kind = change_kind(knobs[place], centre[place], value)
        kinds.setdefault(kind, deque()).append((place, value))
    worth = {kind: gains.get(kind, _OTHERS) for kind in kinds}
    while worth:
        kind = max(worth, key=worth.__getitem__)
        found = valid((kinds[kind].popleft(),))
        if not kinds[kind]:
            del worth[kind]
        elif found is not None:
            worth[kind] *= _AGAIN
        if found is not None:
            yield found


def around(space: SearchSpace, centre: Config) -> Iterator[Config]:
    """Valid configurations that differ from a valid one in one knob, those first that gain most,
    then those that differ in two, by how far they are from it; always in the same order, each
    once."""
    valid = _Near(space, centre)
    yield from singles(space.knobs, centre, valid.after)
    by_steps = changes(space.knobs, centre)
    for steps in range(2, 2 * len(by_steps) + 1):
        for one, two in itertools.product(by_steps, repeat=2):
            if by_steps.index(one) + by_steps.index(two) + 2 == steps:
                pairs = ((a, b) for a, b in itertools.product(one, two) if a[0] < b[0])
                yield from filter(None, map(valid.after, pairs))


class _Near:
    """Which changes are valid: constraints that look at no knob that is changed stay as they
    are."""

    def __init__(self, space: SearchSpace, centre: Config) -> None:
        self._space, self._centre = space, centre
        self._values = space.values(centre)
        checks = (*space.heuristics, *space.constraints)
        self._checks = [(check, reading(check, self._values)[1]) for check in checks]

    def after(self, made: tuple[Change, ...]) -> Config | None:
        """The centre with these changes; None if that is not valid, or the double of another."""
        config = list(self._centre)
        for place, value in made:
            config[place] = value
        names = {self._space.knobs[place].name for place, _ in made}
        values: Mapping[str, Value] = self._space.values(tuple(config))
        for check, read in self._checks:
            if not names.isdisjoint(read) and check(values) is not None:
                return None
        return tuple(config) if self._space.is_canonical(values) else None
