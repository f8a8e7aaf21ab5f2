"""What the cache knows that is not quite what was asked for: other sizes, another version.

Options that were best for near sizes are good ones to begin a search with, and often good enough
without one. Nothing here is exact, and whoever uses it has to say so, and to check that the
options apply.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from tcl.common.dataclass import dataclass
from tcl.common.errors import TclError
from tcl.tuner.cache import ranking
from tcl.tuner.cache.fingerprint import fields, remoteness
from tcl.tuner.cache.key import INGREDIENTS, CacheKey, Difference, differences
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import Summary, TuningCache
from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.space.search_space import Config

_LOOKED_AT = 4
"""Results of near sizes that are looked at for each one that is wanted: not all fit."""
_SEARCHED = 20
"""Candidates of a search of whose default something can be said."""


@dataclass(frozen=True, slots=True)
class Near:
    """Options that were measured for a key like the one asked for."""

    record: Record
    key: CacheKey
    """What they were measured for."""
    rank: int
    """Among those for that key, from 1."""
    distance: float
    """Between the sizes: the sum, over all dimensions of all inputs, of how many times one is
    twice the other."""


def distance(key: CacheKey, other: CacheKey) -> float:
    """Between the sizes of two keys, see ``Near``; infinite unless their inputs are of the same
    ranks."""
    if [len(i.shape) for i in key.inputs] != [len(i.shape) for i in other.inputs]:
        return math.inf
    pairs = (
        pair
        for here, there in zip(key.inputs, other.inputs, strict=True)
        for pair in zip(here.shape, there.shape, strict=True)
    )
    return sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in pairs)


def near_keys(
    cache: TuningCache,
    key: CacheKey,
    *,
    versions: bool = False,
    sizes: bool = True,
    relax: Collection[str] = (),
) -> list[CacheKey]:
    """The keys of other sizes and strides of the same def, with the same element types, on the same
    device with as many threads, the nearest sizes first. The key itself, in this version, is left
    out.

    ``versions``: also those of other versions of the code generator, after their like of this one.
    ``sizes``: false for the same sizes and strides alone. ``relax``: fields in which the device may
    be another one (``fingerprint.FIELDS``); what is nearer comes first.
    """

    def nearness(other: CacheKey) -> tuple[object, ...]:
        pairs = zip(key.inputs, other.inputs, strict=True)
        strides = sum(a.row_major != b.row_major for a, b in pairs)
        device = remoteness(key.device, other.device)
        version = other.codegen_version != key.codegen_version
        return distance(key, other), strides, device, version

    alike = [
        other
        for other in cache.keys(key)
        if other != key
        and _nature(other, relax) == _nature(key, relax)
        and (sizes or other.inputs == key.inputs)
        and (versions or other.codegen_version == key.codegen_version)
        and math.isfinite(distance(key, other))
    ]
    return sorted(alike, key=nearness)


def nearby(
    cache: TuningCache,
    key: CacheKey,
    *,
    each: int = 3,
    versions: bool = False,
    sizes: bool = True,
    relax: Collection[str] = (),
) -> Iterator[Near]:
    """The best options for ``near_keys``, ``each`` of every key, and no options twice."""
    seen: set[str] = set()
    for other in near_keys(cache, key, versions=versions, sizes=sizes, relax=relax):
        for rank, record in enumerate(cache.top(other, each), 1):
            if record.options not in seen:
                seen.add(record.options)
                yield Near(record, other, rank, distance(key, other))


@dataclass(frozen=True, slots=True)
class RacedOptions:
    """What finals say of the options for a key."""

    key: CacheKey
    best: str | None
    """The best options, as JSON."""
    searched: bool
    """Whether enough others were measured for their not being better to say something."""
    gains: Mapping[str, float]
    """How many times as fast as the default each was, of those timed in turns with it."""


def raced(cache: TuningCache, key: CacheKey, default: str) -> RacedOptions:
    """What finals say of a key. ``default``: the untuned default's options, as JSON."""
    records, _ = cache.deciding(key)
    ranked = ranking.ranked(records)
    best = ranked[0].options if ranked else None
    gains: dict[str, float] = {}
    for heat in ranking.heats(records):
        times = {record.options: record.time for record in heat if record.time}
        if default in times:
            for options, time in times.items():
                gains.setdefault(options, times[default] / time)
    return RacedOptions(key, best, len(ranked) >= _SEARCHED, gains)


def seeds(cache: TuningCache, key: CacheKey, own: int = 10) -> Iterator[Near]:
    """Options to begin a search with, the most promising first, each once: the ``own`` best for
    this very key, then those for the nearest sizes and for other versions. Whether they apply is
    for the caller to check; it may stop at any time."""
    seen: set[str] = set()
    for rank, record in enumerate(cache.top(key, own), 1):
        seen.add(record.options)
        yield Near(record, key, rank, 0.0)
    for near in nearby(cache, key, versions=True):
        if near.record.options not in seen:
            seen.add(near.record.options)
            yield near


def opening_configs(
    cache: TuningCache, key: CacheKey, options: OptionSpace[OptionsT], wanted: int
) -> list[Config]:
    """At most so many configurations to begin a search with; see ``seeds``."""
    found: dict[Config, None] = {}
    for near in islice(seeds(cache, key, wanted), _LOOKED_AT * wanted):
        try:
            config = options.from_options(options.from_json(near.record.options))
        except TclError:  # they do not fit these sizes, or are of another version
            continue
        if config is not None:
            found[config] = None
        if len(found) >= wanted:
            break
    return list(found)


def _nature(key: CacheKey, relax: Collection[str]) -> tuple[object, ...]:
    """What near keys have in common. ``relax``: fields of the device that they need not."""
    dtypes = tuple(i.dtype for i in key.inputs)
    device = [value for name, value in fields(key.device).items() if name not in relax]
    return key.definition, key.backend, dtypes, device


@dataclass(frozen=True, slots=True)
class Answer:
    """Why the cache has, or has not, what was asked for."""

    exact: Summary | None
    """What it has of exactly this key."""
    nearest: Summary | None
    """Of another one, that which differs the least; None if there is none."""
    differences: tuple[Difference, ...]
    """In what the nearest differs."""


def explain(cache: TuningCache, key: CacheKey, entry: str) -> Answer:
    """Look a key up, and find the one that is nearest to it. ``entry`` is the def's name: of
    other defs, one that is called the same is the nearest, as it may be an older text of it."""
    known = cache.list()
    exact = next((s for s in known if s.key == key), None)

    def nearness(summary: Summary) -> tuple[object, ...]:
        found = {d.ingredient for d in differences(key, summary.key)}
        weights = [name in found for name in INGREDIENTS]
        other_name = "def text" in found and summary.entry != entry
        return other_name, "def text" in found, len(found), *weights, distance(key, summary.key)

    others = sorted((s for s in known if s.key != key), key=nearness)
    if not others:
        return Answer(exact, None, ())
    return Answer(exact, others[0], differences(key, others[0].key))
