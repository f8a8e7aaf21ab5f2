"""What a run found, as data: what is written as JSON and printed."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.gpu.ceilings import Ceilings, Measured
from benchmarks.gpu.samples import Sample, counted
from tcl.bench.peers.names import DEFAULT, OURS, TUNED
from tcl.bench.summary import geometric_mean

SCHEMA = 1
TORCH = "torch"
"""Eager; its products are cuBLAS's, its convolutions cuDNN's."""
COMPILED = "torch.compile"


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender on one row."""

    form: str
    """The form that it used: its fastest. Empty if it had none."""
    samples: tuple[Sample, ...] = ()
    """In the order measured. Empty if it failed."""
    launches: int = 0
    """In a replay."""
    copies: int = 0
    """Sets of buffers that they went over."""
    captured: bool = False
    """Whether a replay was one graph; else the host launched everything."""
    setup: float = 0.0
    """Seconds until it had run for the first time, compilation included."""
    highest_mhz: int | None = None
    error: str = ""
    """Why there are no samples; a sentence."""
    other_forms: Mapping[str, float | str] = field(default_factory=dict)
    """The forms that it did not use: seconds, or what went wrong."""

    @property
    def seconds(self) -> float | None:
        """Median of the samples that count."""
        kept = counted(self.samples, self.highest_mhz)
        return median(tuple(s.seconds for s in kept)) if kept else None

    def as_json(self) -> dict[str, Any]:
        """With the samples as two lists."""
        data = dataclasses.asdict(self)
        data["samples"] = [float(f"{s.seconds:.6g}") for s in self.samples]
        data["mhz"] = [s.mhz for s in self.samples]
        data["counted"] = len(counted(self.samples, self.highest_mhz))
        data["median"] = self.seconds
        return data


@dataclass(frozen=True, slots=True)
class Result:
    """One row."""

    name: str
    kind: str
    file: str
    entry: str
    type: str
    sizes: Mapping[str, int]
    suite: bool
    """Whether it counts for the mean over the suite."""
    flops: int
    read: int
    written: int
    entries: Mapping[str, Entry]
    """Contender to what it did."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    wall: float = 0.0
    """Seconds that all of it took."""

    def of(self, name: str) -> float | None:
        """A contender's seconds."""
        entry = self.entries.get(name)
        return None if entry is None else entry.seconds

    def best(self, names: Sequence[str] | None = None) -> tuple[str, float] | None:
        """The fastest of these contenders, by default of all but ours, and its seconds."""
        chosen = [n for n in self.entries if n not in OURS] if names is None else names
        times = {n: t for n in chosen if (t := self.of(n)) is not None}
        return min(times.items(), key=lambda item: item[1]) if times else None

    @property
    def ours(self) -> tuple[str, float] | None:
        """Ours: the faster of tuned and default."""
        return self.best((DEFAULT, TUNED))

    def ratio(self, names: Sequence[str] | None = None) -> float | None:
        """The time of the best of these peers over ours; above 1 we are faster."""
        peer, ours = self.best(names), self.ours
        return None if peer is None or ours is None else peer[1] / ours[1]

    def share(self, seconds: float | None, ceilings: Ceilings) -> float | None:
        """The part of the roofline that a time reaches."""
        least = ceilings.seconds(self.flops, self.read + self.written, self.type)
        return None if least is None or seconds is None else least / seconds

    def as_json(self, ceilings: Ceilings) -> dict[str, Any]:
        """All of it, and a summary."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        data["entries"] = {name: entry.as_json() for name, entry in self.entries.items()}
        best, ours = self.best(), self.ours
        data["summary"] = {
            "best_peer": best and best[0],
            "ratio": self.ratio(),
            "ratio_torch": self.ratio((TORCH, COMPILED)),
            "share_ours": self.share(ours and ours[1], ceilings),
            "share_peer": self.share(best and best[1], ceilings),
        }
        return data


@dataclass(frozen=True, slots=True)
class Report:
    """A run."""

    date: str
    """ISO 8601, with the time zone."""
    device: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    probes: tuple[Measured, ...]
    latencies: Mapping[str, Sequence[float]]
    results: tuple[Result, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Rows that were not measured, and why."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Contenders that did not take part, and why."""

    @property
    def ceilings(self) -> Ceilings:
        """The best that was measured."""
        return Ceilings.best(self.probes)

    def as_json(self) -> dict[str, Any]:
        """All of it, with the bars and means."""
        from benchmarks.gpu.bars import bars

        return {
            "schema": SCHEMA,
            "date": self.date,
            "device": dict(self.device),
            "versions": dict(self.versions),
            "settings": dict(self.settings),
            "ceilings": {
                "rates": dict(self.ceilings.rates),
                "probes": [dataclasses.asdict(p) for p in self.probes],
            },
            "latencies": {name: list(s) for name, s in self.latencies.items()},
            "results": [r.as_json(self.ceilings) for r in self.results],
            "bars": [bar.as_json() for bar in bars(self)],
            "skipped": dict(self.skipped),
            "absent": dict(self.absent),
        }

    def text(self) -> str:
        """The JSON text."""
        text = json.dumps(self.as_json(), indent=1, allow_nan=False)
        # Samples in one line each: there are tens of thousands.
        return re.sub(r"\[\s+([^][{}\"]*?)\s+\]", _joined, text) + "\n"


def _joined(found: re.Match[str]) -> str:
    return "[" + " ".join(found[1].split()) + "]"


def mean_ratio(results: Sequence[Result], names: Sequence[str] | None = None) -> float | None:
    """Geometric mean of the ratios that are known."""
    return geometric_mean(r.ratio(names) for r in results)
