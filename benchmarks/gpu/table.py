"""The report for people: plain text, as wide as it needs to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.gpu.bars import Bar, bars, row_number
from benchmarks.gpu.peer import COPY
from benchmarks.gpu.report import COMPILED, TORCH, Report, Result, mean_ratio
from tcl.bench.peers.names import OURS, TUNED

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def lines(report: Report) -> Iterator[str]:
    """Everything that is printed."""
    yield _title(report)
    yield from _ceilings(report)
    yield ""
    yield from _rows(report)
    yield ""
    yield from _means(report)
    yield ""
    for bar in bars(report):
        yield from _bar(bar)
    yield from _remarks(report)


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    scale, unit = next((u for u in _UNITS if seconds >= u[0]), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def _title(report: Report) -> str:
    device = report.device
    parts = [str(device["name"])]
    parts += [f"driver {device['driver']}"] if device.get("driver") else []
    parts += [f"{name} {version}" for name, version in report.versions.items()]
    return f"{report.date}: " + ", ".join(parts)


def _ceilings(report: Report) -> Iterator[str]:
    rates = report.ceilings.rates
    words = [
        f"{rate / 1e9:.0f} GB/s copied (both directions)"
        if name == COPY
        else f"{rate / 1e12:.3g} TFLOP/s {name}"
        for name, rate in rates.items()
    ]
    yield "ceilings: " + ("; ".join(words) or "none were measured")
    for name, samples in report.latencies.items():
        yield f"  a call, {name}: {duration(median(tuple(samples)))}"


def _rows(report: Report) -> Iterator[str]:
    names = list(dict.fromkeys(n for r in report.results for n in r.entries if n not in OURS))
    head = ["work", *names, "tcl", "ratio", "share", "peer's", "bar"]
    body = [_cells(result, names, report) for result in report.results]
    yield from columns([head, *body])
    yield "times are medians; ratio: best peer's time over ours; share: of the roofline;"
    yield "*: untuned default options; +: launched one by one, as it cannot be captured"


def columns(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells under one another: the first and the last column to the left, others to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        cells = [
            cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _cells(result: Result, names: Sequence[str], report: Report) -> list[str]:
    best, ours = result.best(), result.ours
    cells = [result.name, *(_time(result, name) for name in names)]
    if ours is None:
        failed = any(result.entries[n].error for n in OURS if n in result.entries)
        cells += ["failed" if failed else "-", "-", "-"]
    else:
        cells.append(_time(result, ours[0]) + ("" if ours[0] == TUNED else "*"))
        cells += [_number(result.ratio()), _number(result.share(ours[1], report.ceilings))]
    cells.append(_number(result.share(best[1], report.ceilings) if best else None))
    cells.append(_own_bar(result, report))
    return cells


def _own_bar(result: Result, report: Report) -> str:
    found = row_number(result, report)
    if found is None or found[1] is None:
        return ""
    bar = next(b for b in bars(report) if b.name == found[0])
    met = "met" if found[1] >= bar.least else "not met"
    return f"{found[1]:.2f} {bar.unit}: {met}"


def _time(result: Result, name: str) -> str:
    entry = result.entries.get(name)
    if entry is None:
        return "-"
    if entry.seconds is None:
        return "failed"
    return duration(entry.seconds) + ("" if entry.captured else "+")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _means(report: Report) -> Iterator[str]:
    suite = [r for r in report.results if r.suite]
    groups = {kind: [r for r in suite if r.kind == kind] for kind in dict.fromkeys(
        r.kind for r in suite)}  # fmt: skip
    yield from columns(
        [
            ["geometric means over the suite", "best peer", "torch or torch.compile", ""],
            *(
                [name, _number(mean_ratio(rows)), _number(mean_ratio(rows, (TORCH, COMPILED))), ""]
                for name, rows in {**groups, "all": suite}.items()
            ),
        ]
    )


def _bar(bar: Bar) -> Iterator[str]:
    sign = "at most" if bar.fewer_is_better else "at least"
    value = "-" if bar.value is None else f"{bar.value:.2f}"
    yield (
        f"{bar.verdict.upper()}: {bar.name}: {value} {bar.unit} "
        f"({sign} {bar.least:g}, aim {bar.aim:g})"
    )
    if bar.complaint:
        yield f"  {bar.complaint}"


def _remarks(report: Report) -> Iterator[str]:
    for name, reason in report.absent.items():
        yield f"without {name}: {reason}"
    if report.skipped:
        yield f"not measured, {_reasons(report)}: {', '.join(report.skipped)}"
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.error:
                yield f"{result.name}, {name}: {entry.error}"
    for probe in report.probes:
        if probe.error:
            yield f"{probe.name}: {probe.error}"


def _reasons(report: Report) -> str:
    return "; ".join(dict.fromkeys(report.skipped.values()))
