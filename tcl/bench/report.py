"""What a run found, as data: what is written as JSON, printed and drawn."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcl.bench.ceilings import Ceilings
from tcl.bench.peers.names import DEFAULT
from tcl.bench.result import Entry, Result
from tcl.bench.summary import summarise
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
    results: tuple[Result, ...]
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Peers that did not take part, and why."""
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Rows that could not be measured, and why."""
    interrupted: bool = False
    """Whether rows are missing because the run was stopped."""

    def ceiling(self, threads: int) -> Ceilings:
        """The best sample of each rate: what the machine can do when left alone."""
        return Ceilings.best(self.ceilings[threads])

    def results_of(self, threads: int, placement: str = "") -> list[Result]:
        """The rows with that many threads, of all runs; of one placement, or of all."""
        return [
            r
            for r in self.results
            if r.threads == threads and (not placement or r.placement == placement)
        ]

    @property
    def placements(self) -> list[str]:
        """Those of the rows."""
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
        data["summary"] = {str(n): summarise(self.results_of(n)) for n in self.ceilings}
        return {"schema": SCHEMA, **data}

    @staticmethod
    def from_json(data: Any) -> Report:
        """The report that ``as_json`` wrote down; ``ArgumentError`` if it is none."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema not in _READ:
            raise ArgumentError(f"this is no report of schema {SCHEMA}: {schema!r}")
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
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArgumentError(f"the report is damaged: {error}") from None

    def text(self) -> str:
        """The JSON text."""
        text = json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n"
        # Samples in one line each: there are tens of thousands.
        return re.sub(r"\[\s+([^][{}\"]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)


def _result(row: Mapping[str, Any]) -> Result:
    known = {f.name for f in dataclasses.fields(Result)}
    fields = {k: v for k, v in row.items() if k in known}
    entries = {
        name: Entry(**{**entry, "samples": tuple(entry["samples"])})
        for name, entry in row["entries"].items()
    }
    return Result(**{**fields, "entries": entries})
