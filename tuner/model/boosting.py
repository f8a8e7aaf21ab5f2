"""Trains a forest on differences between candidates of the same problem.

Gradient boosting for squared errors (Friedman 2001) with symmetric trees (as in CatBoost): the
whole level of a tree asks one question. What a problem's candidates have in common is taken off
before every tree: choosing needs none of it, and a model of few problems would learn little else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tcl.tuner.model.loops import Floats, Ints
from tcl.tuner.model.model import Forest

_BINS = 48


@dataclass(frozen=True, slots=True)
class Boosting:
    """How a forest is trained; equal settings and data give equal forests."""

    members: int = 4
    """Each leaves out other problems: where they disagree, little is known."""
    trees: int = 80
    """Of each member."""
    depth: int = 6
    rate: float = 0.08
    """The part of what a tree has learned that is used."""
    columns: float = 0.3
    """The part of the features that a tree may ask about."""
    rows: float = 0.5
    """The part of the candidates that a tree learns from."""
    kept: float = 0.75
    """The part of the problems that a member learns from."""
    ridge: float = 3.0
    """Candidates with nothing to be learned that each leaf has besides its own."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Examples:
    """Measured candidates, in rows."""

    rows: Floats
    """N x F: features."""
    logs: Floats
    """N: what is learned."""
    problems: Ints
    """N: which def and sizes, on which device, counted from 0."""
    weights: Floats
    """N: how much each counts."""


def train(examples: Examples, settings: Boosting, before: Forest | None = None) -> Forest:
    """A forest; ``before``: one with as many members, to whose trees others are added."""
    rng = np.random.default_rng(settings.seed)
    edges, binned = _binned(examples.rows)
    problems = np.unique(examples.problems)
    old = before.predict(examples.rows) if before is not None else None
    trees: list[list[_Tree]] = []
    for member in range(settings.members):
        wanted = max(1, round(settings.kept * len(problems)))
        chosen = rng.choice(problems, wanted, replace=False) if settings.members > 1 else problems
        part = np.flatnonzero(np.isin(examples.problems, chosen))
        left = examples.logs[part] - (0.0 if old is None else old[member][part])
        weights = examples.weights[part]
        own = np.unique(examples.problems[part], return_inverse=True)[1]
        trees.append(_boosted(left, weights, own, binned[:, part], edges, settings, rng))
    return _append_trees(trees, settings.depth, before)


@dataclass(frozen=True, slots=True)
class _Tree:
    features: list[int]
    thresholds: list[float]
    leaves: Floats


def _binned(rows: Floats) -> tuple[list[Floats], NDArray[np.uint8]]:
    """Thresholds of each feature, halfway between neighbours of about equal numbers of rows, and
    F x N: how many of them each value is above."""
    edges = []
    binned = np.zeros(rows.T.shape, np.uint8)
    for k, column in enumerate(rows.T):
        values = np.unique(column)
        if len(values) > _BINS:
            places = np.linspace(0, len(column) - 1, _BINS + 1)[1:-1].astype(np.intp)
            values = np.unique(np.sort(column)[places])
        edges.append((values[1:] + values[:-1]) / 2)
        binned[k] = np.searchsorted(edges[-1], column, side="left")
    return edges, binned


def _centred(values: Floats, problems: Ints, weights: Floats) -> Floats:
    """Without the mean of each problem."""
    total = np.bincount(problems, weights * values)
    found: Floats = values - (total / np.maximum(np.bincount(problems, weights), 1e-12))[problems]
    return found


def _boosted(
    left: Floats,
    weights: Floats,
    problems: Ints,
    binned: NDArray[np.uint8],
    edges: list[Floats],
    settings: Boosting,
    rng: np.random.Generator,
) -> list[_Tree]:
    asked = [k for k, e in enumerate(edges) if len(e)]
    trees = []
    for _ in range(settings.trees if asked else 0):
        left = _centred(left, problems, weights)
        few = max(1, round(settings.columns * len(asked)))
        columns = np.sort(rng.choice(asked, few, replace=False))
        drawn = weights
        if settings.rows < 1:
            drawn = np.where(rng.random(len(left)) < settings.rows, weights, 0.0)
        tree, leaf = _grown(left, drawn, binned, columns, edges, settings)
        trees.append(tree)
        left = left - tree.leaves[leaf]
    return trees


def _grown(
    left: Floats,
    weights: Floats,
    binned: NDArray[np.uint8],
    columns: Ints,
    edges: list[Floats],
    settings: Boosting,
) -> tuple[_Tree, Ints]:
    """A tree, and the leaf of each row."""
    leaf = np.zeros(len(left), np.int64)
    features, thresholds = [], []
    sums, counts = weights * left, np.array([len(e) for e in edges])
    rows = np.flatnonzero(weights)
    for level in range(settings.depth):
        args = sums, weights, rows, leaf, 1 << level, binned, columns, counts, settings.ridge
        gains = _gains()(*args)
        place, edge = divmod(int(gains.argmax()), _BINS)
        k = int(columns[place])
        features.append(k)
        thresholds.append(float(edges[k][edge]))
        leaf |= (binned[k] > edge).astype(np.int64) << level
    most = 1 << settings.depth
    alike = np.bincount(leaf, weights, most) + settings.ridge
    leaves = settings.rate * np.bincount(leaf, sums, most) / alike
    return _Tree(features, thresholds, leaves), leaf


@cache
def _gains() -> Callable[..., Floats]:
    """A compiled function: C x ``_BINS``, how much smaller the squared errors become if all leaves
    are cut at an edge of a column; -1 where a column has no such edge."""
    import numba  # takes a while, and training alone needs it

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
    def gains(
        sums: Floats,
        weights: Floats,
        rows: Ints,
        leaf: Ints,
        leaves: int,
        binned: NDArray[np.uint8],
        columns: Ints,
        counts: Ints,
        ridge: float,
    ) -> Floats:
        found = np.full((len(columns), _BINS), -1.0)
        for place in range(len(columns)):
            column = columns[place]
            total, count = np.zeros((leaves, _BINS)), np.zeros((leaves, _BINS))
            for row in rows:
                total[leaf[row], binned[column, row]] += sums[row]
                count[leaf[row], binned[column, row]] += weights[row]
            found[place, : counts[column]] = 0.0
            for k in range(leaves):
                whole, every = total[k].sum(), count[k].sum()
                below, fewer = 0.0, 0.0
                for edge in range(counts[column]):
                    below += total[k, edge]
                    fewer += count[k, edge]
                    above, more = whole - below, every - fewer
                    found[place, edge] += below**2 / (fewer + ridge) + above**2 / (more + ridge)
        return found

    found: Callable[..., Floats] = gains
    return found


def _append_trees(trees: list[list[_Tree]], depth: int, before: Forest | None) -> Forest:
    """New trees of each member after those that there were."""
    old: list[list[_Tree]] = [[] for _ in trees]
    if before is not None:
        each = zip(before.features, before.thresholds, before.leaves, strict=True)
        known = (_Tree(f.tolist(), t.tolist(), leaves) for f, t, leaves in each)
        old = [list(islice(known, count)) for count in before.members]
    whole = [own + new for own, new in zip(old, trees, strict=True)]
    every = [tree for member in whole for tree in member]
    return Forest(
        tuple(map(len, whole)),
        np.array([t.features for t in every], np.int64).reshape(-1, depth),
        np.array([t.thresholds for t in every], np.float64).reshape(-1, depth),
        np.array([t.leaves for t in every], np.float64).reshape(-1, 1 << depth),
    )
