"""Trees as arrays: every node of a level asks the same question, so that a leaf's number is made of
the answers, and a thousand candidates go through hundreds of trees in about a millisecond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcl.tuner.model.loops import Floats, Ints

MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Forest:
    """Some members of some trees each: a member's prediction is the sum of its trees'."""

    members: tuple[int, ...]
    """Trees of each."""
    features: Ints
    """T x K: the column that each level asks about."""
    thresholds: Floats
    """T x K: whether it is above this."""
    leaves: Floats
    """T x 2^K: level k's answer is bit k of the leaf's number."""

    def predict(self, rows: Floats) -> Floats:
        """M x N: what each member expects of each row (N x F)."""
        found = np.zeros((len(self.members), len(rows)))
        if not self.leaves.size or not len(rows):
            return found
        depth = self.features.shape[1]
        pairs = np.stack([self.features.ravel(), self.thresholds.ravel()])
        asked, places = np.unique(pairs, axis=1, return_inverse=True)
        columns = np.ascontiguousarray(rows.T)[asked[0].astype(np.intp)]
        answers = (columns > asked[1][:, None]).view(np.uint8)
        questions = places.reshape(-1, depth)
        leaf = np.zeros((len(self.leaves), len(rows)), np.uint8)
        for level in range(depth):
            leaf |= answers[questions[:, level]] << np.uint8(level)
        first = 0
        for member, trees in enumerate(self.members):
            for tree in range(first, first + trees):
                # One tree after the other: sums do not depend on how many rows there are.
                found[member] += self.leaves[tree].take(leaf[tree])
            first += trees
        return found
