"""What is known of a space before anything in it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.features import Floats

_TRUSTED = 4
"""Results that the prior's word weighs as much as."""


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


def slope(expected: Floats, logs: Floats) -> float:
    """How far measured logarithms go with the expected ones: 1 if as far, 0 if not at all, or the
    other way. The slope of least squares, with a few results more that have 1."""
    x, y = expected - expected.mean(), logs - logs.mean()
    square = float(np.einsum("n,n->", x, x))
    fitted = float(np.einsum("n,n->", x, y)) / square if square else 1.0
    return max(0.0, (_TRUSTED + len(logs) * fitted) / (_TRUSTED + len(logs)))
