"""The report as a picture: one bar per row, the ratio on a logarithmic axis."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tcl.bench.peers.names import DEFAULT
from tcl.bench.report import Report

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
