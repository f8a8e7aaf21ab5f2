"""Which knobs made a difference in a search.

A random forest (Breiman, *Random Forests*, 2001) is trained on the logarithms of the measured
times. A knob's importance is the permutation importance of that paper: what the forest's squared
error on trees' out-of-bag samples grows by when the knob's values are shuffled among them, here as
a share of the variance of the logarithms. A tree model also sees knobs that matter only together,
which a knob's own correlation with time does not show. Each knob has a shadow, a shuffled copy that
the forest may use as well: what the best shadow reaches by chance, a knob has to exceed to count
(Kursa and Rudnicki, *Feature selection with the Boruta package*, 2010).

The measurements are those of a search, which looks more closely where kernels are fast: the result
says what mattered there, and not in the space as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Config

_Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]
_Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

FEWEST = 40
"""Measured configurations below which nothing is said."""
LEAST_EXPLAINED = 0.1
"""Share of the variance that the forest has to predict for its view of knobs to mean anything."""
_MOST = 600
"""Configurations that the forest is trained on at most, drawn at random."""
_TREES = 80
_LEAF = 3
"""Least number of samples in a leaf."""


@dataclass(frozen=True, slots=True)
class Influence:
    """One knob's."""

    knob: Knob
    share: float
    """What is lost of the explained variance without it; about 0 for one without influence."""
    values: int
    """Different values among the measured configurations."""


@dataclass(frozen=True, slots=True)
class Importance:
    """All knobs'."""

    influences: tuple[Influence, ...]
    """The most important first; empty if ``why_not``."""
    chance: float
    """What a knob without influence may reach by chance."""
    explained: float
    """Share of the variance of the logarithm of time that the forest predicts of configurations
    that it was not trained on."""
    samples: int
    """Configurations that it was trained on."""
    why_not: str = ""
    """Why nothing can be said; a sentence."""


def importance(
    knobs: Sequence[Knob], configs: Sequence[Config], times: Sequence[float], seed: int = 0
) -> Importance:
    """The influence of each knob on the times, in seconds, of these configurations."""
    count = len(configs)
    if count < FEWEST:
        return Importance(
            (), 0.0, 0.0, count, f"{count} measured configurations are too few; it takes {FEWEST}"
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(count)[:_MOST])
    configs = [configs[i] for i in chosen]
    target = np.log(np.asarray([times[i] for i in chosen], np.float64))
    variance = float(np.var(target))
    varied = [k for k in range(len(knobs)) if len({c[k] for c in configs}) > 1]
    if variance < 1e-12 or not varied:
        return Importance((), 0.0, 0.0, len(configs), "all configurations took the same time")
    codes = np.stack([_codes(knobs[k], [c[k] for c in configs]) for k in varied], axis=1)
    shadows = np.stack([rng.permutation(column) for column in codes.T], axis=1)
    ordered = np.array([knobs[k].ordered for k in varied])
    table = _Table(np.concatenate([codes, shadows], axis=1), np.tile(ordered, 2), target)
    losses, error = _permuted(table, rng)
    shares = losses / variance
    half = len(varied)
    explained = 1.0 - error / variance
    share_of = dict(zip(varied, shares[:half].tolist(), strict=True))
    influences = sorted(
        (
            Influence(knob, share_of.get(k, 0.0), len({c[k] for c in configs}))
            for k, knob in enumerate(knobs)
        ),
        key=lambda i: -i.share,
    )
    why_not = ""
    if explained < LEAST_EXPLAINED:
        influences = []
        why_not = (
            f"a model trained on {len(configs)} measured configurations predicts only "
            f"{max(0.0, explained):.0%} of the differences between others: they do not say which "
            "knobs matter"
        )
    chance = max(0.0, float(shares[half:].max()))
    return Importance(tuple(influences), chance, explained, len(configs), why_not)


def _codes(knob: Knob, values: Sequence[Value]) -> _Ints:
    """The values as numbers from 0 on, in the order of the choices, those left out that do not
    occur."""
    seen = [v for v in knob.choices if v in set(values)]
    return np.asarray([seen.index(v) for v in values], np.intp)


@dataclass(frozen=True, slots=True)
class _Table:
    """What trees are grown from."""

    x: _Ints
    """A row per configuration, a column per knob or shadow."""
    ordered: _Bools
    """Of each column: whether numbers next to each other are alike."""
    y: _Floats

    @property
    def bins(self) -> int:
        """Numbers in a column, at most."""
        return int(self.x.max()) + 1


