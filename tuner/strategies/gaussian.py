"""A Gaussian process over configurations: what is likely, and how unlikely anything else is.

The kernel has two parts, both Matérn 5/2 with one length per knob: a mean over the knobs, each for
itself, from which little data says much, and one on the distance over all knobs, for what they do
together. Lengths and noise are those under which the results are likeliest, given a prior that is
the same for every space.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcl.codegen.options.knobs import Knob, odd_part
from tcl.tuner.space.search_space import Config, ConfigSpace

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Features:
    """The choices of configurations, one for each knob that has a choice, and a table of how far
    apart the choices of a knob are.

    Knobs with an order have a scale from 0 to 1; two choices of one without are alike, at
    distance 0, or not, at distance 1. Numbers not all of which are powers of two count as two
    knobs, the second one for how far they are from these: powers of two are often fast, and what
    lies between them slow. A knob has few choices: whatever depends on a distance is computed for
    the table, and looked up for configurations.
    """

    def __init__(self, space: ConfigSpace) -> None:
        free = [i for i, k in enumerate(space.knobs) if k.cardinality > 1]
        odd = [i for i in free if space.knobs[i].ordered and any(_odd_parts(space.knobs[i]))]
        self._free = [*free, *odd]
        knobs = [space.knobs[i] for i in self._free]
        squares = [_squares(space.knobs[i]) for i in free]
        squares += [_apart(_odd_parts(space.knobs[i])) for i in odd]
        self._positions = [{choice: i for i, choice in enumerate(k.choices)} for k in knobs]
        counts = np.array([k.cardinality for k in knobs], np.intp)
        self._counts = counts
        self._starts = np.concatenate([np.zeros(1, np.intp), np.cumsum(counts * counts)])[:-1]
        self.knobs: Places = np.repeat(np.arange(len(knobs)), counts * counts)
        """Whose each entry of the table is."""
        self.table: Floats = np.concatenate([np.zeros(0), *(s.ravel() for s in squares)])
        """Squared distances of any two choices of a knob, knob by knob."""

    @property
    def count(self) -> int:
        """Of knobs, those that count as two twice."""
        return len(self._free)

    def rows(self, configs: Sequence[Config]) -> Places:
        """The positions of the choices, one row for each configuration."""
        pairs = tuple(zip(self._free, self._positions, strict=True))
        rows = [[of[config[i]] for i, of in pairs] for config in configs]
        return np.array(rows, np.intp).reshape(len(configs), self.count)

    def pairs(self, a: Places, b: Places) -> Places:
        """Where in the table the distances are of each row of ``a`` to the same row of ``b``: for
        each knob, for each row."""
        return np.ascontiguousarray((self._starts + a * self._counts + b).T)

    def across(self, a: Places, b: Places) -> Places:
        """The same of each row of ``a`` to each of ``b``: for each knob, for both."""
        first = (self._starts + a * self._counts).T
        found: Places = first[:, :, None] + b.T[:, None, :]
        return found

    def distances(self, a: Places, b: Places) -> Floats:
        """Squared distances over all knobs."""
        found: Floats = self.table.take(self.across(a, b)).sum(axis=0)
        return found


def _squares(knob: Knob) -> Floats:
    if not knob.ordered:
        return 1 - np.eye(knob.cardinality)
    return _apart([knob.encode(choice)[0] for choice in knob.choices])


def _odd_parts(knob: Knob) -> list[float]:
    return [odd_part(choice) for choice in knob.choices]


def _apart(codes: Sequence[float]) -> Floats:
    """Squared distances, of which the largest is 1."""
    scaled = np.array(codes) / ((max(codes) - min(codes)) or 1.0)
    found: Floats = (scaled[:, None] - scaled[None, :]) ** 2
    return found


_LENGTH = 0.55
"""The length that is expected of each of ``_KNOBS`` knobs; with more knobs it is longer, as far
as points are further apart."""
_KNOBS = 6
_NOISE = 0.1
"""Expected noise, as a share of the spread of the results."""
_ALONE = 0.6
"""Share of the part in which each knob is for itself."""
_JITTER = 1e-6
_AT_ONCE = 65536
"""Distances that are looked up together: as many as stay in a cache."""
_STEPS = 5
_FIRST_STEP = 0.2
_LONGEST_STEP = 0.8


class GaussianProcess:
    """Learns numbers by configuration; ``fit`` goes on from the lengths it found before."""

    def __init__(self, features: Features) -> None:
        self._features = features
        count = features.count
        self._prior = np.full(count + 1, np.log(_LENGTH) + 0.5 * np.log(max(count, 1) / _KNOBS))
        self._prior[-1] = np.log(_NOISE)
        self._logs = self._prior.copy()
        """Of the lengths, and of the noise."""

    def fit(self, rows: Places, values: Floats) -> None:
        """Find lengths and noise that make these results likely, by steps whose signs are those
        of the gradient; ``values`` have mean 0 and spread 1."""
        first, second = np.triu_indices(len(rows), 1)
        pairs = self._features.pairs(rows[first], rows[second])
        logs = best = self._logs
        least, slope = self._loss(logs, pairs, values)
        steps = np.full(len(logs), _FIRST_STEP)
        for _ in range(_STEPS):
            logs = logs - np.sign(slope) * steps
            loss, new = self._loss(logs, pairs, values)
            if loss < least:
                least, best = loss, logs
            steps = np.where(new * slope > 0, np.minimum(steps * 1.3, _LONGEST_STEP), steps * 0.5)
            slope = new
        self._logs = best

    def _loss(self, logs: Floats, pairs: Places, values: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood and the prior, and its gradient. ``pairs``: of
        all results, where their distances are in the table."""
        noise, count = np.exp(2 * logs[-1]), len(values)
        tables = _Tables(self._features, logs[:-1])
        apart, alone = tables.apart.take(pairs), tables.alone.take(pairs)
        together, fall_together = _matern(apart.sum(axis=0))
        kernel = np.zeros((count, count))
        above = np.triu_indices(count, 1)
        kernel[above] = _ALONE * alone.mean(axis=0) + (1 - _ALONE) * together
        kernel += kernel.T
        kernel[np.diag_indices(count)] = 1 + noise + _JITTER
        lower = cholesky(kernel)
        inverted = inverse(lower)
        alpha = np.einsum("ij,j->i", inverted, values)
        scale = max(float(np.einsum("i,i->", values, alpha)) / count, 1e-9)
        off = logs - self._prior
        loss = 0.5 * count * np.log(scale) + np.log(np.diag(lower)).sum() + 0.5 * (off * off).sum()
        pull = 0.5 * (inverted - alpha[:, None] * alpha[None, :] / scale)
        # A longer length brings points closer: the distance falls at twice its own rate. And each
        # pair is there twice.
        fall = _ALONE / len(pairs) * tables.fall.take(pairs) + (1 - _ALONE) * fall_together
        slope = off.copy()
        slope[:-1] += 4 * np.einsum("pm,pm,m->p", apart, fall, pull[above])
        slope[-1] += 2 * noise * np.trace(pull)
        return float(loss), slope

    def posterior(self, rows: Places, values: Floats, at: Places) -> Posterior:
        """What ``values`` measured at ``rows`` say about other places."""
        tables = _Tables(self._features, self._logs[:-1])
        noise = float(np.exp(2 * self._logs[-1])) + _JITTER
        covariance = tables.covariance(rows, rows) + noise * np.eye(len(values))
        lower = cholesky(covariance)
        half = solve(lower, tables.covariance(rows, at))
        told = solve(lower, values[:, None])[:, 0]
        scale = max(float(np.einsum("i,i->", told, told)) / len(values), 1e-9)
        return Posterior(tables, at, half, np.einsum("k,kq->q", told, half), scale, noise)

    def unmeasured(self, mean: Floats, scale: float, at: Places) -> Posterior:
        """What is expected of places before anything is measured: ``mean``, which is known from
        elsewhere, with variance ``scale``."""
        tables, noise = _Tables(self._features, self._logs[:-1]), float(np.exp(2 * self._logs[-1]))
        return Posterior(tables, at, np.zeros((0, len(at))), mean, scale, noise + _JITTER)


