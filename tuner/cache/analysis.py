"""What many searches together say: who wins how often, by how much, and what less choice costs.

Of a key with the candidates o, of which o* won, a candidate *keeps* the share

    kept(o) = min(1, t(o*) / t(o))

of the winner's speed, t being seconds a call, taken alike (``KeyInsight.ratio``); it *loses* the
rest. A set of candidates keeps what
its best one keeps. All means over keys are given twice: plain, every key counting the same, and by
time, weighted with the seconds that a call of the winner takes,

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
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.options.kinds import Sizes
from tcl.codegen.options.nest_options import OPTIONS
from tcl.tuner.cache.insight import KeyInsight
from tcl.tuner.model.knob_importance import Importance, importance
from tcl.tuner.space.knobs import Knob, Value

_Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]

OPEN = "open"
"""The value of a decision that options leave to their preset."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over keys."""

    plain: float
    by_time: float


@dataclass(frozen=True, slots=True)
class Margins:
    """How much longer than the winner others take, as shares of its time."""

    keys: int
    """With something to compare."""
    least: float
    median: float
    most: float
    mean: Mean


@dataclass(frozen=True, slots=True)
class Rate:
    """A value of a decision."""

    value: Value
    tried: int
    """Keys of which a correct candidate has it."""
    wins: int
    """Keys whose winner has it."""
    rate: Mean
    """Share of the keys that it wins."""
    lost: Mean
    """What the candidates that have it lose together, over the keys where there are any."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Sets of candidates or values that grow by what adds the most: what each keeps, the smallest
    set first."""

    start: Mean
    """What is kept with none of them."""
    plain: tuple[float, ...]
    by_time: tuple[float, ...]

    def enough(self, share: float) -> tuple[int | None, int | None]:
        """How many keep this share, plain and by time; None if all together do not."""
        return _reach(self.start.plain, self.plain, share), _reach(
            self.start.by_time, self.by_time, share
        )


def _reach(start: float, kept: Sequence[float], share: float) -> int | None:
    return next((n for n, each in enumerate((start, *kept)) if each >= share - 1e-12), None)


@dataclass(frozen=True, slots=True)
class Decision:
    """One that options make, such as ``nests.0.tile.1``."""

    name: str
    rates: tuple[Rate, ...]
    """Of each value, the one that wins most first."""
    values: Pool
    """Of values."""
    importance: float | None
    """What a model of the times loses without it, see ``knob_importance``; None where nobody asked,
    or where that says nothing, or no more than chance."""

    @property
    def fixed(self) -> Rate:
        """The value that wins most."""
        return self.rates[0]


@dataclass(frozen=True, slots=True)
class Group:
    """Keys that are looked at together."""

    entry: str
    """The def's name; empty for all of them."""
    backend: str
    device: str
    """With its threads."""
    keys: int
    candidates: int
    """Correct ones of all keys."""
    seconds: float
    """That a call of each key's winner takes, together."""
    over_second: Margins | None
    over_default: Margins | None
    default_wins: Mean
    presets: tuple[Rate, ...]
    decisions: tuple[Decision, ...]
    """Those that candidates differ in, the one whose loss is largest when it is fixed first."""
    options: Pool
    """Of whole sets of options, besides the untuned default."""
    different: int
    """Different options among the candidates."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Of a cache."""

    groups: tuple[Group, ...]
    """By def and device."""
    together: Group
    """All keys; decisions mean other things in other defs, and are left out."""
    left_out: int
    """Keys with fewer than two correct candidates, which say nothing about a choice."""


