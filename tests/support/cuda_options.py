"""Random options for a GPU that some def accepts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

_KEYS = (
    *("tile", "order", "inner_order", "vectorize", "register", "stage", "chunk", "fuse", "split"),
    *("threads", "buffers", "mma", "chunk_order", "nests"),
)


def random_gpu_options(
    rng: random.Random,
    sized: SizedDef,
    device: GpuProfile,
    refused: Counter[str] | None = None,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> MappingOptions:
    """Options that ``sized`` can have: drawn without looking at what is allowed, then what is
    refused is left out until nothing is. Reasons are counted in ``refused``."""
    nests = lower(sized).nests
    preset = rng.choice(PRESETS)
    default = NestOptions(fuse=rng.choice((None, None, True, False)))
    chosen = MappingOptions(preset, default, merge=rng.choice((None, None, True, False)))
    for position, nest in enumerate(nests):
        if rng.random() < 0.9:
            chosen = chosen.with_nest(position, _drawn(rng, nest))
    for _ in range(200):
        try:
            schedule(sized, chosen, device, layouts)
            return chosen
        except OptionsError as error:
            key, blamed = _blamed(str(error), [n.name for n in nests], chosen)
            if refused is not None:
                refused[key] += 1
            chosen = _weaker(rng, chosen, key, blamed)
    raise AssertionError(f"nothing is left of {chosen}, and it is refused")


def space_options(rng: random.Random, sized: SizedDef, device: GpuProfile) -> MappingOptions | None:
    """A point of the space that is searched."""
    space = GpuMappingSpace(lower(sized, gpu_layouts(sized)), device)
    config = space.space.sample(rng)
    return None if config is None else space.to_options(config)


def _drawn(rng: random.Random, nest: ir.Nest) -> NestOptions:
    """Anything, mostly such that sizes go together."""
    rank = len(nest.dims)
    if not rank:
        return NestOptions()
    threads, register = [0] * rank, [0] * rank
    for k in rng.sample(range(rank), rank):
        reduced = nest.dims[k].reduction
        if rng.random() < (0.3 if reduced else 0.7):
            powers, others = (2, 4, 8, 16, 32, 64), (3, 5, 6, 7, 12, 33, 48)
            size = rng.choice(powers if rng.random() < 0.7 else others)
            if rng.random() < 0.8:  # else some have nothing to do
                size = min(size, 2 * nest.dims[k].extent)
            if prod(max(1, t) for t in threads) * size <= 512:
                threads[k] = size
        if rng.random() < 0.4:
            register[k] = rng.choice((1, 2, 2, 3, 4, 4))
    vector = (rng.choice((-1, *range(rank))), rng.choice((1, 1, 2, 4, 4, 8)))
    results = [k for k in range(rank) if not nest.dims[k].reduction]
    chunk, tile = [0] * len(results), [0] * rank
    for k in range(rank):
        lane = vector[0] == k or (vector[0] < 0 and results and k == results[-1])
        unit = max(1, threads[k]) * max(1, register[k]) * (vector[1] if lane else 1)
        points = rng.choice((0, unit, unit, unit * 2, unit * 3, unit * 4, rng.randint(1, 40)))
        if points > 4 * nest.dims[k].extent:
            points = unit
        if nest.dims[k].reduction:
            tile[k] = points
        else:
            chunk[results.index(k)] = points
    split = [0] * rank
    reductions = [k for k in range(rank) if nest.dims[k].reduction]
    if reductions and rng.random() < 0.2:
        split[rng.choice(reductions)] = rng.randint(2, 7)
    reads = len(operands(nest.point))
    staged = rng.random() < 0.6
    return NestOptions(
        tile=tuple(tile),
        order=tuple(rng.sample(range(rank), rank)) if rng.random() < 0.3 else None,
        inner_order=tuple(rng.sample(range(rank), rank)) if rng.random() < 0.2 else None,
        vectorize=vector,
        register=tuple(register),
        stage=tuple(rng.choice((-1, 1, 2, 2, 3, 4)) for _ in range(reads)) if staged else None,
        chunk=tuple(chunk),
        fuse=rng.choice((None, True, False)),
        threads=tuple(threads),
        split=tuple(split) if any(split) else rng.choice((None, ())),
        buffers=rng.choice((None, 1, 2, 3, 4)),
        chunk_order=tuple(rng.sample(range(rank), rank)) if rng.random() < 0.3 else None,
    )


def _blamed(sentence: str, nests: list[str], chosen: MappingOptions) -> tuple[str, int | None]:
    """The option and the nest that a refusal names; it is one sentence."""
    key, colon, rest = sentence.partition(": ")
    assert colon and key in _KEYS, f"no option is named: {sentence}\n{chosen}"
    assert "\n" not in sentence and rest, sentence
    named = rest.partition("nest ")[2].partition(":")[0].partition(",")[0]
    return key, nests.index(named) if named in nests else None


def _weaker(
    rng: random.Random, chosen: MappingOptions, key: str, position: int | None
) -> MappingOptions:
    """Options without what was refused."""
    own = NestOptions() if position is None else chosen.own(position)
    if key == "fuse" and position is not None and own.fuse is not False:
        return chosen.with_nest(position, replace(own, fuse=False))
    if position is None or own == NestOptions():  # what others chose does not fit together
        filled = [k for k in range(len(chosen.nests)) if chosen.own(k) != NestOptions()]
        if filled:
            return chosen.with_nest(rng.choice(filled), NestOptions())
        return MappingOptions("naive")
    if key == "stage" and own.stage:
        levels = list(own.stage)
        k = rng.choice([k for k, level in enumerate(levels) if level >= 0] or [0])
        levels[k] = -1 if levels[k] <= 1 or rng.random() < 0.3 else levels[k] - 1
        return chosen.with_nest(position, replace(own, stage=tuple(levels)))
    name = "tile" if key == "point" else key
    if getattr(own, name, None) is not None:
        return chosen.with_nest(position, replace(own, **{name: None}))
    given = [k for k in own.as_dict() if k != name]
    return chosen.with_nest(position, replace(own, **{rng.choice(given): None}))
