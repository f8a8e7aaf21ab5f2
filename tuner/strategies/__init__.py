"""Search strategies, one per file, behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import MappingProxyType

from tcl.common.errors import OptionsError
from tcl.tuner.space.search_space import Config, ConfigSpace
from tcl.tuner.strategies.evolution import Genetic
from tcl.tuner.strategies.screened import Prior, Screened
from tcl.tuner.strategies.strategy import Exhaustive, RandomSearch, SearchSettings, Strategy

_Make = Callable[[ConfigSpace, Random, SearchSettings, Sequence[Config]], Strategy]

STRATEGIES: MappingProxyType[str, _Make] = MappingProxyType(
    {
        "exhaustive": Exhaustive,
        "genetic": Genetic,
        "random": RandomSearch,
        "screened": Screened,
    }
)
"""Name → strategy."""


def make_strategy(
    name: str,
    space: ConfigSpace,
    rng: Random,
    settings: SearchSettings,
    seeds: Sequence[Config] = (),
    prior: Prior | None = None,
) -> Strategy:
    """The strategy of that name. ``seeds`` open the first generation; ``prior``, a model of other
    measurements, chooses the rest of it.

    ``OptionsError`` for an unknown name, and for a strategy that has no use for a prior.
    """
    if name not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise OptionsError(f"there is no search strategy {name!r}; choose one of: {known}")
    if prior is None:
        return STRATEGIES[name](space, rng, settings, seeds)
    if name != "screened":
        raise OptionsError(f"the strategy {name} cannot start from a model; screened can")
    return Screened(space, rng, settings, seeds, prior)
