"""What is known of the rounding of an output."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tcl.common.dataclass import dataclass

_Array = npt.NDArray[Any]
_Positions = npt.NDArray[np.int64]


ERRORS = 16.0
"""Times the reference's own error that a result may differ by. What the depth of accumulation
allows sums and products of the suite is 15 to 45 times theirs."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """How far the reference's rounding may take an output."""

    error: float = 0.0
    """Absolute, of nearly all elements; 0 if it is not known."""
    places: _Positions = field(default_factory=lambda: np.empty(0, np.int64))
    """Elements that rounding decides about, as positions in row-major order, ascending: of floats,
    one in ten at most."""
    off: _Array = field(default_factory=lambda: np.empty(0))
    """By how much each of these may differ."""
    most: int = 1 << 62
    """How many of them may differ. If most integers are such elements, few of them do."""

    def times(self, number: int) -> Rounding:
        """Of what is so many times as far off."""
        return Rounding(number * self.error, self.places, number * self.off, number * self.most)

    def explains(self, positions: _Positions, differences: _Array) -> npt.NDArray[np.bool_]:
        """Of elements, and how far they are off, whether that is rounding which decides."""
        if not self.places.size:
            return np.zeros(positions.shape, np.bool_)
        at = np.searchsorted(self.places, positions) % self.places.size
        # What is infinite, or no number, in one of the two may be anything.
        near = np.isinf(self.off[at]) | (differences <= self.off[at])
        return np.asarray((self.places[at] == positions) & near, np.bool_)


UNKNOWN = Rounding()
