"""Candidates worth ranking: some from anywhere in the space, more from around the default."""

from __future__ import annotations

from random import Random

from tcl.codegen.options.options import MappingOptions
from tcl.tuner.space.program_space import ProgramSpace
from tcl.tuner.space.search_space import Config

_ANYWHERE = 0.3
"""The part that is drawn from anywhere."""
_STEPS = (1, 1, 2, 2, 3, 4)
"""How many knobs the others change."""
_TRIES = 4


def candidates(
    space: ProgramSpace, default: MappingOptions, count: int, seed: int = 0
) -> tuple[MappingOptions, ...]:
    """Up to ``count`` different valid options, the default first. Equal arguments give equal
    candidates."""
    rng, knobs = Random(seed), space.space.knobs
    known = space.from_options(default)
    start = known if known is not None else space.space.default
    found: dict[Config, None] = {}
    for _ in range(_TRIES * count):
        if len(found) >= count - 1:
            break
        config: Config | None = start
        if rng.random() < _ANYWHERE or not knobs:
            config = space.space.sample(rng)
        else:
            for _ in range(rng.choice(_STEPS)):
                k = rng.randrange(len(knobs))
                assert config is not None
                moved = (*config[:k], knobs[k].mutate(config[k], rng), *config[k + 1 :])
                config = moved if space.space.valid(moved) else config
        if config is not None and config != start:
            found[config] = None
    return (default, *(space.to_options(c) for c in found))