def _permuted(table: _Table, rng: np.random.Generator) -> tuple[_Floats, float]:
    """Mean growth of the out-of-bag error per column, and that error of the forest."""
    x, y = table.x, table.y
    rows, width = x.shape
    losses = np.zeros(width)
    sums, votes = np.zeros(rows), np.zeros(rows)
    for _ in range(_TREES):
        bag = rng.integers(0, rows, rows)
        out = np.setdiff1d(np.arange(rows), bag)
        tree = _grow(table, bag, rng)
        used = sorted(set(tree.column) - {-1})
        # All shuffled versions pass through the tree at once.
        stacked = np.tile(x[out], (len(used) + 1, 1))
        for place, column in enumerate(used, 1):
            stacked[place * len(out) :][: len(out), column] = x[rng.permutation(out), column]
        found = tree.predict(stacked).reshape(len(used) + 1, len(out))
        errors = np.mean((found - y[out]) ** 2, axis=1)
        losses[used] += errors[1:] - errors[0]
        sums[out] += found[0]
        votes[out] += 1
    voted = votes > 0
    error = float(np.mean((sums[voted] / votes[voted] - y[voted]) ** 2))
    return losses / _TREES, error


@dataclass(frozen=True, slots=True)
class _Tree:
    """Nodes as parallel lists; a leaf has column -1."""

    column: list[int]
    left: list[_Bools]
    """Which numbers go to the first of the nodes below."""
    below: list[tuple[int, int]]
    value: list[float]

    def add(self, value: float) -> int:
        """A new leaf."""
        self.column.append(-1)
        self.left.append(np.zeros(0, np.bool_))
        self.below.append((-1, -1))
        self.value.append(value)
        return len(self.column) - 1

    def predict(self, x: _Ints) -> _Floats:
        result = np.empty(len(x))
        pending: list[tuple[int, _Ints]] = [(0, np.arange(len(x)))]
        while pending:
            node, rows = pending.pop()
            if self.column[node] < 0:
                result[rows] = self.value[node]
                continue
            first = self.left[node][x[rows, self.column[node]]]
            pending += zip(self.below[node], (rows[first], rows[~first]), strict=True)
        return result


def _grow(table: _Table, bag: _Ints, rng: np.random.Generator) -> _Tree:
    """A regression tree, each of whose splits is the best in a third of the columns."""
    x, y = table.x, table.y
    tree = _Tree([], [], [], [])
    tries = math.ceil(x.shape[1] / 3)
    pending = [(tree.add(float(np.mean(y[bag]))), bag)]
    while pending:
        node, rows = pending.pop()
        columns = rng.permutation(x.shape[1])[:tries]
        found = _split(table, rows, columns)
        if found is None:
            continue
        tree.column[node], tree.left[node] = found
        first = found[1][x[rows, found[0]]]
        parts = rows[first], rows[~first]
        low, high = (tree.add(float(np.mean(y[part]))) for part in parts)
        tree.below[node] = low, high
        pending += [(low, parts[0]), (high, parts[1])]
    return tree


def _split(table: _Table, rows: _Ints, columns: _Ints) -> tuple[int, _Bools] | None:
    """The column, and which of its numbers go one way, that leave the least squared error; None if
    nothing can be split. Where numbers have no order, they are put in that of their means, in
    which the best of all ways to divide them is found (Fisher 1958)."""
    if len(rows) < 2 * _LEAF:
        return None
    bins, tries = table.bins, len(columns)
    y = table.y[rows] - table.y[rows].mean()
    flat = (table.x[np.ix_(rows, columns)] + bins * np.arange(tries)).ravel()
    counts = np.bincount(flat, minlength=tries * bins).reshape(tries, bins)
    sums = np.bincount(flat, np.repeat(y, tries), tries * bins).reshape(tries, bins)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    keys = np.where(table.ordered[columns][:, None], np.arange(bins), means)
    order = np.argsort(keys, axis=1, kind="stable")
    left = np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)[:, :-1]
    sum_left = np.cumsum(np.take_along_axis(sums, order, axis=1), axis=1)[:, :-1]
    right = len(rows) - left
    # The error falls by this; the mean was taken off, so that the right sum is minus the left.
    allowed = (left >= _LEAF) & (right >= _LEAF)
    gain = np.where(allowed, sum_left**2 * (1 / np.maximum(left, 1) + 1 / np.maximum(right, 1)), 0)
    if not gain.size or gain.max() <= 1e-12:
        return None
    column, place = np.unravel_index(int(np.argmax(gain)), gain.shape)
    goes_left = np.zeros(bins, np.bool_)
    goes_left[order[column, : place + 1]] = True
    return int(columns[column]), goes_left
