"""What results say of each key: how candidates ended, who won, by how much, since when."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tcl.common.closest import did_you_mean
from tcl.tuner.cache import ranking
from tcl.tuner.cache import table_rows as cache_rows
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache


@dataclass(frozen=True, slots=True)
class KeyInsight:
    key: CacheKey
    entry: str
    """The def's name when it was first tuned."""
    records: int
    verdicts: Mapping[str, int]
    """How many records ended so, by the verdict's word; the most frequent first."""
    ranked: tuple[Record, ...]
    """The correct candidates, best first, each with the record that counts."""
    found: Mapping[str, Record]
    """By options: the first record in which they were correct."""
    readings: Mapping[str, float]
    """By options: seconds a call when they were last timed outside of finals, with nothing beside
    them."""
    default: Record | None
    """Of the untuned default; None if it was not measured, or is not correct."""

    @property
    def best(self) -> float | None:
        """Seconds a call of the winner."""
        return self.ranked[0].time if self.ranked else None

    def ratio(self, record: Record) -> float | None:
        """How many times as long as the winner's a call takes, by times that were taken alike: in
        the finals of the same search, else outside of finals; where there are none of either
        kind, by those that count. None if the winner takes no time. Below 1 where a first
        reading was faster than what won the finals."""
        winner = self.ranked[0]
        one, other = winner.time, record.time
        finals = None not in (winner.heat, record.heat) and record.run == winner.run
        if not finals and {winner.options, record.options} <= self.readings.keys():
            one, other = self.readings[winner.options], self.readings[record.options]
        return None if not one or other is None else other / one

    def margin(self, record: Record) -> float | None:
        """How much longer than the winner it takes, as a share of the winner's time: 0.25 for a
        quarter more; see ``ratio``."""
        ratio = self.ratio(record)
        return None if ratio is None else ratio - 1

    @property
    def over_second(self) -> float | None:
        """The winner's margin over the second."""
        return self.margin(self.ranked[1]) if len(self.ranked) > 1 else None

    @property
    def over_default(self) -> float | None:
        """The winner's margin over the untuned default; 0 if it is that."""
        return None if self.default is None else self.margin(self.default)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which keys are looked at: those that have all that is said."""

    entry: str | None = None
    """The def's name."""
    device: str | None = None
    """A part of the device's identity, in whatever case."""
    backend: str | None = None
    sizes: tuple[str, ...] = ()
    """Parts of the inputs as people see them, ``float32[64,64] float32[64,32]``; spaces do not
    count."""
    version: str | None = None
    """Of the code generator."""
    definition: str | None = None
    """The def's canonical text, which counts then, whatever its name was."""
    inputs: tuple[ArrayLayout, ...] | None = None
    """Of the def at these ``sizes``, which are what people call them then."""

    def names(self, key: CacheKey, entry: str) -> bool:
        """Whether a key has all that is said."""
        return all(matches(key, entry) for _, _, matches in self._rules())

    def why_none(self, known: Sequence[KeyInsight]) -> str:
        """Why none of the keys that there are has all that is said, in words that go on after "no
        key": the first thing that none has, and what there is."""
        for what, said, matches in self._rules():
            if not any(matches(each.key, each.entry) for each in known):
                there = list(dict.fromkeys(_VALUES[what](each.key, each.entry) for each in known))
                if what == "def" and self.definition is not None:
                    return (
                        f"has the def {said!r} in the version of its file; there are: "
                        f"{'; '.join(there)}"
                    )
                hint = did_you_mean(said, there, f"there are: {'; '.join(there[:8])}")
                return f"has {what} {said!r}; {hint}"
        return "has all of these at once"

    def _rules(self) -> list[tuple[str, str, Callable[[CacheKey, str], bool]]]:
        """What is said: its name, the words, and whether a key has it."""
        device, sizes = self.device or "", " ".join(self.sizes) or None
        rules: list[tuple[str, str | None, Callable[[CacheKey, str], bool]]] = [
            ("def", self.entry, self._of_def),
            ("device", self.device, lambda key, _: device.casefold() in key.device.casefold()),
            ("namespace", self.backend, lambda key, _: key.backend == self.backend),
            ("sizes", sizes, self._of_sizes),
            ("version", self.version, lambda key, _: key.codegen_version == self.version),
        ]
        return [(what, said, matches) for what, said, matches in rules if said is not None]

    def _of_def(self, key: CacheKey, entry: str) -> bool:
        return entry == self.entry if self.definition is None else key.definition == self.definition

    def _of_sizes(self, key: CacheKey, _: str) -> bool:
        if self.inputs is None:
            return all(_without_spaces(part) in _without_spaces(key.sizes) for part in self.sizes)
        return len(key.inputs) == len(self.inputs) and all(
            own.has(given) if own.classes else own.shape == given.shape
            for own, given in zip(key.inputs, self.inputs, strict=True)
        )


def _without_spaces(sizes: str) -> str:
    return "".join(sizes.split()).casefold()


_VALUES: Mapping[str, Callable[[CacheKey, str], str]] = {
    "def": lambda _, entry: entry,
    "device": lambda key, _: key.device,
    "namespace": lambda key, _: key.backend,
    "sizes": lambda key, _: key.sizes,
    "version": lambda key, _: key.codegen_version,
}


def insights(cache: TuningCache, default: str, wanted: Filter) -> tuple[KeyInsight, ...]:
    """What is known of the wanted keys that have results, as of one moment; by def, device and
    inputs. ``default``: the untuned default's options, as JSON. Raises ``CacheError``."""

    def order(each: KeyInsight) -> tuple[object, ...]:
        key = each.key
        return each.entry, key.backend, key.device, [i.shape for i in key.inputs], key.digest

    def read(db: sqlite3.Connection) -> tuple[KeyInsight, ...]:
        found = []
        for problem, key, entry in cache_rows.problems(db):
            if wanted.names(key, entry):
                records = [record for _, record in cache_rows.records(db, problem)]
                if records:
                    found.append(insight(key, entry, records, default))
        return tuple(sorted(found, key=order))

    return cache.read(read, ())


def insight(key: CacheKey, entry: str, records: Sequence[Record], default: str) -> KeyInsight:
    """What these results say of a key."""
    found: dict[str, Record] = {}
    readings: dict[str, float] = {}
    for record in sorted(records, key=lambda r: r.when):
        if record.time is not None:
            found.setdefault(record.options, record)
            if record.heat is None:
                readings[record.options] = record.time
    ranked = ranking.ranked(records)
    verdicts = Counter(record.verdict.value for record in records)
    untuned = next((record for record in ranked if record.options == default), None)
    counts = dict(verdicts.most_common())
    return KeyInsight(key, entry, len(records), counts, ranked, found, readings, untuned)


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
