"""How fast earlier searches went, as the tuning cache tells: what a search will cost."""

from __future__ import annotations

import itertools
from statistics import median

from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache

_BREAK = 60.0
"""Seconds. What came so long after the result before it came after a break."""
_ENOUGH = 8
"""Results that say something about those to come."""
_KEYS = 20
"""Keys that are asked, those used last."""


def pace(cache: TuningCache, key: CacheKey) -> float | None:
    """Seconds from one result of a search for this key to the next; None if too few are known."""
    moments: dict[str, list[float]] = {}
    for record in cache.history(key):
        if record.heat is None:
            moments.setdefault(record.run, []).append(record.when)
    gaps = [
        later - sooner
        for when in moments.values()
        for sooner, later in itertools.pairwise(sorted(when))
        if later - sooner < _BREAK
    ]
    # The mean: how much of a search is quick, and how much is slow, is part of its pace.
    return sum(gaps) / len(gaps) if len(gaps) >= _ENOUGH - 1 else None


def typical_pace(cache: TuningCache, device: str) -> float | None:
    """The median of this for the keys of a device that were used last; None if none says."""
    keys = [s.key for s in cache.list() if s.key.device == device and s.measured >= _ENOUGH]
    found = (pace(cache, key) for key in keys[:_KEYS])
    known = [seconds for seconds in found if seconds is not None]
    return median(known) if known else None
