"""A knob: one decision of a search, declared once.

It owns everything the search asks about that decision: default, sample, mutate, encode,
cardinality. All methods are pure; randomness comes from the ``random.Random`` passed in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

Value: TypeAlias = int | str
"""What a knob can be set to; a JSON scalar, so that configurations are data."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One decision among finitely many choices."""

    name: str
    choices: tuple[Value, ...]
    """All values, without repetition; in order of size when ``ordered``."""
    default: Value
    ordered: bool
    """Whether neighbours in ``choices`` are alike (tile sizes), or only different (loop orders)."""

    def __post_init__(self) -> None:
        if not self.choices or len(set(self.choices)) != len(self.choices):
            raise ValueError(f"knob {self.name} needs choices without repetition")
        if self.default not in self.choices:
            raise ValueError(f"knob {self.name}: default {self.default!r} is not a choice")

    @property
    def cardinality(self) -> int:
        """Number of choices."""
        return len(self.choices)

    def fixed(self, value: Value) -> Knob:
        """The same knob with one choice left; ``ValueError`` if ``value`` is not a choice."""
        if value not in self.choices:
            listed = ", ".join(str(c) for c in self.choices)
            raise ValueError(f"{self.name} cannot be {value!r}; it can be one of: {listed}")
        return replace(self, choices=(value,), default=value)

    def sample(self, rng: Random) -> Value:
        """A choice, all equally likely."""
        return rng.choice(self.choices)

    def mutate(self, value: Value, rng: Random) -> Value:
        """A different choice (the same only where there is just one).

        Half of the time an ordered knob moves by one or two steps, else anywhere.
        """
        count = len(self.choices)
        if count == 1:
            return value
        position = self.choices.index(value)
        if self.ordered and count > 4 and rng.random() < 0.5:
            steps = [s for s in (-2, -1, 1, 2) if 0 <= position + s < count]
            return self.choices[position + rng.choice(steps)]
        other = rng.randrange(count - 1)
        return self.choices[other + (other >= position)]

    def nearest_power(self, value: Value) -> Value:
        """The choice nearest to a number that is a power of two; other values stay, and the last
        choice: of tile sizes it is the whole extent."""
        powers = [c for c in self.choices if isinstance(c, int) and c > 0 and not odd_part(c)]
        if not (self.ordered and powers and odd_part(value)) or value == self.choices[-1]:
            return value
        return min(powers, key=lambda power: abs(math.log2(power) - math.log2(int(value))))

    def encode(self, value: Value) -> tuple[float, ...]:
        """Features for a model: log2(1 + value) or the position if ordered, else one-hot."""
        position = self.choices.index(value)
        if not self.ordered:
            return tuple(float(i == position) for i in range(len(self.choices)))
        if isinstance(value, int) and value >= 0:
            return (math.log2(1 + value),)
        return (float(position),)


def odd_part(value: Value) -> float:
    """Logarithm to base 2 of the largest odd divisor: 0 of powers of two and of what is no positive
    number."""
    return math.log2(value // (value & -value)) if isinstance(value, int) and value > 0 else 0.0


_ALL_ORDERS = 4
"""Up to this many dimensions every loop order is tried; above, those that move one dimension."""


def tile_sizes(extent: int) -> tuple[int, ...]:
    """Sizes worth trying for a dimension, in ascending order; the last is the extent: untiled."""
    powers = (1 << p for p in range(1, max(1, extent).bit_length()))
    parts = (-(-extent // k) for k in range(2, 9))
    return (*sorted({s for s in (*powers, *parts) if 1 < s < extent}), extent)


def loop_orders(reduction: list[bool]) -> Iterator[tuple[int, ...]]:
    """Orders worth trying, as permutations of ``range(len(reduction))``, the natural one first.

    ``reduction``: whether each dimension is reduced; where not all orders are tried, the one
    with all reductions outermost is, too.
    """
    rank = len(reduction)
    natural = tuple(range(rank))
    if rank <= _ALL_ORDERS:
        yield from itertools.permutations(natural)
        return
    moved = [natural, tuple(sorted(natural, key=lambda i: not reduction[i]))]
    for i in natural:
        others = natural[:i] + natural[i + 1 :]
        moved += [(i, *others), (*others, i)]
        moved += [(*natural[:i], i + 1, i, *natural[i + 2 :])] if i + 1 < rank else []
    yield from dict.fromkeys(moved)


def first_equivalent(knob: Knob, order: Value, moved: Iterable[int]) -> Value:
    """The first choice that has these places in the same order; ``order`` if there is none."""
    kept = {str(k) for k in moved}

    def of_kept(text: Value) -> list[str]:
        return [part for part in str(text).split() if part in kept]

    wanted = of_kept(order)
    return next((c for c in knob.choices if of_kept(c) == wanted), order)
