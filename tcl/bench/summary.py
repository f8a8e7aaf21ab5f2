"""What contenders did on a row, and what rows, placements and runs come to together.

A quantity is taken of every run by itself. The median over the runs counts, with the least and the
largest beside it: machines give each process other memory, so that runs differ by more than the
samples of one do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

from tcl.bench.ceilings import Ceilings
from tcl.bench.rows import KINDS, SUITE_KINDS
from tcl.bench.task import DEFAULT, OURS, TUNED
from tcl.codegen.loopir.cost import Cost


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
    single: float | None = None
    """``flops`` as ``Cost.single``; None if they are the same."""
    products: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """As ``Cost.products``."""
    placement: str = "aligned"
    """Where arrays began: a name in ``tcl.tuner.measure.placement.PLACEMENTS``."""
    run: int = 1
    """Which one, from 1."""

    @property
    def cost(self) -> Cost:
        """The work that nobody can avoid."""
        single = float(self.flops) if self.single is None else self.single
        return Cost(self.flops, single, self.read, self.written, self.products)

    def fastest(self, names: Collection[str] | None = None) -> tuple[str, float] | None:
        """The fastest of these contenders, by default of all peers, and its seconds."""
        times = [
            (name, entry.seconds)
            for name, entry in self.entries.items()
            if (name not in OURS if names is None else name in names) and entry.seconds is not None
        ]
        return min(times, key=lambda each: each[1], default=None)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its seconds."""
        return self.fastest()

    @property
    def ours(self) -> tuple[str, float] | None:
        """Our best known options, tuned or, where nothing is known, default; and the seconds."""
        for name in (TUNED, DEFAULT):
            entry = self.entries.get(name)
            if entry is not None and entry.seconds is not None:
                return name, entry.seconds
        return None

    def ratio(self, name: str | None = None, peers: Collection[str] | None = None) -> float | None:
        """The best peer's time over ours, with the best known options or those of ``name``; of all
        peers or of these."""
        ours = self.ours if name is None else self.fastest((name,))
        peer = self.fastest(peers)
        return None if ours is None or peer is None else peer[1] / ours[1]

    def gain(self) -> float | None:
        """The default options' time over the tuned ones'; None where nothing is tuned."""
        times = [e.seconds for n in OURS if (e := self.entries.get(n)) is not None]
        if len(times) < 2 or times[0] is None or times[1] is None:
            return None
        return times[0] / times[1]

    def share(self, seconds: float | None, ceilings: Ceilings) -> float | None:
        """The part of the roofline that a time reaches: the least time possible over it. None if
        nothing is known of that."""
        if seconds is None:
            return None
        return ceilings.seconds(self.cost) / seconds or None

    @property
    def compile_seconds(self) -> float | None:
        """Median time to compile a candidate."""
        times = tuple(self.facts.get("compile_seconds", ()))
        return median(times) if times else None


NEAR = 0.95
"""A ratio below which a row counts as slower than the best peer."""

OneRun: TypeAlias = Mapping[str, Result]
"""A row in one run: placement → what was measured there."""
Quantity: TypeAlias = Callable[[OneRun], float | None]


