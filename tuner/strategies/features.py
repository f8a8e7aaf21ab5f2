"""Configurations as numbers, knob by knob, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcl.tuner.knobs import Knob
from tcl.tuner.space import Config, Space

Floats = NDArray[np.float64]


class Features:
    """The coordinates of configurations, one for each knob with a choice.

    Knobs with an order have a scale from 0 to 1; two choices of one without are alike, at
    distance 0, or not, at distance 1.
    """

    def __init__(self, space: Space) -> None:
        self._free = [i for i, k in enumerate(space.knobs) if k.cardinality > 1]
        knobs = [space.knobs[i] for i in self._free]
        self._tables = [_coordinates(k) for k in knobs]
        self._ordered = [k.ordered for k in knobs]

    @property
    def count(self) -> int:
        """Of knobs."""
        return len(self._free)

    def rows(self, configs: Sequence[Config]) -> Floats:
        """Coordinates, one row for each configuration."""
        pairs = tuple(zip(self._free, self._tables, strict=True))
        rows = [[table[config[i]] for i, table in pairs] for config in configs]
        return np.array(rows, np.float64).reshape(len(configs), self.count)

    def pairs(self, a: Floats, b: Floats) -> Floats:
        """Squared distances along each knob, of each row of ``a`` to the same row of ``b``."""
        return np.array([self._square(a[:, k] - b[:, k], k) for k in range(self.count)])

    def squares(self, a: Floats, b: Floats, knob: int) -> Floats:
        """Squared distances along one knob, of each row of ``a`` to each of ``b``."""
        return self._square(a[:, knob, None] - b[None, :, knob], knob)

    def _square(self, difference: Floats, knob: int) -> Floats:
        if self._ordered[knob]:
            return difference * difference
        unlike: Floats = (difference != 0).astype(np.float64)
        return unlike

    def distances(self, a: Floats, b: Floats, weights: Floats) -> Floats:
        """Squared distances, with a weight for each knob."""
        total = np.zeros((len(a), len(b)))
        for knob in range(self.count):
            total += weights[knob] * self.squares(a, b, knob)
        return total


def _coordinates(knob: Knob) -> dict[int | str, float]:
    if not knob.ordered:
        return {choice: float(i) for i, choice in enumerate(knob.choices)}
    codes = [knob.encode(choice)[0] for choice in knob.choices]
    low, span = min(codes), (max(codes) - min(codes)) or 1.0
    return {choice: (code - low) / span for choice, code in zip(knob.choices, codes, strict=True)}
