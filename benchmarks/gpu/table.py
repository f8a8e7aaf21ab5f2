"""The report for people: plain text, as wide as it needs to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.gpu.report import (
    EITHER,
    THREADS,
    Bar,
    GpuEntry,
    GpuReport,
    bars,
    mean_ratio,
    own_bar,
    suite,
)
from tcl.bench.summary import Result
from tcl.bench.task import OURS, TUNED
from tcl.common.number_format import duration


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
    head = ["work", *names, "tcl", "ratio", "share", "peer's", "bar"]
    yield from columns([head, *(_cells(result, names, report) for result in report.results)])
    yield "times are medians; ratio: best peer's time over ours; share: of the roofline;"
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
    return [result.name, *peers, own, _number(result.ratio()), *shares, own_bar(result, report)]


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
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.error:
                yield f"{result.name}, {name}: {entry.error}"
    for probe in report.probes:
        if probe.error:
            yield f"{probe.name}: {probe.error}"
