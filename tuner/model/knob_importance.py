"""Which knobs made a difference in a search.

Boosted trees are trained on the logarithms of the measured times of three quarters of the
configurations, four times. A knob's importance is the permutation importance of Breiman (*Random
Forests*, 2001): what the squared error on the last quarter grows by when the knob's values are
shuffled among them, here as a share of the variance of the logarithms. Trees also see knobs that
matter only together, which a knob's own correlation with time does not show. Each knob has a
shadow, a shuffled copy that the trees may use as well: what the best shadow reaches by chance, a
knob has to exceed to count (Kursa and Rudnicki, *Feature selection with the Boruta package*, 2010).

The measurements are those of a search, which looks more closely where kernels are fast: the result
says what mattered there, and not in the space as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.options.knobs import Knob, Value
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.space.search_space import Config

_Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

FEWEST = 40
"""Measured configurations below which nothing is said."""
LEAST_EXPLAINED = 0.1
"""Share of the variance that trees have to predict for their view of knobs to mean anything."""
_MOST = 600
"""Configurations that are looked at at most, drawn at random."""
_FOLDS = 4
_BOOSTING = Boosting(members=1, trees=120, depth=5, rate=0.15, columns=0.3, rows=0.7, ridge=1.0)


@dataclass(frozen=True, slots=True)
class Influence:
    knob: Knob
    share: float
    """What is lost of the explained variance without it; about 0 for one without influence."""
    values: int
    """Different values among the measured configurations."""


@dataclass(frozen=True, slots=True)
class Importance:
    influences: tuple[Influence, ...]
    """The most important first; empty if ``why_not``."""
    chance: float
    """What a knob without influence may reach by chance."""
    explained: float
    """Share of the variance of the logarithm of time that trees predict of configurations that they
    were not trained on."""
    samples: int
    """Configurations that were looked at."""
    why_not: str = ""
    """Why nothing can be said; a sentence."""


def importance(
    knobs: Sequence[Knob], configs: Sequence[Config], times: Sequence[float], seed: int = 0
) -> Importance:
    """The influence of each knob on the times, in seconds, of these configurations."""
    count = len(configs)
    if count < FEWEST:
        return Importance(
            (),
            0.0,
            0.0,
            count,
            f"{count} measured configurations are too few; at least {FEWEST} are needed",
        )
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(count)[:_MOST])
    configs = [configs[i] for i in chosen]
    target = np.log(np.asarray([times[i] for i in chosen], np.float64))
    variance = float(np.var(target))
    varied = [k for k in range(len(knobs)) if len({c[k] for c in configs}) > 1]
    if variance < 1e-12 or not varied:
        return Importance((), 0.0, 0.0, len(configs), "all configurations took the same time")
    folds = rng.permutation(len(configs)) % _FOLDS
    losses, error = np.zeros(2 * len(varied)), 0.0
    for fold in range(_FOLDS):
        out = folds == fold
        columns = [_codes(knobs[k], [c[k] for c in configs], target, ~out) for k in varied]
        shadows = [rng.permutation(column) for column in columns]
        own_losses, own_error = _tested(np.stack(columns + shadows, axis=1), target, out, rng)
        losses, error = losses + own_losses / _FOLDS, error + own_error / _FOLDS
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
            f"{max(0.0, explained):.0%} of the differences between other configurations: these "
            "measurements do not show which knobs matter"
        )
    chance = max(0.0, float(shares[half:].max()))
    return Importance(tuple(influences), chance, explained, len(configs), why_not)


def _codes(knob: Knob, values: Sequence[Value], target: Floats, trained: _Bools) -> Floats:
    """The values as numbers that trees can cut in two: in the order of the choices, or, where they
    have none, of the mean times that are ``trained`` on, in which the best of all ways to divide
    them is found (Fisher 1958)."""
    found = np.array([knob.choices.index(v) for v in values])
    if knob.ordered:
        return found.astype(np.float64)
    counts = np.bincount(found[trained], minlength=len(knob.choices))
    sums = np.bincount(found[trained], target[trained], len(knob.choices))
    means: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), target[trained].mean())
    ordered: Floats = means[found]
    return ordered


def _tested(
    rows: Floats, target: Floats, out: _Bools, rng: np.random.Generator
) -> tuple[Floats, float]:
    """By how much the squared error grows on rows that are left ``out`` of what is trained on if a
    column of theirs is shuffled, for each column; and that error."""
    count = int((~out).sum())
    centre = float(target[~out].mean())
    same = np.zeros(count, np.int64)
    data = Examples(rows[~out], target[~out] - centre, same, np.ones(count))
    forest, tested = train(data, _BOOSTING), rows[out]

    def prediction_error(rows: Floats) -> float:
        return float(np.mean((forest.predict(rows)[0] + centre - target[out]) ** 2))

    plain, losses = prediction_error(tested), np.zeros(rows.shape[1])
    for column in set(forest.features.ravel().tolist()):
        shuffled = tested.copy()
        shuffled[:, column] = rng.permutation(tested[:, column])
        losses[column] = prediction_error(shuffled) - plain
    return losses, plain
