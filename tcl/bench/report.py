"""What a run found, as data: what is written as JSON, printed and drawn."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tcl.bench.ceilings import Ceilings
from tcl.bench.rows import KINDS
from tcl.grammar.errors import ArgumentError

SCHEMA = 1
DEFAULT = "tcl default"
TUNED = "tcl tuned"
OURS = (DEFAULT, TUNED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender on one row."""

    form: str
    """The form that it used: its fastest. Empty if it had none."""
    threads: int
    """That it may have used."""
    samples: tuple[float, ...]
    """Seconds per call, in the order measured. Empty if it failed."""
    setup: float = 0.0
    """Seconds of the first call, compilation included."""
    error: str = ""
    """Why there are no samples; a sentence."""
    other_forms: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    """The forms that it did not use: seconds per call, or what went wrong."""

    @property
    def seconds(self) -> float | None:
        """Median seconds per call."""
        return median(self.samples) if self.samples else None


@dataclass(frozen=True, slots=True)
class Result:
    """One row with a number of threads."""

    name: str
    kind: str
    file: str
    entry: str
    sizes: Mapping[str, int]
    threads: int
    flops: int
    read: int
    written: int
    entries: Mapping[str, Entry]
    """Contender to what it did."""
    facts: Mapping[str, Any]
    """Of ours: seconds to compile each of a few candidates, and the options used."""

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its seconds."""
        times = [
            (name, entry.seconds)
            for name, entry in self.entries.items()
            if name not in OURS and entry.seconds is not None
        ]
        return min(times, key=lambda each: each[1], default=None)

    @property
    def ours(self) -> tuple[str, float] | None:
        """Our best known options, tuned or, where nothing is known, default; and the seconds."""
        for name in (TUNED, DEFAULT):
            entry = self.entries.get(name)
            if entry is not None and entry.seconds is not None:
                return name, entry.seconds
        return None

    def ratio(self, name: str | None = None) -> float | None:
        """The best peer's time over ours, with the best known options or those of ``name``."""
        if name is None:
            ours = None if self.ours is None else self.ours[1]
        else:
            ours = None if name not in self.entries else self.entries[name].seconds
        if ours is None or self.best_peer is None:
            return None
        return self.best_peer[1] / ours

    def share(self, seconds: float | None, ceilings: Ceilings) -> float | None:
        """The part of the roofline that a time reaches: the least time possible over it."""
        if seconds is None:
            return None
        return ceilings.seconds(self.flops, self.read, self.written) / seconds

    @property
    def compile_seconds(self) -> float | None:
        """Median time to compile a candidate."""
        times = tuple(self.facts.get("compile_seconds", ()))
        return median(times) if times else None


@dataclass(frozen=True, slots=True)
class Report:
    """A run."""

    date: str
    """ISO 8601, with the time zone."""
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    """Threads, cache warm or cold, rounds, seed, cores."""
    ceilings: Mapping[int, tuple[Ceilings, ...]]
    """Number of threads to samples, spread over the run."""
    results: tuple[Result, ...]
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Peers that did not take part, and why."""

    def ceiling(self, threads: int) -> Ceilings:
        """The best sample of each rate: what the machine can do when left alone."""
        return Ceilings.best(self.ceilings[threads])

    def of(self, threads: int) -> list[Result]:
        """The rows with that many threads."""
        return [r for r in self.results if r.threads == threads]

    def as_json(self) -> dict[str, Any]:
        """Everything, and the summary; the inverse of ``from_json``."""
        data = dataclasses.asdict(self)
        data["ceilings"] = {str(threads): found for threads, found in data["ceilings"].items()}
        for result, row in zip(self.results, data["results"], strict=True):
            peer, ours = result.best_peer, result.ours
            ceiling = self.ceiling(result.threads)
            row["summary"] = {
                "best_peer": None if peer is None else peer[0],
                "ratio": result.ratio(),
                "ratio_default": result.ratio(DEFAULT),
                "share_peer": None if peer is None else result.share(peer[1], ceiling),
                "share_ours": None if ours is None else result.share(ours[1], ceiling),
                "compile_seconds": result.compile_seconds,
                "medians": {n: e.seconds for n, e in result.entries.items()},
            }
        data["summary"] = {str(threads): summarise(self.of(threads)) for threads in self.ceilings}
        return {"schema": SCHEMA, **data}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        """The report that ``as_json`` wrote down; ``ArgumentError`` if it is none."""
        if data.get("schema") != SCHEMA:
            raise ArgumentError(f"this is no report of schema {SCHEMA}: {data.get('schema')!r}")
        try:
            return Report(
                data["date"],
                data["machine"],
                data["versions"],
                data["settings"],
                {
                    int(threads): tuple(Ceilings(**c) for c in samples)
                    for threads, samples in data["ceilings"].items()
                },
                tuple(_result(row) for row in data["results"]),
                data["absent"],
            )
        except (KeyError, TypeError) as error:
            raise ArgumentError(f"the report is damaged: {error}") from None

    def text(self) -> str:
        """The JSON text."""
        return json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n"


def _result(row: Mapping[str, Any]) -> Result:
    known = {f.name for f in dataclasses.fields(Result)}
    fields = {k: v for k, v in row.items() if k in known}
    entries = {
        name: Entry(**{**entry, "samples": tuple(entry["samples"])})
        for name, entry in row["entries"].items()
    }
    return Result(**{**fields, "entries": entries})


def summarise(results: Iterable[Result]) -> dict[str, Any]:
    """Geometric means of the ratios, per kind and of all, tuned and default, and the worst row.

    Rows without a ratio count nowhere; ``missing`` names them.
    """
    rows = list(results)
    groups = {kind: [r for r in rows if r.kind == kind] for kind in KINDS}
    groups["all"] = rows
    ratios = {r.name: r.ratio() for r in rows}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    worst = min(known, key=lambda n: known[n], default=None)
    compiled = tuple(t for r in rows if (t := r.compile_seconds) is not None)
    return {
        "ratio": {k: geometric_mean(r.ratio() for r in g) for k, g in groups.items() if g},
        "ratio_default": {
            k: geometric_mean(r.ratio(DEFAULT) for r in g) for k, g in groups.items() if g
        },
        # How near the default options come to the tuned ones, where something was tuned.
        "default_over_tuned": geometric_mean(
            default / tuned
            for r in rows
            if (default := r.ratio(DEFAULT)) is not None and (tuned := r.ratio(TUNED)) is not None
        ),
        "worst": None if worst is None else {"row": worst, "ratio": known[worst]},
        "compile_seconds": median(compiled) if compiled else None,
        "missing": [name for name, ratio in ratios.items() if ratio is None],
    }


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Of those that are there; None if none is."""
    logs = [math.log(v) for v in values if v is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None