class _Tables:
    """The parts of the kernel for any two choices of a knob."""

    def __init__(self, features: Features, logs: Floats) -> None:
        self._features = features
        self.apart = 5 * np.exp(-2 * logs)[features.knobs] * features.table
        """Squared distances by length, times five."""
        self.alone, self.fall = _matern(self.apart)

    def covariance(self, a: Places, b: Places) -> Floats:
        """Of each row of ``a`` with each of ``b``."""
        features, found = self._features, np.zeros((len(a), len(b)))
        some = max(1, _AT_ONCE // max(1, features.count * len(b)))
        for first in range(0, len(a), some):
            places = features.across(a[first : first + some], b)
            alone = self.alone.take(places).sum(axis=0)
            together = _matern(self.apart.take(places).sum(axis=0))[0]
            found[first : first + some] = _ALONE / features.count * alone + (1 - _ALONE) * together
        return found


def _matern(apart: Floats) -> tuple[Floats, Floats]:
    """The kernel by squared distance (times five), and how fast it falls with that."""
    far = np.sqrt(apart)
    near = np.exp(-far)
    fall = (1 + far) * near
    return fall + apart / 3 * near, fall / 6


class Posterior:
    """Expected values at some places and their uncertainty, which shrinks around those that are
    ``chosen`` to be measured: what is chosen together is not all the same."""

    def __init__(
        self,
        tables: _Tables,
        at: Places,
        half: Floats,
        mean: Floats,
        scale: float,
        noise: float,
    ) -> None:
        self._tables, self._at = tables, at
        self._half = half
        self._noise = noise
        self._variance = np.maximum(1 - np.einsum("kq,kq->q", half, half), 1e-9)
        self._scale = scale
        self.mean = mean
        """By place."""

    @property
    def spread(self) -> Floats:
        """Standard deviation, by place."""
        found: Floats = np.sqrt(self._scale * self._variance)
        return found

    def chosen(self, place: int) -> None:
        """Reckon with a measurement at this place, whatever it will be."""
        known = np.einsum("k,kq->q", self._half[:, place], self._half)
        shared = self._tables.covariance(self._at[place : place + 1], self._at)[0]
        column = (shared - known) / np.sqrt(self._variance[place] + self._noise)
        self._variance = np.maximum(self._variance - column * column, 1e-9)
        self._half = np.vstack([self._half, column])


# The little linear algebra that this needs, written with ``einsum``, which sums in one fixed order:
# the routines of a BLAS give other last digits with another number of threads, and a search has to
# be the same wherever it is repeated.


def cholesky(matrix: Floats) -> Floats:
    """The lower triangle L with L Lᵀ = ``matrix``, which is symmetric and positive definite."""
    lower = np.tril(matrix)
    for j in range(len(lower)):
        lower[j:, j] -= np.einsum("ik,k->i", lower[j:, :j], lower[j, :j])
        lower[j:, j] /= np.sqrt(lower[j, j])
    return lower


def solve(lower: Floats, right: Floats) -> Floats:
    """X with L X = ``right``."""
    found = right.copy()
    for j in range(len(lower)):
        found[j] -= np.einsum("k,kq->q", lower[j, :j], found[:j])
        found[j] /= lower[j, j]
    return found


def inverse(lower: Floats) -> Floats:
    """The inverse of L Lᵀ."""
    half = solve(lower, np.eye(len(lower)))
    found: Floats = np.einsum("ki,kj->ij", half, half)
    return found
