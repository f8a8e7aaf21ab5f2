"""What a run found, as data, and which bars it meets: as it is written, printed and drawn."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcl.bench import summary
from tcl.bench.ceilings import Ceilings
from tcl.bench.rows import SHAPES, SUITE_KINDS, TYPED
from tcl.bench.task import DEFAULT
from tcl.common.errors import ArgumentError

SCHEMA = 2
_READ = (1, SCHEMA)
"""What can be read. Reports of schema 1 are of one run, on aligned arrays, in float32."""


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
    results: tuple[summary.Result, ...]
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Peers that did not take part, and why."""
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Rows that could not be measured, and why."""
    interrupted: bool = False
    """Whether rows are missing because the run was stopped."""

    def ceiling(self, threads: int) -> Ceilings:
        """The best sample of each rate: what the machine can do when left alone."""
        return Ceilings.best(self.ceilings[threads])

    def results_of(self, threads: int, placement: str = "") -> list[summary.Result]:
        """The rows with that many threads, of all runs; of one placement, or of all."""
        return [
            r
            for r in self.results
            if r.threads == threads and (not placement or r.placement == placement)
        ]

    @property
    def placements(self) -> list[str]:
        return list(dict.fromkeys(r.placement for r in self.results))

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
                "default_over_tuned": result.gain(),
                "share_peer": None if peer is None else result.share(peer[1], ceiling),
                "share_ours": None if ours is None else result.share(ours[1], ceiling),
                "compile_seconds": result.compile_seconds,
                "medians": {n: e.seconds for n, e in result.entries.items()},
            }
        data["summary"] = {str(n): summary.summarise(self.results_of(n)) for n in self.ceilings}
        return {"schema": SCHEMA, **data}

    @staticmethod
    def from_json(data: Any) -> Report:
        """The report that ``as_json`` wrote down; ``ArgumentError`` if it is none."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema not in _READ:
            raise ArgumentError(f"this is not a report of schema {SCHEMA}: {schema!r}")
        try:
            return Report(
                data["date"],
                dict(data["machine"]),
                dict(data["versions"]),
                dict(data["settings"]),
                {
                    int(threads): tuple(Ceilings(**c) for c in samples)
                    for threads, samples in data["ceilings"].items()
                },
                tuple(_result(row) for row in data["results"]),
                dict(data["absent"]),
                dict(data.get("left_out", {})),
                data.get("interrupted", False),
            )
        except KeyError as error:
            raise ArgumentError(f"the report is damaged: {error} is missing") from None
        except (AttributeError, TypeError, ValueError) as error:
            raise ArgumentError(f"the report is damaged: {error}") from None

    def text(self) -> str:
        text = json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n"
        # Samples in one line each: there are tens of thousands.
        return re.sub(r"\[\s+([^][{}\"]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)


def _result(row: Mapping[str, Any]) -> summary.Result:
    known = {f.name for f in dataclasses.fields(summary.Result)}
    fields = {k: v for k, v in row.items() if k in known}
    entries = {}
    for name, entry in row["entries"].items():
        samples = tuple(entry["samples"])
        for sample in samples:
            if not isinstance(sample, int | float) or not 0 < sample < math.inf:  # nor NaN
                raise ValueError(f"{row['name']}, {name}: the sample {sample!r} is not a time")
        entries[name] = summary.Entry(**{**entry, "samples": samples})
    return summary.Result(**{**fields, "entries": entries})


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing to reach."""

    what: str
    limit: float
    found: float
    worse: tuple[tuple[str, float], ...] = ()
    """Rows that miss it, and their values, where it is about every row."""
    at_most: bool = False
    """Whether the value may not be larger; else it may not be smaller."""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        rows = ", ".join(f"{name} {value:.2f}" for name, value in self.worse)
        said = f"{self.what}: {self.found:.2f}, {sign} {self.limit:.2f}: "
        return said + ("met" if self.met else f"missed{rows and f' ({rows})'}")


def bars(report: Report, threads: int) -> list[Bar]:
    """The bars on the rows with that many threads, of those that the report measured."""
    rows = summary.lines(report.results_of(threads))
    found = list(_moved([r for r in rows if r.kind in SUITE_KINDS]))
    for placement in report.placements:
        found += _placed(rows, placement, threads)
    return found


def _placed(rows: Sequence[summary.Line], placement: str, threads: int) -> Iterator[Bar]:
    where = f"{placement} arrays"
    suite = [r for r in rows if r.kind in SUITE_KINDS]
    typed = [r for r in rows if r.kind == TYPED and ("int8" in r.name or "bfloat16" in r.name)]
    one = threads == 1
    tuned = summary.mean(suite, summary.gain(placement)) is not None
    options = "tuned" if tuned else "default"
    limits = (1.40 if one else 1.45) if tuned else (1.35 if one else 1.40)
    yield from _mean(
        f"best peer / {options}, suite, {where}", suite, summary.ratio(placement), limits
    )
    if tuned:
        best = summary.ratio(placement, DEFAULT)
        yield from _mean(f"best peer / default, suite, {where}", suite, best, 1.35 if one else 1.40)
    timed = [r for r in rows if r.kind in (*SUITE_KINDS, SHAPES)]
    yield from _every(
        f"best peer / {options}, every row, {where}", timed, summary.ratio(placement), summary.NEAR
    )
    yield from _mean(f"default / tuned, {where}", rows, summary.gain(placement), 1.06)
    yield from _every(f"default / tuned, every row, {where}", rows, summary.gain(placement), 0.98)
    torch = summary.beside(placement, "torch")
    yield from _mean(f"torch / {options}, 8 bits and bfloat16, {where}", typed, torch, 1.0)
    yield from _every(f"torch / {options}, each of these, {where}", typed, torch, 0.9)


def _moved(rows: Sequence[summary.Line]) -> Iterator[Bar]:
    found, worst = summary.mean(rows, summary.shift), summary.extreme(rows, summary.shift, max)
    if found is not None and worst is not None:
        yield Bar("numpy / aligned arrays, suite", 1.06, found.middle, at_most=True)
        worse = _beyond(rows, summary.shift, 1.15, at_most=True)
        yield Bar("numpy / aligned arrays, every row", 1.15, worst[1], worse, at_most=True)


def _mean(
    what: str, rows: Sequence[summary.Line], quantity: summary.Quantity, limit: float
) -> Iterator[Bar]:
    if (found := summary.mean(rows, quantity)) is not None:
        yield Bar(what, limit, found.middle)


def _every(
    what: str, rows: Sequence[summary.Line], quantity: summary.Quantity, limit: float
) -> Iterator[Bar]:
    if (worst := summary.extreme(rows, quantity)) is not None:
        yield Bar(what, limit, worst[1], _beyond(rows, quantity, limit))


def _beyond(
    rows: Sequence[summary.Line], quantity: summary.Quantity, limit: float, at_most: bool = False
) -> tuple[tuple[str, float], ...]:
    """Rows that miss a limit, the worst first."""
    found = [(row.name, s.middle) for row in rows if (s := row.spread(quantity)) is not None]
    missed = [(n, v) for n, v in found if (v > limit if at_most else v < limit)]
    return tuple(sorted(missed, key=lambda each: -each[1] if at_most else each[1]))
