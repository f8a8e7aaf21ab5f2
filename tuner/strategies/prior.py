"""What is known of a space before anything in it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.features import Floats

_TRUSTED = 4
"""Results that outweigh a prior's word for how far times differ."""
_WORTH = 20
"""Results that are worth as much as a prior. It knows something of the space, and nothing of the
device: where it is wrong, what it adds is in the way of those who know better."""


class Expected(Protocol):
    """What a model expects of configurations, one after the other (N each)."""

    @property
    def logs(self) -> Floats:
        """Natural logarithms of their times, up to a number that they have in common."""

    @property
    def spread(self) -> Floats:
        """Standard deviations of ``logs``."""


class Prior(Protocol):
    """A model that was made of other measurements, as of another device or other sizes."""

    def predict(self, configs: Sequence[Config]) -> Expected:
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


def believed(expected: Floats, logs: Floats) -> float:
    """By how much of a prior's expectations to go: 1 before anything is measured, less the less
    measured logarithms go along with the expected ones, and the more there are."""
    x, y = expected - expected.mean(), logs - logs.mean()
    square, count = float(np.einsum("n,n->", x, x)), len(logs)
    # Least squares, with a few results more that agree.
    slope = float(np.einsum("n,n->", x, y)) / square if square else 1.0
    agreeing = max(0.0, (_TRUSTED + count * slope) / (_TRUSTED + count))
    return agreeing * _WORTH / (_WORTH + count)
