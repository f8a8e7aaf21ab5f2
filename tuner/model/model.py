"""A model of measured candidates: how long each takes, as compared with the heuristic default."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcl.tuner.model.loops import Floats, Ints
from tcl.tuner.model.schema import Schema

MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Forest:
    """Some members of some trees each: a member's prediction is the sum of its trees'. Every node
    of a level asks the same question, so that a leaf's number is made of the answers, and a
    thousand candidates go through hundreds of trees in about a millisecond."""

    members: tuple[int, ...]
    """Trees of each."""
    features: Ints
    """T x K: the column that each level asks about."""
    thresholds: Floats
    """T x K: whether it is above this."""
    leaves: Floats
    """T x 2^K: level k's answer is bit k of the leaf's number."""
    _asked: tuple[NDArray[np.intp], Floats, NDArray[np.intp]] = field(init=False, repr=False)
    """Column and threshold of each different question, and T x K: which each level asks."""

    def __post_init__(self) -> None:
        pairs = np.stack([self.features.ravel(), self.thresholds.ravel()])
        asked, places = np.unique(pairs, axis=1, return_inverse=True)
        found = asked[0].astype(np.intp), asked[1], places.reshape(self.features.shape)
        object.__setattr__(self, "_asked", found)

    def predict(self, rows: Floats) -> Floats:
        """M x N: what each member expects of each row (N x F)."""
        found = np.zeros((len(self.members), len(rows)))
        if not self.leaves.size or not len(rows):
            return found
        columns, thresholds, questions = self._asked
        values = np.ascontiguousarray(rows.T)
        answers = (values[columns] > thresholds[:, None]).view(np.uint8)
        leaf = np.zeros((len(self.leaves), len(rows)), np.uint8)
        for level in reversed(range(questions.shape[1])):
            leaf += leaf  # in a fourth of the time that a shift takes
            leaf += answers.take(questions[:, level], axis=0)
        places = leaf.astype(np.intp)
        first = 0
        for sums, trees in zip(found, self.members, strict=True):
            for tree in range(first, first + trees):
                # One tree after the other: sums do not depend on how many rows there are.
                sums += self.leaves[tree].take(places[tree], mode="clip")
            first += trees
        return found


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
