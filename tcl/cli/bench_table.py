"""The report for people: rich tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from tcl.bench.ceilings import Ceilings
from tcl.bench.report import DEFAULT, OURS, TUNED, Report, Result
from tcl.cli.tables import plain_table
from tcl.common.number_format import duration, plural


def print_report(report: Report, console: Console) -> None:
    """Everything: per number of threads the rows, the ceilings and the means; then the rest."""
    for threads in report.ceilings:
        for part in tables(report, threads):
            console.print(part)
        console.print()
    for name, reason in report.absent.items():
        console.print(f"without {name}: {reason}", highlight=False, markup=False)
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.error:
                text = f"{result.name}, {result.threads} threads, {name}: {entry.error}"
                console.print(text, highlight=False, markup=False)


def tables(report: Report, threads: int) -> Iterator[RenderableType]:
    """The parts of the report for one number of threads."""
    results = report.of(threads)
    ceiling = report.ceiling(threads)
    names = [n for n in dict.fromkeys(n for r in results for n in r.entries) if n not in OURS]
    temperature = "cold" if report.settings["cold"] else "warm"
    numbers = (*names, "tcl", "thr", "ratio", "default", "share", "peer's", "compile")
    table = plain_table("work", *(f">{heading}" for heading in numbers))
    table.title_justify = "left"
    table.title = (
        f"{plural(threads, 'thread')}, {temperature} cache; medians of "
        f"{report.settings['rounds']} interleaved rounds; ratio = best peer's time / ours"
    )
    kind = ""
    for result in results:
        if result.kind != kind:
            kind = result.kind
            table.add_row(f"[italic]{kind}[/italic]")
        table.add_row(*_cells(result, names, ceiling))
    yield table
    yield (
        f"ceilings: {ceiling.read / 1e9:.1f} GB/s read, {ceiling.copy / 1e9:.1f} GB/s copy "
        f"(both directions), {ceiling.flops / 1e9:.0f} GFLOP/s (best of "
        f"{len(report.ceilings[threads])} samples)"
    )
    yield _summary(report.as_json()["summary"][str(threads)])


def _cells(result: Result, names: Sequence[str], ceiling: Ceilings) -> list[str]:
    best, ours = result.best_peer, result.ours
    cells = [result.name]
    for name in names:
        entry = result.entries.get(name)
        seconds = None if entry is None else entry.seconds
        failed = "-" if entry is None else "failed"
        text = failed if seconds is None else duration(seconds)
        cells.append(f"[bold]{text}[/bold]" if best is not None and name == best[0] else text)
    if ours is None:
        wrong = any(result.entries[n].error for n in OURS if n in result.entries)
        return [*cells, "[red]failed[/red]" if wrong else "-", *[""] * 6]
    mark = "" if ours[0] == TUNED else "*"
    cells += [duration(ours[1]) + mark, str(result.entries[ours[0]].threads)]
    cells += [_ratio(result.ratio()), _ratio(result.ratio(DEFAULT))]
    cells.append(_number(result.share(ours[1], ceiling)))
    cells.append(_number(result.share(best[1], ceiling) if best else None))
    compiled = result.compile_seconds
    cells.append("-" if compiled is None else duration(compiled))
    return cells


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    colour = "green" if value >= 1 else "yellow" if value >= 0.93 else "red"
    return f"[{colour}]{value:.2f}[/{colour}]"


def _summary(summary: Mapping[str, Any]) -> Table:
    table = plain_table("geometric means", ">ratio", ">default")
    for kind, ratio in summary["ratio"].items():
        table.add_row(kind, _ratio(ratio), _ratio(summary["ratio_default"][kind]))
    if summary["worst"] is not None:
        table.add_row(f"worst: {summary['worst']['row']}", _ratio(summary["worst"]["ratio"]))
    if summary["default_over_tuned"] is not None:
        table.add_row("default / tuned", _ratio(summary["default_over_tuned"]))
    if summary["compile_seconds"] is not None:
        table.add_row("median compile time", duration(summary["compile_seconds"]))
    if summary["missing"]:
        table.add_row(f"rows without a ratio: {', '.join(summary['missing'])}")
    table.caption = "share: of the roofline; * : no tuned options are known, default ones used"
    table.caption_justify = "left"
    return table
