"""What is known of a space before anything in it is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.features import Floats

_TRUSTED = 4
"""Results that outweigh a prior's word for what is fast."""
_AGREES = 0.5
"""A prior that agrees less with what was measured is not believed at all. Else it would lead to the
same places again and again, as far as results of other places are missing that speak against it."""
_WORTH = 60
"""Results that are worth as much as a prior. It knows something of the space, and nothing of the
device: where it is wrong, what it adds is in the way of those who know better."""


class Expectation(Protocol):
    """What a model expects of configurations, one after the other (N each)."""

    @property
    def logs(self) -> Floats:
        """Natural logarithms of their times, up to a number that they have in common."""

    @property
    def spread(self) -> Floats:
        """Standard deviations of ``logs``."""


class Prior(Protocol):
    """A model that was made of other measurements, as of another device or other sizes."""

    def predict(self, configs: Sequence[Config]) -> Expectation:
        """Equal configurations are expected to take equal times, whatever they are asked with, but
        for what all have in common."""


class NamedPrior(Prior, Protocol):
    """One that a search which is resumed can be found to have begun with."""

    @property
    def identity(self) -> str:
        """What stands for its contents: another model has another one."""

    @property
    def title(self) -> str:
        """How it is called."""


def agreement(expected: Floats, logs: Floats) -> float:
    """From 0 to 1: how far measured logarithms of times have the order that a prior expects, by
    Spearman's coefficient of correlation with a few results more that agree."""
    x, y = _ranks(expected), _ranks(logs)
    scale = math.sqrt(np.einsum("n,n->", x, x) * np.einsum("n,n->", y, y))
    # Of results without an order the first one tells nothing, and the others speak against it.
    agreeing = len(logs) * float(np.einsum("n,n->", x, y)) / scale if scale else 1.0
    return max(0.0, (_TRUSTED + agreeing) / (_TRUSTED + len(logs)))


def _ranks(values: Floats) -> Floats:
    """Places in their order, those of equals as one, from the middle."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (counts.cumsum() - (counts + len(values)) / 2)[places]
    return ranks


def believed(expected: Floats, logs: Floats) -> float:
    """By how much of a prior's expectations to go: 1 before anything is measured, less the less
    they agree with what was, and the more of that there is."""
    agreeing = agreement(expected, logs)
    return agreeing * _WORTH / (_WORTH + len(logs)) if agreeing >= _AGREES else 0.0