@dataclass(frozen=True, slots=True)
class Spread:
    """A number that was found in several runs."""

    middle: float
    low: float
    high: float

    @staticmethod
    def over_runs(values: Iterable[float | None]) -> Spread | None:
        """Of those values that are there; None if none is."""
        found = [v for v in values if v is not None]
        return Spread(median(found), min(found), max(found)) if found else None

    def as_json(self) -> dict[str, float]:
        """As data."""
        return {"median": self.middle, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Line:
    """A row with a number of threads: what all runs found."""

    name: str
    kind: str
    runs: tuple[OneRun, ...]

    def spread(self, quantity: Quantity) -> Spread | None:
        """A quantity over the runs."""
        return Spread.over_runs(map(quantity, self.runs))

    def seconds(self, contender: str, placement: str) -> float | None:
        """Median over the runs of a contender's seconds per call."""
        found = self.spread(lambda run: _seconds_of_run(run, placement, contender))
        return None if found is None else found.middle

    def all(self, placement: str) -> list[Result]:
        """What the runs found on a placement."""
        return [run[placement] for run in self.runs if placement in run]


def lines(results: Iterable[Result]) -> list[Line]:
    """Results of one number of threads, row by row."""
    found: dict[str, dict[int, dict[str, Result]]] = {}
    kinds: dict[str, str] = {}
    for result in results:
        found.setdefault(result.name, {}).setdefault(result.run, {})[result.placement] = result
        kinds[result.name] = result.kind
    return [Line(name, kinds[name], tuple(runs.values())) for name, runs in found.items()]


def ratio(placement: str, name: str | None = None) -> Quantity:
    """The best peer's time over ours: see ``Result.ratio``."""
    return lambda run: run[placement].ratio(name) if placement in run else None


def gain(placement: str) -> Quantity:
    """The default options' time over the tuned ones'."""
    return lambda run: run[placement].gain() if placement in run else None


def beside(placement: str, peer: str) -> Quantity:
    """One peer's time over ours, with the best known options."""

    def quantity(run: OneRun) -> float | None:
        if placement not in run:
            return None
        own, other = run[placement].ours, _seconds_of_run(run, placement, peer)
        return None if own is None or other is None else other / own[1]

    return quantity


def shift(run: OneRun) -> float | None:
    """Our time on arrays as NumPy places them over that on aligned ones; tuned, where both are."""
    for name in (TUNED, DEFAULT):
        here, there = _seconds_of_run(run, "aligned", name), _seconds_of_run(run, "numpy", name)
        if here is not None and there is not None:
            return there / here
    return None


def _seconds_of_run(run: OneRun, placement: str, contender: str) -> float | None:
    entry = run[placement].entries.get(contender) if placement in run else None
    return None if entry is None else entry.seconds


def mean(rows: Sequence[Line], quantity: Quantity) -> Spread | None:
    """The geometric mean over rows, of each run. Rows without the quantity count nowhere."""
    count = max((len(row.runs) for row in rows), default=0)
    return Spread.over_runs(
        geometric_mean(quantity(row.runs[i]) for row in rows if i < len(row.runs))
        for i in range(count)
    )


def extreme(
    rows: Sequence[Line], quantity: Quantity, choose: Callable[..., str] = min
) -> tuple[str, float] | None:
    """The row with the least, or with ``max`` the largest, of a quantity, and its value."""
    found = {row.name: s.middle for row in rows if (s := row.spread(quantity)) is not None}
    if not found:
        return None
    name = choose(found, key=lambda n: found[n])
    return name, found[name]


def groups(rows: Sequence[Line]) -> dict[str, list[Line]]:
    """Rows by kind; then those of the suite, and all, where these are more than that."""
    found = {kind: [r for r in rows if r.kind == kind] for kind in KINDS}
    suite = [r for r in rows if r.kind in SUITE_KINDS]
    if len(suite) < len(rows):
        found["suite"] = suite
    found["all"] = list(rows)
    return {name: members for name, members in found.items() if members}


def summarise(results: Iterable[Result]) -> dict[str, Any]:
    """By placement: geometric means per kind and of all, tuned and default, rows that are slower
    than their best peer, and rows without a ratio. And what the placement changes."""
    rows = lines(results)
    placements = dict.fromkeys(p for row in rows for run in row.runs for p in run)
    summary: dict[str, Any] = {p: _placed(rows, p) for p in placements}
    if (moved := mean(rows, shift)) is not None:
        summary["numpy over aligned"] = {
            "mean": moved.as_json(),
            "worst": _named(extreme(rows, shift, max)),
        }
    return summary


def _placed(rows: Sequence[Line], placement: str) -> dict[str, Any]:
    best, default, tuned = ratio(placement), ratio(placement, DEFAULT), gain(placement)
    ratios = {row.name: row.spread(best) for row in rows}
    compiled = [
        t for row in rows for r in row.all(placement) if (t := r.compile_seconds) is not None
    ]
    return {
        "ratio": _means(rows, best),
        "ratio_default": _means(rows, default),
        "default_over_tuned": _means(rows, tuned),
        "worst": _named(extreme(rows, best)),
        "worst_default_over_tuned": _named(extreme(rows, tuned)),
        "slower": {n: s.middle for n, s in ratios.items() if s is not None and s.middle < NEAR},
        "compile_seconds": median(compiled) if compiled else None,
        "missing": [name for name, found in ratios.items() if found is None],
    }


def _means(rows: Sequence[Line], quantity: Quantity) -> dict[str, dict[str, float]]:
    found = {name: mean(members, quantity) for name, members in groups(rows).items()}
    return {name: spread.as_json() for name, spread in found.items() if spread is not None}


def _named(found: tuple[str, float] | None) -> dict[str, Any] | None:
    return None if found is None else {"row": found[0], "ratio": found[1]}


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Of those that are there; None if none is."""
    logs = [math.log(v) for v in values if v is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None
