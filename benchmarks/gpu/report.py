"""What contenders did and a run found, as data, and what is asked of us on a GPU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from statistics import median, quantiles
from typing import Any

from benchmarks.gpu.rows import GPU_ROWS, in_suite, streams
from tcl.bench.ceilings import Ceilings
from tcl.bench.report import Report
from tcl.bench.rows import SUITE_KINDS, Row
from tcl.bench.summary import Entry, Result, geometric_mean
from tcl.bench.task import OURS, TUNED
from tcl.common.dataclass import dataclass
from tcl.common.number_format import duration

_ENOUGH = 15
"""Samples that a contender gives at least."""
_SLOW_ENOUGH = 5
"""The same for calls that take long."""
_LONG = 0.05
"""Seconds of a call that takes long."""
_STEADY = 0.01
"""Interquartile range over median below which no more samples are needed."""
_MEASURED = 0.1
"""Seconds of the device after which no more are taken."""
_MOST = 60
_CLOCK = 0.75
"""Share of the highest clock below which a sample does not count."""


@dataclass(frozen=True, slots=True)
class GpuEntry(Entry):
    """Its samples are replays, each divided by its launches."""

    mhz: tuple[int | None, ...] = ()
    """Clock of the multiprocessors at each sample; None if unknown."""
    held_down: tuple[Sequence[str], ...] = ()
    """Why it was not higher, at each sample."""
    launches: int = 0
    """In a replay."""
    copies: int = 0
    """Sets of buffers that they went over."""
    captured: bool = False
    """Whether a replay was one graph; else the host launched everything."""
    highest_mhz: int | None = None

    @property
    def counted(self) -> tuple[float, ...]:
        """The samples that were not taken at a low clock; all of them if all were, as then that is
        what the device does under this load."""
        if self.highest_mhz is None:
            return self.samples
        least, pairs = _CLOCK * self.highest_mhz, zip(self.samples, self.mhz, strict=True)
        kept = tuple(seconds for seconds, mhz in pairs if mhz is None or mhz >= least)
        return kept or self.samples

    @property
    def seconds(self) -> float | None:
        """Median of the samples that count."""
        return median(self.counted) if self.samples else None

    @property
    def enough(self) -> bool:
        """Whether there are all the samples that are needed."""
        times = self.samples
        if not times:
            return False
        if len(times) < (_ENOUGH if min(times) * self.launches < _LONG else _SLOW_ENOUGH):
            return False
        if len(times) >= _MOST or sum(times) * self.launches >= _MEASURED:
            return True
        low, middle, high = quantiles(times, n=4, method="inclusive")
        return high - low < _STEADY * middle


SCHEMA = 1
TORCH = "torch"
"""Eager; its products are cuBLAS's, its convolutions cuDNN's."""
EITHER = (TORCH, "torch.compile")
THREADS = 4
"""Of the host, for what libraries do there."""
_NARROW = ("float16", "bfloat16")
_LEAST_ROW = 0.9
"""The ratio below which no row of the suite may be."""
OVERHEAD = ("tcl", "CuPy RawKernel")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a probe found."""

    name: str
    rate: str
    """``copy``, or an element type."""
    amount: int
    """Bytes or operations."""
    samples: tuple[float, ...]
    """Seconds. Empty if it failed."""
    error: str = ""


def best_rates(probes: Sequence[Measured]) -> dict[str, float]:
    """The best rate of each kind, of medians; those that no probe found are not there."""
    rates: dict[str, float] = {}
    for probe in probes:
        if probe.samples:
            rate = probe.amount / median(probe.samples)
            rates[probe.rate] = max(rates.get(probe.rate, 0.0), rate)
    return rates


def ceilings(rates: Mapping[str, float]) -> Ceilings:
    """The same, where what is not known limits nothing."""
    known = {name: rates.get(name, math.inf) for name in ("copy", "float32", *_NARROW)}
    narrow = {name: known[name] for name in _NARROW}
    return Ceilings(known["copy"], known["copy"], known["float32"], narrow)


