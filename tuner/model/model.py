"""A model of measured candidates: how long each takes, as compared with the heuristic default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tcl.tuner.model.forest import Forest
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.schema import Schema

_CAUTION = 1.0
"""How many times members' disagreement counts against a candidate."""
GAIN = 0.03
"""What a candidate has to promise over the heuristic default to be preferred to it."""
_MARGIN = 0.05
"""The part of a feature's range by which a problem may lie outside of it."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model expects of candidates of one problem, one after the other (N each)."""

    logs: Floats
    """Natural logarithms of their times, up to a number that they have in common."""
    spread: Floats
    """Standard deviation of the members' opinions."""

    @property
    def cautious(self) -> Floats:
        """``logs``, with what is uncertain thought to be slower."""
        return self.logs + _CAUTION * self.spread

    @property
    def best(self) -> int:
        """The place of the candidate that is expected to be fastest."""
        return int(self.cautious.argmin())

    def worth(self, candidate: int, default: int) -> bool:
        """Whether a candidate promises enough to be preferred to the default."""
        return 1 - math.exp(float(self.cautious[candidate] - self.logs[default])) >= GAIN


@dataclass(frozen=True, slots=True)
class Model:
    """What was learned."""

    schema: Schema[Any]
    """The features that it was learned from."""
    forest: Forest
    low: Floats
    """F: the least value of each feature that was learned from."""
    high: Floats
    """F: the largest."""

    def predict_rows(self, rows: Floats) -> Prediction:
        """Of features, as ``Subject.extract`` gives them."""
        members = self.forest.predict(rows)
        # Members may differ in what they say of all candidates, which does not matter to a choice.
        members -= members.mean(axis=1, keepdims=True)
        return Prediction(members.mean(axis=0), members.std(axis=0))

    def unseen(self, row: Floats) -> str | None:
        """The name of a feature of the problem or the device that lies outside of all that the
        model has learned from; None if there is none."""
        margin = _MARGIN * (self.high - self.low)
        outside = (row < self.low - margin) | (row > self.high + margin)
        names = self.schema.names
        return next((name for name in self.schema.common if outside[names.index(name)]), None)
