"""The first generation: what is known to be good, and configurations that are far apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.features import Features
from tcl.tuner.strategies.history import Memory

_DRAWN = 4
"""Of so many random configurations the one is taken that is furthest from all others. With many
more, nothing but the corners of the space would be tried."""


def known(memory: Memory, seeds: Sequence[Config]) -> list[Config]:
    """Those seeds that are valid and new, which they now are not."""
    return [c for c in seeds if memory.space.valid(c) and memory.add(c)]


def opening(memory: Memory, seeds: Sequence[Config], count: int) -> list[Config]:
    """The seeds, brought to ``count`` by configurations spread over the space."""
    features = Features(memory.space)
    found = known(memory, seeds)
    while len(found) < count:
        drawn = [memory.space.sample(memory.rng) for _ in range(_DRAWN)]
        new = [c for c in drawn if c is not None and c not in memory.seen]
        if not new:
            return memory.fill(found, count)
        others = features.rows(list(memory.seen))
        far = features.distances(features.rows(new), others).min(axis=1, initial=np.inf)
        config = new[int(np.argmax(far))]
        memory.add(config)
        found.append(config)
    return found
