"""How long tuning takes, about: from how it went before on this machine, else by a rule.

The rule is, for each candidate: a base of 0.1 s to compile it and 0.2 s to measure it, what the
calls need beyond that at two operations a nanosecond, and 4 ns per byte that is compared; for each
search, what comes before and after it. What the cache knows of these very sizes takes the place of
all of it but the last, what it knows of other sizes takes the place of the base.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.lower import lower
from tcl.grammar.sized import SizedDef
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.run.cost_estimate import pace, typical_pace

_BASE = 0.3
_MEASURE = 0.2
_CALLS = 4
"""Of a kernel whose calls are long."""
_PER_OPERATION = 0.5e-9
_PER_BYTE = 4e-9
_AROUND = 8.0
"""Seconds: workers that start, the finals, the comparison afterwards."""
_PLAIN_CALLS = 25
"""Of plain code, without options that were tuned: the reference, and in the comparison."""
_PER_PLAIN_OPERATION = 1e-9


@dataclass(frozen=True, slots=True)
class PointCost:
    """What tuning one point costs."""

    candidate: float
    """Seconds for each."""
    around: float
    """Seconds, whatever is left to measure."""
    by_experience: bool
    """Whether earlier searches have said so."""

    def seconds(self, candidates: int, limit: float | None) -> float:
        """For so many candidates, within the time limit, if there is one."""
        search = candidates * self.candidate
        return self.around + (search if limit is None else min(search, limit))


class Estimate:
    """Estimates for points, with what one cache knows."""

    def __init__(self, cache: TuningCache) -> None:
        self._cache = cache
        self._bases: dict[str, float | None] = {}
        """By device."""

    def of(self, sized: SizedDef, key: CacheKey) -> PointCost:
        """What tuning a def costs."""
        cost = cost_of(lower(sized))
        around = _AROUND + _PLAIN_CALLS * _PER_PLAIN_OPERATION * cost.operations
        own = pace(self._cache, key)
        if own is not None:
            return PointCost(own, around, True)
        if key.device not in self._bases:
            self._bases[key.device] = typical_pace(self._cache, key.device)
        base = self._bases[key.device]
        calls = _CALLS * _PER_OPERATION * cost.operations
        by_size = max(0.0, calls - _MEASURE) + _PER_BYTE * cost.moved
        return PointCost((base or _BASE) + by_size, around, base is not None)
