"""What many searches together say: who wins how often, by how much, and what less choice costs.

Of a key with the candidates o, of which o* won, a candidate *keeps* the share

    kept(o) = min(1, t(o*) / t(o))

of the winner's speed, t being seconds a call by comparable measurements (``KeyInsight.ratio``); it
*loses* the rest. A set of candidates keeps what its best one keeps. All means over keys are given
twice (``Mean``): plain, every key counting the same, and by time, weighted with the seconds that a
call of the winner takes,

    mean = sum over keys of t(o*) x / sum over keys of t(o*),

so that kernels that take long count more. A set that is small enough is found greedily: the
candidate that adds the most comes first, then the one that adds the most to that, and so on. That
is not always the smallest set, but covers as much as one of its size could to a share of
1 - 1/e at least (Nemhauser, Wolsey and Fisher, *An analysis of approximations for maximizing
submodular set functions*, 1978).

What a search did not measure counts as lost. So losses are upper bounds: a search that had less
choice would have looked more closely at what was left.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tcl.codegen.options.kinds import Sizes
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import OPTIONS
from tcl.tuner.cache.insight import KeyInsight
from tcl.tuner.model.knob_importance import importance

_Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]

OPEN = "open"
"""The value of a decision that options leave to their preset."""


class Mean(NamedTuple):
    """A mean over keys."""

    plain: float
    by_time: float


class Margins(NamedTuple):
    """How much longer than the winner others take, as shares of its time."""

    least: float
    median: float
    most: float
    mean: Mean


class Rate(NamedTuple):
    value: Value
    tried: int
    """Keys of which a correct candidate has it."""
    wins: int
    """Keys whose winner has it."""
    rate: Mean
    """Share of the keys that it wins."""
    lost: Mean
    """What the candidates that have it lose together, over the keys where there are any."""


class Pool(NamedTuple):
    """Sets that grow by what adds the most: what each keeps, the empty set first."""

    plain: tuple[float, ...]
    by_time: tuple[float, ...]

    def enough(self, share: float) -> tuple[int | None, ...]:
        """How many keep this share, plain and by time; None if all together do not."""
        return tuple(
            next((n for n, kept in enumerate(curve) if kept >= share - 1e-12), None)
            for curve in self
        )


class OptionDecision(NamedTuple):
    """One that options make, such as ``nests.0.tile.1``."""

    name: str
    rates: tuple[Rate, ...]
    """Of each value, the one that wins most first."""
    pool: Pool
    importance: float | None
    """What a model of the times loses without it, see ``knob_importance``; None where nobody asked,
    or where that says nothing, or no more than chance."""


class KeyGroup:
    """Keys that are looked at together: a row for each of their candidates."""

    def __init__(
        self, keys: Sequence[KeyInsight], entry: str = "", backend: str = "", device: str = ""
    ) -> None:
        self.keys = keys
        self.entry, self.backend, self.device = entry, backend, device
        rows = [(k, rank, r) for k, each in enumerate(keys) for rank, r in enumerate(each.ranked)]
        self.options = [record.options for _, _, record in rows]
        best = np.array([each.best for each in keys], np.float64)
        self.seconds = float(best.sum())
        """That a call of each key's winner takes, together."""
        self._weights = np.full(len(keys), 1 / len(keys)), best / best.sum()
        self._key = np.array([k for k, _, _ in rows], np.intp)
        ratios = np.array([keys[k].ratio(record) for k, _, record in rows], np.float64)
        self._kept = 1.0 / np.maximum(1.0, ratios)
        self._wins = np.array([rank == 0 for _, rank, _ in rows])

    def _mean(self, values: _Floats, of: _Ints | slice = slice(None)) -> Mean:
        """Of a value per key, or of those of some keys."""
        return Mean(*(float(np.average(values, weights=w[of])) for w in self._weights))

    def margins(self, found: Sequence[float | None]) -> Margins | None:
        """Of a margin for each key; None if there is none."""
        of = np.array([k for k, each in enumerate(found) if each is not None], np.intp)
        values = np.array([each for each in found if each is not None], np.float64)
        if not len(of):
            return None
        least, median, most = np.quantile(values, (0.0, 0.5, 1.0)).tolist()
        return Margins(least, median, most, self._mean(values, of))

    @property
    def over_second(self) -> Margins | None:
        return self.margins([each.over_second for each in self.keys])

    @property
    def over_default(self) -> Margins | None:
        """Those over the untuned default."""
        return self.margins([each.over_default for each in self.keys])

    @property
    def default_wins(self) -> Mean:
        """The share of keys in which the untuned default won."""
        return self._mean(np.array([float(k.default is k.ranked[0]) for k in self.keys]))

    @functools.cached_property
    def pool(self) -> Pool:
        """Of whole sets of options. Without any of them a key has its default; where that was not
        measured, its slowest."""
        fallback = np.ones(len(self.keys))
        np.minimum.at(fallback, self._key, self._kept)
        for k, each in enumerate(self.keys):
            if each.over_default is not None:
                fallback[k] = 1.0 / max(1.0, 1.0 + each.over_default)
        return self._pool(self.options, fallback)

    def _pool(self, chosen: Sequence[Hashable], start: _Floats) -> Pool:
        """Of what rows have in common; ``start``: what every key keeps with none of it."""
        count = len(self.keys)
        pairs, number = np.unique(_numbered(chosen)[1] * count + self._key, return_inverse=True)
        kept = np.zeros(len(pairs))  # of a choice on a key: the best candidate's
        np.maximum.at(kept, number, self._kept)
        choices, keys = np.divmod(pairs, count)
        return Pool(*(_greedy(choices, keys, kept, start, w) for w in self._weights))

    def rates(self, chosen: Sequence[Value]) -> tuple[Rate, ...]:
        """Of each value, one per row; the one that wins most comes first."""
        values, number = _numbered(chosen)
        kept = np.full((len(values), len(self.keys)), -1.0)
        np.maximum.at(kept, (number, self._key), self._kept)
        won = np.zeros_like(kept)
        won[number[self._wins], self._key[self._wins]] = 1.0
        rates = []
        for value, own, wins in zip(values, kept, won, strict=True):
            tried = np.flatnonzero(own >= 0)
            lost = self._mean(1.0 - own[tried], tried)
            rates.append(Rate(value, len(tried), int(wins.sum()), self._mean(wins), lost))
        return tuple(sorted(rates, key=lambda r: (-r.wins, -r.rate.by_time, str(r.value))))

    @functools.cached_property
    def presets(self) -> tuple[Rate, ...]:
        return self.rates([decisions(options)["preset"] for options in self.options])

    def decisions(self, *, important: bool) -> tuple[OptionDecision, ...]:
        """Those that candidates differ in, the one whose loss is largest when it is fixed first."""
        made = [decisions(options) for options in self.options]
        names = dict.fromkeys(name for each in made for name in each if name != "preset")
        columns = {name: [each.get(name, OPEN) for each in made] for name in names}
        columns = {name: values for name, values in columns.items() if len(set(values)) > 1}
        shares = self._importance(columns) if important else {}
        nothing = np.zeros(len(self.keys))
        found = [
            OptionDecision(name, self.rates(values), self._pool(values, nothing), shares.get(name))
            for name, values in columns.items()
        ]
        return tuple(sorted(found, key=lambda d: -d.rates[0].lost.by_time))

    def _importance(self, columns: Mapping[str, Sequence[Value]]) -> dict[str, float]:
        """Of each decision that stands out from chance. The time of a key's winner is 1, so that
        keys can be looked at together."""
        knobs = []
        for name, values in columns.items():
            ordered = all(isinstance(value, int) for value in values)
            seen = sorted(set(values), key=None if ordered else str)
            knobs.append(Knob(name, tuple(seen), seen[0], ordered))
        found = importance(
            knobs, list(zip(*columns.values(), strict=True)), (1 / self._kept).tolist()
        )
        return {i.knob.name: i.share for i in found.influences if i.share > found.chance}