@dataclass(frozen=True, slots=True)
class GpuReport(Report):
    """A run; its machine is the device."""

    probes: tuple[Measured, ...] = ()
    latencies: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Seconds of calls, by what is called."""

    @property
    def rates(self) -> dict[str, float]:
        """The best that was measured: bytes a second copied, operations a second by type."""
        return best_rates(self.probes)

    def as_json(self) -> dict[str, Any]:
        """As a report of the CPU benchmark, with what the device can do."""
        data = {**Report.as_json(self), "schema": SCHEMA}
        data["device"] = data.pop("machine")
        data["ceilings"] = {"rates": self.rates, "probes": data.pop("probes")}
        for row, result in zip(data["results"], self.results, strict=True):
            row["summary"]["ratio_torch"] = result.ratio(peers=EITHER)
        data["bars"] = [bar.as_json() for bar in bars(self)]
        return data


def suite(report: GpuReport) -> list[Result]:
    """The rows that count for the mean."""
    return [result for result in report.results if result.kind in SUITE_KINDS]


def mean_ratio(results: Sequence[Result], peers: Collection[str] | None = None) -> float | None:
    """Geometric mean of the ratios to the best of these peers, of all, that are known."""
    return geometric_mean(result.ratio(peers=peers) for result in results)


@dataclass(frozen=True, slots=True)
class Bar:
    """One demand."""

    name: str
    unit: str
    """What the numbers are."""
    least: float
    aim: float
    value: float | None
    """What counts: the worst row, or the mean. None if nothing was measured."""
    rows: dict[str, float | None]
    """Row to its own number."""
    fewer_is_better: bool = False
    complaint: str = ""
    """What else is wrong; then it is not met."""

    @property
    def met(self) -> bool | None:
        """None if it cannot be said: not all that it needs was measured, and what was is well."""
        if self.value is None:
            return None
        if self.complaint or not self._well(self.value, self.least):
            return False
        return None if None in self.rows.values() else True

    def _well(self, value: float, limit: float) -> bool:
        return value <= limit if self.fewer_is_better else value >= limit

    @property
    def verdict(self) -> str:
        """For people."""
        if self.value is None:
            return "not measured"
        met = {None: "not all measured", False: "not met", True: "met"}[self.met]
        return met + ", aim too" * (self.met is True and self._well(self.value, self.aim))

    def as_json(self) -> dict[str, Any]:
        """With the verdict."""
        return {**asdict(self), "met": self.met, "verdict": self.verdict}


def bars(report: GpuReport) -> list[Bar]:
    """All of them: the first four are on single rows, of which the worst counts. Rows that a full
    run has and this one has not are unknown, but for those that a quick one leaves out."""
    quick, copy = report.settings.get("quick"), report.rates.get("copy")
    matmul = [row for row in GPU_ROWS if row.entry == "matmul"]
    floats = [r for r in matmul if r.type == "float32" and min(r.values.values()) >= 1024]
    halves = [r for r in matmul if r.type in _NARROW]
    grouped = [r for r in GPU_ROWS if r.entry == "group_convolution"]

    def rows(
        of: Iterable[Row], number: Callable[[Result], float | None]
    ) -> dict[str, float | None]:
        quickly = {row.name: row.quick for row in of}
        found = {r.name: number(r) for r in report.results if r.name in quickly}
        return {**{n: None for n, fast in quickly.items() if fast or not quick}, **found}

    def worst(name: str, unit: str, least: float, aim: float, own: dict[str, float | None]) -> Bar:
        value = min((v for v in own.values() if v is not None), default=None)
        return Bar(name, unit, least, aim, value, own)

    def beside_torch(result: Result) -> float | None:
        return result.ratio(peers=(TORCH,))

    def bandwidth(result: Result) -> float | None:
        ours = result.ours
        return None if not copy or ours is None else result.cost.bytes_moved / ours[1] / copy

    stream, bound = "pointwise, softmax, layernorm, moments at 64 MB and more", "copy bandwidth"
    whole = rows(filter(in_suite, GPU_ROWS), lambda result: result.ratio(peers=EITHER))
    slow = [name for name, ratio in whole.items() if ratio is not None and ratio < _LEAST_ROW]
    unit = "geometric mean, times the best of torch and torch.compile"
    ours, peer = (report.latencies.get(name) for name in OVERHEAD)
    launch = median(ours) / median(peer) if ours and peer else None
    return [
        worst("float32 matmul 1024 to 8192", "of cuBLAS, tf32 off", 0.8, 1.0,
              rows(floats, beside_torch)),
        worst("float16/bfloat16 matmul 4096", "of cuBLAS", 0.6, 0.9, rows(halves, beside_torch)),
        worst(stream, f"of the {bound}", 0.9, 0.95, rows(filter(streams, GPU_ROWS), bandwidth)),
        worst("grouped convolution, forward", "times cuDNN", 2.0, 5.0, rows(grouped, beside_torch)),
        Bar("whole suite", unit, 1.15, 1.5, mean_ratio(suite(report), EITHER), whole,
            complaint=f"below {_LEAST_ROW}: {', '.join(slow)}" if slow else ""),
        Bar("launch overhead", "times CuPy's RawKernel call", 1.5, 1.0, launch, {},
            fewer_is_better=True),
    ]  # fmt: skip


def own_bar(result: Result, report: GpuReport) -> str:
    """What a row reaches of the bar that it has of its own; empty if it has none."""
    for bar in bars(report)[:4]:
        if value := bar.rows.get(result.name):
            met = "met" if value >= bar.least else "not met"
            return f"{value:.2f} {bar.unit}: {met}"
    return ""


def lines(report: GpuReport) -> Iterator[str]:
    """Everything that is printed."""
    device = report.machine
    parts = [str(device["name"])]
    parts += [f"driver {device['driver']}"] if device.get("driver") else []
    parts += [f"{name} {version}" for name, version in report.versions.items()]
    yield f"{report.date}: " + ", ".join(parts)
    rates = [
        f"{rate / 1e9:.0f} GB/s copied (both directions)"
        if name == "copy"
        else f"{rate / 1e12:.3g} TFLOP/s {name}"
        for name, rate in report.rates.items()
    ]
    yield "ceilings: " + ("; ".join(rates) or "none were measured")
    for name, samples in report.latencies.items():
        yield f"  a call, {name}: {duration(median(samples))}"
    yield ""
    names = list(dict.fromkeys(n for r in report.results for n in r.entries if n not in OURS))
    head = ["work", *names, "tcl", "predicted", "ratio", "share", "peer's", "bar"]
    yield from columns([head, *(_cells(result, names, report) for result in report.results)])
    yield "times are medians; predicted: ours, by counts, with default options, not measured;"
    yield "ratio: best peer's time over ours; share: of the roofline;"
    yield "*: untuned default options; +: launched one by one, as it cannot be captured"
    yield ""
    yield from columns([*_means(report)])
    yield ""
    for bar in bars(report):
        yield from _bar(bar)
    yield from _remarks(report)


def columns(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells under one another: the first and the last column to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *middle, last in table:
        cells = [cell.rjust(w) for cell, w in zip(middle, widths[1:], strict=False)]
        yield "  ".join([first.ljust(widths[0]), *cells, last]).rstrip()


def _cells(result: Result, names: Sequence[str], report: GpuReport) -> list[str]:
    ceiling, best, ours = report.ceiling(THREADS), result.best_peer, result.ours
    if ours is None:
        failed = any(result.entries[n].error for n in OURS if n in result.entries)
        own = "failed" if failed else "-"
    else:
        own = _time(result, ours[0]) + ("" if ours[0] == TUNED else "*")
    shares = (_number(found and result.share(found[1], ceiling)) for found in (ours, best))
    peers = (_time(result, name) for name in names)
    counted = result.facts.get("predicted_seconds")
    predicted = "-" if counted is None else duration(counted)
    ratio, bar = _number(result.ratio()), own_bar(result, report)
    return [result.name, *peers, own, predicted, ratio, *shares, bar]


def _time(result: Result, name: str) -> str:
    entry = result.entries.get(name)
    if not isinstance(entry, GpuEntry):
        return "-"
    if entry.seconds is None:
        return "failed"
    return duration(entry.seconds) + ("" if entry.captured else "+")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _means(report: GpuReport) -> Iterator[list[str]]:
    yield ["geometric means over the suite", "best peer", "torch or torch.compile", ""]
    rows = suite(report)
    for kind in (*dict.fromkeys(r.kind for r in rows), "all"):
        own = [r for r in rows if kind in (r.kind, "all")]
        yield [kind, _number(mean_ratio(own)), _number(mean_ratio(own, EITHER)), ""]


def _bar(bar: Bar) -> Iterator[str]:
    sign = "at most" if bar.fewer_is_better else "at least"
    value = f"{_number(bar.value)} {bar.unit}"
    yield f"{bar.verdict.upper()}: {bar.name}: {value} ({sign} {bar.least:g}, aim {bar.aim:g})"
    if bar.complaint:
        yield f"  {bar.complaint}"


def _remarks(report: GpuReport) -> Iterator[str]:
    for name, reason in report.absent.items():
        yield f"without {name}: {reason}"
    if report.left_out:
        reasons = "; ".join(dict.fromkeys(report.left_out.values()))
        yield f"not measured, {reasons}: {', '.join(report.left_out)}"
    clocks = set[int | None]()
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.error:
                yield f"{result.name}, {name}: {entry.error}"
            if isinstance(entry, GpuEntry):
                clocks |= set(entry.mhz)
                held_down = Counter(reason for each in entry.held_down for reason in each)
                for reason, times in held_down.items():
                    samples = f"{times} of {len(entry.samples)} samples"
                    yield f"{result.name}, {name}: clock held down by {reason} in {samples}"
    known = sorted(c for c in clocks if c is not None)
    if known:
        yield f"clocks of the multiprocessors: {known[0]} to {known[-1]} MHz"
    else:
        yield "clocks, and what holds them down, are not known: nvidia-ml-py is not here"
    for probe in report.probes:
        if probe.error:
            yield f"{probe.name}: {probe.error}"
