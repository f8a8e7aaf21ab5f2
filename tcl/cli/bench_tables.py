"""A report of the benchmark suite as tables, and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table

from tcl.bench import summary
from tcl.bench.compare import Comparison, title
from tcl.bench.report import Report, bars
from tcl.bench.task import DEFAULT, OURS, TUNED
from tcl.cli.tables import plain_table, print_table
from tcl.common.number_format import duration, plural
from tcl.progress.console import Console
from tcl.tuner.measure.placement import PLACEMENTS


def print_report(report: Report, console: Console) -> None:
    """Everything: per number of threads the rows and the ceilings; then the means, and the rest."""
    for threads in report.ceilings:
        console.print(_rows(report, threads))
        console.print(_ceilings(report, threads))
        console.print()
    console.print(_means(report))
    console.print()
    for threads in report.ceilings:
        for bar in bars(report, threads):
            console.print(f"{plural(threads, 'thread')}: {bar}", highlight=False, markup=False)
    notes = [f"without {name}: {reason}" for name, reason in report.absent.items()]
    notes += [f"without {name}: {reason}" for name, reason in report.left_out.items()]
    for result in report.results:
        where = f"{result.name}, {plural(result.threads, 'thread')}, {result.placement} arrays"
        where += f", run {result.run}" * (report.settings.get("runs", 1) > 1)
        notes += [f"{where}, {n}: {e.error}" for n, e in result.entries.items() if e.error]
    for note in notes:
        console.print(note, highlight=False, markup=False)


def print_comparison(found: Comparison) -> None:
    """The rows of a comparison, the slowest first, and what is known besides."""
    table = plain_table("work", ">old", ">new", ">new / old", ">95 %", "verdict")
    for change in sorted(found.changes, key=lambda c: -c.ratio):
        interval = f"{change.low:.3f} to {change.high:.3f}"
        times = duration(change.old), duration(change.new)
        cells = title(change.place), *times, f"{change.ratio:.3f}", interval, change.verdict
        table.add_row(*cells)
    print_table(table)
    rows = plural(len(found.changes), "row")
    click.echo(f"geometric mean of {rows}: {found.mean:.3f}")
    if found.controls:
        click.echo(
            f"the peers did not change, but take {found.machine:.3f} times as long (median of "
            f"{plural(found.controls, 'row')}): the ratios above are divided by this number"
        )
    else:
        click.echo("the reports have too few rows of equal peers to correct for the machine")
    for difference in found.differences:
        click.echo(difference)


def _rows(report: Report, threads: int) -> Table:
    rows = summary.lines(report.results_of(threads))
    cells = {
        heading: column
        for heading, cell in _report_columns(report, threads).items()
        if {*(column := [cell(row) for row in rows])} != {"-"} or not heading.startswith(_OPTIONAL)
    }
    table = plain_table("work", *(f">{heading}" for heading in cells))
    table.title_justify = "left"
    settings = report.settings
    runs = settings.get("runs", 1)
    table.title = (
        f"{plural(threads, 'thread')}, {'cold' if settings['cold'] else 'warm'} cache, arrays "
        f"{' and '.join(report.placements)}; medians of {settings['rounds']} interleaved rounds"
        + (f", of {runs} runs; ± half the range between runs" if runs > 1 else "")
        + "; ratio = best peer's time / ours"
    )
    kind = ""
    for row, *own in zip(rows, *cells.values(), strict=True):
        if row.kind != kind:
            kind = row.kind
            table.add_row(f"[italic]{kind}[/italic]")
        table.add_row(row.name, *own)
    return table


_OPTIONAL = ("def/tuned", "+16/64")
"""Columns that are left out where no row has them."""


def _report_columns(report: Report, threads: int) -> dict[str, Callable[[summary.Line], str]]:
    """By heading, what a row has."""
    first, ceiling = report.placements[0], report.ceiling(threads)
    results = report.results_of(threads)
    peers = dict.fromkeys(n for r in results for n in r.entries if n not in OURS)
    columns: dict[str, Callable[[summary.Line], str]] = {
        **{name: partial(_peer, name=name, placement=first) for name in peers},
        "tcl": lambda row: _own(row, first),
        "thr": lambda row: _threads(row, first),
    }
    for heading, of in (
        ("ratio", summary.ratio),
        ("default", lambda placement: summary.ratio(placement, DEFAULT)),
        ("def/tuned", summary.gain),
    ):
        for p in report.placements:
            columns[f"{heading}{PLACEMENTS[p].heading}"] = partial(_ratio_cell, quantity=of(p))

    def shown_share(found: tuple[str, float] | None, result: summary.Result) -> float | None:
        return None if found is None else result.share(found[1], ceiling)

    return columns | {
        "+16/64": lambda row: _number(row.spread(summary.shift)),
        "share": lambda row: _middle(row, first, lambda r: shown_share(r.ours, r)),
        "peer's": lambda row: _middle(row, first, lambda r: shown_share(r.best_peer, r)),
        "compile": lambda row: _compile_seconds(row, first),
    }


def _ratio_cell(row: summary.Line, quantity: summary.Quantity) -> str:
    return _ratio(row.spread(quantity))


def _peer(row: summary.Line, name: str, placement: str) -> str:
    seconds = row.seconds(name, placement)
    if seconds is None:
        return "failed" if any(name in r.entries for r in row.all(placement)) else "-"
    best = any(r.best_peer is not None and r.best_peer[0] == name for r in row.all(placement))
    return f"[bold]{duration(seconds)}[/bold]" if best else duration(seconds)


def _own(row: summary.Line, placement: str) -> str:
    for name, mark in ((TUNED, ""), (DEFAULT, "*")):
        if (seconds := row.seconds(name, placement)) is not None:
            return duration(seconds) + mark
    wrong = any(r.entries[n].error for r in row.all(placement) for n in OURS if n in r.entries)
    return "[red]failed[/red]" if wrong else "-"


def _threads(row: summary.Line, placement: str) -> str:
    used = [r.entries[r.ours[0]].threads for r in row.all(placement) if r.ours is not None]
    return str(used[0]) if used else "-"


def _compile_seconds(row: summary.Line, placement: str) -> str:
    found = [t for r in row.all(placement) if (t := r.compile_seconds) is not None]
    return duration(median(found)) if found else "-"


def _middle(
    row: summary.Line, placement: str, value: Callable[[summary.Result], float | None]
) -> str:
    return _number(summary.Spread.over_runs(map(value, row.all(placement))))


def _number(found: summary.Spread | None) -> str:
    return "-" if found is None else f"{found.middle:.2f}"


def _ratio(found: summary.Spread | None) -> str:
    if found is None:
        return "-"
    colour = "green" if found.middle >= 1 else "yellow" if found.middle >= 0.93 else "red"
    return f"[{colour}]{found.middle:.2f}[/{colour}]{_range(found)}"


def _range(found: summary.Spread) -> str:
    return "" if found.low == found.high else f"±{(found.high - found.low) / 2:.2f}"


def _ceilings(report: Report, threads: int) -> str:
    ceiling = report.ceiling(threads)
    narrow = "".join(f", {r / 1e9:.0f} GOP/s {kind}" for kind, r in ceiling.products.items())
    apart = [round(1e9 * s.core_to_core) for s in report.ceilings[threads] if s.core_to_core]
    far = f", {min(apart)} to {max(apart)} ns from core to core" if apart else ""
    return (
        f"ceilings: {ceiling.read / 1e9:.1f} GB/s read, {ceiling.copy / 1e9:.1f} GB/s copy "
        f"(both directions), {ceiling.flops / 1e9:.0f} GFLOP/s float32{narrow}{far} (best of "
        f"{len(report.ceilings[threads])} samples)"
    )


def _means(report: Report) -> RenderableType:
    """One table of all numbers of threads and placements."""
    by_threads = {threads: summary.lines(report.results_of(threads)) for threads in report.ceilings}
    columns: list[tuple[str, int, summary.Quantity, bool]] = []
    for threads in by_threads:
        for p in report.placements:
            where = f"{threads} thr{PLACEMENTS[p].heading}"
            columns += [
                (f"{where} ratio", threads, summary.ratio(p), False),
                (f"{where} default", threads, summary.ratio(p, DEFAULT), False),
                (f"{where} def/tuned", threads, summary.gain(p), False),
            ]
        columns.append((f"{threads} thr +16/64", threads, summary.shift, True))
    columns = [c for c in columns if summary.mean(by_threads[c[1]], c[2]) is not None]
    table = plain_table("geometric means", *(f">{heading}" for heading, *_ in columns))
    names = dict.fromkeys(n for rows in by_threads.values() for n in summary.groups(rows))
    for name in names:
        cells = []
        for _, threads, quantity, least in columns:
            found = summary.mean(summary.groups(by_threads[threads]).get(name, []), quantity)
            text = "-" if found is None else f"{found.middle:.2f}{_range(found)}"
            cells.append(text if least else _ratio(found))
        table.add_row(name, *cells)
    cells = []
    for _, threads, quantity, least in columns:
        worst = summary.extreme(by_threads[threads], quantity, max if least else min)
        cells.append("-" if worst is None else f"{worst[1]:.2f} {worst[0]}")
    table.add_row("worst row", *cells)
    table.caption = _caption(by_threads, report)
    table.caption_justify = "left"
    return table


def _caption(by_threads: dict[int, list[summary.Line]], report: Report) -> str:
    """What marks in the table mean, what compiling took, and which rows have nothing to compare."""
    notes = ["share: of the roofline; *: not tuned, default options used"]
    every: Sequence[summary.Result] = report.results
    if compiled := [t for r in every if (t := r.compile_seconds) is not None]:
        notes.append(f"median compile time {duration(median(compiled))}")
    missing = dict.fromkeys(
        row.name
        for rows in by_threads.values()
        for row in rows
        if all(row.spread(summary.ratio(p)) is None for p in report.placements)
    )
    if missing:
        notes.append(f"rows without a ratio: {', '.join(missing)}")
    return "; ".join(notes)


_COLOURS = {"tuned": "#1f6fb2", "default": "#a9c8e3", "limit": "#444444"}


def draw(report: Report, threads: int, path: Path) -> None:
    """Write a picture (PNG, SVG or PDF, by the suffix). ``ImportError`` without matplotlib."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    first = report.placements[0]
    rows = [r for r in report.results_of(threads, first) if r.run == 1 and r.ratio() is not None]
    ceiling = report.ceiling(threads)
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.32 * max(1, len(rows))))
    for position, row in enumerate(rows):
        tuned, default, best = row.ratio() or 0.0, row.ratio(DEFAULT), row.best_peer
        axes.barh(position, tuned - 1, left=1, height=0.7, color=_COLOURS["tuned"])
        if default is not None:
            axes.plot(default, position, "|", color="black", markersize=11, markeredgewidth=2)
        if best is not None:
            share = row.share(best[1], ceiling) or 1.0
            axes.plot(1 / share, position, "D", color=_COLOURS["limit"], markersize=4)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    names = [f"{r.name}  (vs {r.best_peer[0]})" if r.best_peer else r.name for r in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlabel(
        "best peer's time / tcl's\nbars: best known options; |: untuned default; diamonds: roofline"
    )
    temperature = "cold" if report.settings["cold"] else "warm"
    axes.set_title(
        f"{report.machine['cpu']}\n{threads} thread(s), {temperature} cache, {report.date}",
        fontsize=9,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