class CacheAnalysis(NamedTuple):
    groups: tuple[KeyGroup, ...]
    """By def and device."""
    together: KeyGroup
    """All keys; decisions mean other things in other defs."""
    left_out: int
    """Keys with fewer than two correct candidates, which say nothing about a choice."""


def analyse(found: Sequence[KeyInsight]) -> CacheAnalysis | None:
    """What these keys say together; None if none of them has two candidates to choose from."""
    keys = [each for each in found if len(each.ranked) > 1 and each.best]
    if not keys:
        return None
    groups: dict[tuple[str, str, str], list[KeyInsight]] = {}
    for each in keys:
        groups.setdefault((each.entry, each.key.backend, each.key.device), []).append(each)
    of_defs = tuple(KeyGroup(own, *name) for name, own in groups.items())
    return CacheAnalysis(of_defs, KeyGroup(keys), len(found) - len(keys))


def _greedy(
    choices: _Ints, keys: _Ints, kept: _Floats, start: _Floats, weights: _Floats
) -> tuple[float, ...]:
    """What is kept with one choice more each time, the one that adds the most. Per pair of a choice
    and a key: what it keeps."""
    found = [float(weights @ start)]
    so_far = start.copy()
    while True:
        gains = np.bincount(choices, weights[keys] * np.maximum(0.0, kept - so_far[keys]))
        chosen = int(np.argmax(gains))
        if gains[chosen] <= 1e-12:
            return tuple(found)
        own = choices == chosen
        so_far[keys[own]] = np.maximum(so_far[keys[own]], kept[own])
        found.append(float(weights @ so_far))


def _numbered(values: Sequence[Hashable]) -> tuple[list[Any], _Ints]:
    """The different values, in the order in which they come up, and each value's place there."""
    places: dict[Hashable, int] = {}
    numbers = [places.setdefault(value, len(places)) for value in values]
    return list(places), np.array(numbers, np.intp)


@functools.lru_cache(maxsize=1 << 16)
def decisions(options: str) -> Mapping[str, Value]:
    """What options decide, by name. ``preset`` is the preset's name, with ``+`` where it is not
    alone; ``nests.0.tile.1`` one of the sizes that nest 0 has; lists that mean something as a
    whole, such as orders, have one value. What are no options of ours have nothing but a preset,
    which is called ``?``."""
    try:
        data = json.loads(options)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return {"preset": "?"}
    nests = data.get("nests")
    places = {"default": data.get("default")}
    places |= {
        f"nests.{k}": nest for k, nest in enumerate(nests if isinstance(nests, list) else ())
    }
    made: dict[str, Value] = {}
    for place, choices in places.items():
        for name, value in choices.items() if isinstance(choices, dict) else ():
            sizes = name in OPTIONS and isinstance(OPTIONS[name].kind, Sizes)
            if sizes and isinstance(value, list):
                made |= {f"{place}.{name}.{k}": _plain_value(each) for k, each in enumerate(value)}
            else:
                made[f"{place}.{name}"] = _plain_value(value)
    if data.get("merge") is not None:
        made["merge"] = _plain_value(data["merge"])
    preset = data.get("preset", "naive")
    name = preset if isinstance(preset, str) else "?"
    return {"preset": f"{name} +" if made else name, **made}


def _plain_value(value: object) -> Value:
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
