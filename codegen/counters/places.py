"""Where something is done: by which threads, how often, and at which offsets in memory.

An offset is a sum over variables, the iterations of blocks and loops, and a part that each thread
has for itself. Iterations are not gone through one by one: those at which a warp asks for the same,
up to whole sectors and points beyond a tensor, are one class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tcl.codegen.devices.banks import WARP, Active, Offsets
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """``constant + sum(factor * variable)``, and what each thread adds."""

    constant: int = 0
    factors: Mapping[str, int] = field(default_factory=dict)
    threads: Offsets | None = None
    """One number for each thread of a block."""

    def __add__(self, other: Linear) -> Linear:
        factors = dict(self.factors)
        for name, factor in other.factors.items():
            factors[name] = factors.get(name, 0) + factor
        if self.threads is None or other.threads is None:
            threads = self.threads if other.threads is None else other.threads
        else:
            threads = self.threads + other.threads
        return Linear(self.constant + other.constant, factors, threads)

    def scaled(self, by: int) -> Linear:
        """Times a number."""
        factors = {name: factor * by for name, factor in self.factors.items()}
        return Linear(
            self.constant * by, factors, None if self.threads is None else self.threads * by
        )

    def most(self, loops: Mapping[str, int]) -> int:
        """The largest value, where variables have so many iterations."""
        own = 0 if self.threads is None else int(self.threads.max())
        reach = (max(0, f * (loops.get(name, 1) - 1)) for name, f in self.factors.items())
        return self.constant + own + sum(reach)


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """``value < bound``: where it does not hold, a thread does nothing."""

    value: Linear
    bound: int

    def negated(self) -> Condition:
        """``value >= bound``."""
        return Condition(self.value.scaled(-1), 1 - self.bound)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A place of a kernel's code."""

    active: Active
    """The threads of a block that come here."""
    loops: Mapping[str, int]
    """Variables → iterations, blocks included."""
    tests: tuple[Condition, ...] = ()
    exact: bool = True
    """Whether nothing but iterations decides who comes here."""
    scope: Mapping[str, Linear] = field(default_factory=dict)
    """Fold → its offset in points."""

    def at(self, scope: Mapping[str, Linear]) -> Place:
        """With other offsets of some folds."""
        return Place(self.active, self.loops, self.tests, self.exact, {**self.scope, **scope})

    def within(self, variable: str, count: int) -> Place:
        """Inside of a loop."""
        loops = {**self.loops, variable: count}
        return Place(self.active, loops, self.tests, self.exact, self.scope)

    def where(self, *tests: Condition) -> Place:
        """Inside of a condition."""
        return replace(self, tests=(*self.tests, *tests)) if tests else self

    def by(self, active: Active) -> Place:
        """For some of the threads."""
        return replace(self, active=self.active & active)

    @property
    def visits(self) -> int:
        """Iterations of all loops and blocks."""
        return math.prod(self.loops.values())

    def classes(self, offset: Linear, modulus: int) -> Iterator[tuple[Offsets, Offsets, Active]]:
        """(how often, offsets, who takes part) of warps that are alike, in portions: N, N x 32 and
        N x 32. Offsets are right up to multiples of ``modulus``. Warps of which no thread takes
        part are left out."""
        weights, starts, slacks = _states(self, offset, modulus)
        threads = len(self.active)
        own = np.zeros(threads, np.int64) if offset.threads is None else offset.threads
        portion = max(1, _PORTION // threads)
        for begin in range(0, len(weights), portion):
            part = slice(begin, begin + portion)
            offsets = starts[part, None] + own
            active = self.active & np.ones((len(offsets), 1), bool)
            for test, slack in zip(self.tests, slacks.T, strict=True):
                moved = test.value.threads
                left = slack[part, None]
                active &= (left > 0) if moved is None else (moved < left)
            counts = weights[part].repeat(-(-threads // WARP))
            there: Active = _in_warps(active)
            used = np.logical_or.reduce(there, axis=1)
            if used.any():
                yield counts[used], _in_warps(offsets)[used], there[used]

    def warps(self) -> int:
        """How often a warp comes here, of which any thread takes part."""
        if not self.tests:
            return self.visits * int(_in_warps(self.active[None]).any(axis=1).sum())
        return int(sum(counts.sum() for counts, _, _ in self.classes(Linear(), 1)))


_PORTION = 1 << 18
"""Threads that are looked at together."""


def _in_warps(values: Any) -> Any:
    """N x threads as warps of 32, the last filled up with zeros."""
    count, threads = values.shape
    beyond = -threads % WARP
    if beyond:
        values = np.pad(values, ((0, 0), (0, beyond)))
    return values.reshape(count * ((threads + beyond) // WARP), WARP)


def _states(place: Place, offset: Linear, modulus: int) -> tuple[Offsets, Offsets, Offsets]:
    """The classes of iterations: how often each comes, its offset modulo ``modulus``, and how much
    of each test's bound is left for what the threads add (S, S and S x tests)."""
    tests = place.tests
    moving = [
        name
        for name in place.loops
        if offset.factors.get(name, 0) % modulus or any(t.value.factors.get(name) for t in tests)
    ]
    # The largest steps first: what is left of a bound is then soon all there, or none.
    moving.sort(key=lambda n: -max((abs(t.value.factors.get(n, 0)) for t in tests), default=0))
    alike = math.prod(n for name, n in place.loops.items() if name not in moving)
    weights = np.array([alike], np.int64)
    rows = np.array(
        [[offset.constant % modulus, *(t.bound - t.value.constant for t in tests)]], np.int64
    )
    for position, name in enumerate(moving):
        turns = np.arange(place.loops[name])
        own = [offset.factors.get(name, 0), *(-t.value.factors.get(name, 0) for t in tests)]
        steps = turns[:, None] * np.array(own, np.int64)
        weights = weights.repeat(len(turns))
        rows = (rows[:, None] + steps).reshape(len(weights), len(own))
        rows[:, 0] %= modulus
        if tests:
            low, high = _reach(place, tests, moving[position + 1 :])
            rows[:, 1:] = np.clip(rows[:, 1:], low, high + 1)
        weights, rows = _merged(weights, rows)
    return weights, rows[:, 0], rows[:, 1:]


def _reach(
    place: Place, tests: Sequence[Condition], rest: Sequence[str]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The least and the most that the rest of the variables and the threads add to each test's
    value."""
    low, high = [], []
    for test in tests:
        moved = test.value.threads
        ends = [(0, 0)] if moved is None else [(int(moved.min()), int(moved.max()))]
        for name in rest:
            reach = test.value.factors.get(name, 0) * (place.loops[name] - 1)
            ends.append((min(0, reach), max(0, reach)))
        low.append(sum(a for a, _ in ends))
        high.append(sum(b for _, b in ends))
    return np.array(low, np.int64), np.array(high, np.int64)


def _merged(weights: Offsets, rows: Offsets) -> tuple[Offsets, Offsets]:
    """Equal rows as one, with the sum of their weights."""
    if len(rows) < 2:
        return weights, rows
    order = np.lexsort(rows.T)
    rows, weights = rows[order], weights[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return np.add.reduceat(weights, np.flatnonzero(new)), rows[new]