def analyse(found: Sequence[KeyInsight], *, important: bool = False) -> Analysis | None:
    """What these keys say together; None if none of them has two candidates to choose from.
    ``important``: also which decisions mattered, which takes some seconds a group."""
    keys = [each for each in found if len(each.ranked) > 1 and each.best]
    if not keys:
        return None
    groups: dict[tuple[str, str, str], list[KeyInsight]] = {}
    for each in keys:
        name = (each.entry, each.key.backend, each.key.device)
        groups.setdefault(name, []).append(each)
    return Analysis(
        tuple(_group(*name, own, important=important) for name, own in groups.items()),
        _group("", "", "", keys, important=False),
        len(found) - len(keys),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A row per candidate of a key."""

    weights: tuple[_Floats, _Floats]
    """Per key, plain and by time; the sum is 1."""
    key: _Ints
    kept: _Floats
    wins: np.ndarray[Any, np.dtype[np.bool_]]
    options: list[str]

    @classmethod
    def of(cls, keys: Sequence[KeyInsight]) -> _Table:
        best = np.array([each.best for each in keys], np.float64)
        rows = [(k, rank, r) for k, each in enumerate(keys) for rank, r in enumerate(each.ranked)]
        key = np.array([k for k, _, _ in rows], np.intp)
        ratios = np.array([keys[k].ratio(record) for k, _, record in rows], np.float64)
        return cls(
            (np.full(len(keys), 1 / len(keys)), best / best.sum()),
            key,
            1.0 / np.maximum(1.0, ratios),
            np.array([rank == 0 for _, rank, _ in rows]),
            [record.options for _, _, record in rows],
        )

    def mean(self, values: _Floats, of: _Ints | None = None) -> Mean:
        """Of a value per key, or of those of some keys."""
        chosen = slice(None) if of is None else of
        return Mean(*(float(np.average(values, weights=w[chosen])) for w in self.weights))

    def pool(self, choice: _Ints, start: _Floats) -> Pool:
        """Sets of the choices, a number per row, that keep the most; ``start``: what every key
        keeps with none of them."""
        count = len(start)
        pairs, number = np.unique(choice * count + self.key, return_inverse=True)
        kept = np.zeros(len(pairs))  # of a choice on a key: the best candidate's
        np.maximum.at(kept, number, self.kept)
        choices, keys = np.divmod(pairs, count)
        curves = (_greedy(choices, keys, kept, start, w) for w in self.weights)
        return Pool(self.mean(start), *curves)

    def rates(self, values: Sequence[Value]) -> tuple[Rate, ...]:
        """Of each value, one per row; the one that wins most by time first."""
        seen, number = _numbered(values)
        keys = len(self.weights[0])
        kept = np.full((len(seen), keys), -1.0)
        np.maximum.at(kept, (number, self.key), self.kept)
        won = np.zeros((len(seen), keys))
        won[number[self.wins], self.key[self.wins]] = 1.0
        rates = []
        for place, value in enumerate(seen):
            tried = np.flatnonzero(kept[place] >= 0)
            rates.append(
                Rate(
                    value, len(tried), int(won[place].sum()), self.mean(won[place]),
                    self.mean(1.0 - kept[place, tried], tried),
                )
            )  # fmt: skip
        return tuple(sorted(rates, key=lambda r: (-r.wins, -r.rate.by_time, str(r.value))))


def _greedy(
    choices: _Ints, keys: _Ints, kept: _Floats, start: _Floats, weights: _Floats
) -> tuple[float, ...]:
    """What is kept with one choice more each time, the one that adds the most. Per pair of a choice
    and a key: what it keeps."""
    found: list[float] = []
    so_far = start.copy()
    while True:
        gains = np.bincount(choices, weights[keys] * np.maximum(0.0, kept - so_far[keys]))
        chosen = int(np.argmax(gains))
        if gains[chosen] <= 1e-12:
            return tuple(found)
        pairs = choices == chosen
        so_far[keys[pairs]] = np.maximum(so_far[keys[pairs]], kept[pairs])
        found.append(float(weights @ so_far))


def _group(
    entry: str, backend: str, device: str, keys: Sequence[KeyInsight], *, important: bool
) -> Group:
    table = _Table.of(keys)
    made = [decisions(options) for options in table.options]
    seen, number = _numbered(table.options)
    # Without any of the pool a key has its default; where that was not measured, its slowest.
    fallback = np.ones(len(keys))
    np.minimum.at(fallback, table.key, table.kept)
    for k, each in enumerate(keys):
        if each.over_default is not None:
            fallback[k] = 1.0 / max(1.0, 1.0 + each.over_default)
    alone = np.array([float(each.default is each.ranked[0]) for each in keys])
    return Group(
        entry=entry,
        backend=backend,
        device=device,
        keys=len(keys),
        candidates=len(table.options),
        seconds=float(sum(each.best or 0.0 for each in keys)),
        over_second=_margins(table, [each.over_second for each in keys]),
        over_default=_margins(table, [each.over_default for each in keys]),
        default_wins=table.mean(alone),
        presets=table.rates([each["preset"] for each in made]),
        decisions=_decisions(table, made, important=important) if entry else (),
        options=table.pool(number, fallback),
        different=len(seen),
    )


def _margins(table: _Table, margins: Sequence[float | None]) -> Margins | None:
    of = np.array([k for k, each in enumerate(margins) if each is not None], np.intp)
    if not len(of):
        return None
    values = np.array([each for each in margins if each is not None], np.float64)
    low, middle, high = np.quantile(values, (0.0, 0.5, 1.0))
    return Margins(len(of), float(low), float(middle), float(high), table.mean(values, of))


def _decisions(
    table: _Table, made: Sequence[Mapping[str, Value]], *, important: bool
) -> tuple[Decision, ...]:
    names = [name for name in dict.fromkeys(n for each in made for n in each) if name != "preset"]
    columns = {name: [each.get(name, OPEN) for each in made] for name in names}
    columns = {name: values for name, values in columns.items() if len(set(values)) > 1}
    mattering = _importance(table, columns) if important else {}
    nothing = np.zeros(len(table.weights[0]))
    found = [
        Decision(
            name,
            table.rates(values),
            table.pool(_numbered(values)[1], nothing),
            mattering.get(name),
        )
        for name, values in columns.items()
    ]
    return tuple(sorted(found, key=lambda d: -d.fixed.lost.by_time))


def _importance(table: _Table, columns: Mapping[str, Sequence[Value]]) -> dict[str, float]:
    """Of each decision that stands out from chance. Times are those of the key's winner as one, so
    that keys can be looked at together."""
    knobs = []
    for name, values in columns.items():
        ordered = all(isinstance(value, int) for value in values)
        seen = sorted(set(values)) if ordered else sorted(set(values), key=str)
        knobs.append(Knob(name, tuple(seen), seen[0], ordered))
    configs = list(zip(*columns.values(), strict=True))
    found: Importance = importance(knobs, configs, (1 / table.kept).tolist())
    return {i.knob.name: i.share for i in found.influences if i.share > found.chance}


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
    made: dict[str, Value] = {}
    nests = data.get("nests")
    places = {"default": data.get("default")}
    places |= {
        f"nests.{k}": nest for k, nest in enumerate(nests if isinstance(nests, list) else ())
    }
    for place, choices in places.items():
        for name, value in choices.items() if isinstance(choices, dict) else ():
            sizes = name in OPTIONS and isinstance(OPTIONS[name].kind, Sizes)
            if sizes and isinstance(value, list):
                made |= {f"{place}.{name}.{k}": _value(each) for k, each in enumerate(value)}
            else:
                made[f"{place}.{name}"] = _value(value)
    if data.get("merge") is not None:
        made["merge"] = _value(data["merge"])
    preset = data.get("preset", "naive")
    name = preset if isinstance(preset, str) else "?"
    return {"preset": f"{name} +" if made else name, **made}


def _value(value: object) -> Value:
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
