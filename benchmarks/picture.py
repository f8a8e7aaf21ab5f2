"""Draws the benchmark suite as one picture, and writes the table on README's first screen.

    python -m benchmarks.picture                                 # docs/pictures/benchmark.svg
    python -m benchmarks.picture --result bench.json --threads 1 --out one.svg
    python -m benchmarks.picture --table                         # in README.md

The picture shows, row by row, how many times as long as tcl each peer takes. The input is a report
of ``tcl bench cpu --out FOLDER``. It needs matplotlib (``pip install '.[bench]'``). Text stays
text, and the picture has its own background.
"""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common import command
from tcl.bench.report import Report
from tcl.bench.rows import SUITE_KINDS
from tcl.bench.summary import Result, geometric_mean
from tcl.bench.task import OURS, TUNED

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks/results/2026-11-22-cpu-suite-2-threads.json"
TABLE_RESULT = ROOT / "benchmarks/results/2026-11-24-cpu-suite.json"
PICTURE = ROOT / "docs/pictures/benchmark.svg"
README = ROOT / "README.md"
IN_README = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
TABLE_ROWS = (
    "softmax 4096x1024",
    "group norm N8 C512 48x48",
    "grouped conv C4@56",
    "matmul 1024",
    "row sum 4096x4096",
)
"""Rows of README's table: three that other libraries compute in several steps, the most common
product, and the row where tcl does worst."""
COLOURS = {
    "NumPy": "#4a7fb5",
    "torch": "#d9662b",
    "torch.compile": "#e8a33d",
    "JAX": "#7a5aa6",
    "Halide": "#5b9a57",
}
_PAPER, _INK, _LINES = "#fbfaf7", "#26292e", "#d8d6d0"


def main() -> None:
    """Draw."""
    parser = command("picture", __doc__, "the picture (SVG)")
    parser.set_defaults(out=PICTURE)
    parser.add_argument("--result", type=Path, default=RESULT, help="a report (JSON)")
    parser.add_argument(
        "--threads", type=int, help="rows with this number of threads; default: the largest"
    )
    parser.add_argument("--table", action="store_true", help="write README's table instead")
    given = parser.parse_args()
    if given.table:
        table = readme_table(Report.from_json(json.loads(TABLE_RESULT.read_text("utf-8"))))
        README.write_text(IN_README.sub(lambda _: table, README.read_text("utf-8")), "utf-8")
        return
    report = Report.from_json(json.loads(given.result.read_text("utf-8")))
    threads = given.threads or max(report.ceilings)
    if threads not in report.ceilings:
        parser.error(f"{given.result} has no rows with {threads} threads")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    draw(report, threads, given.out)
    print(f"written: {given.out}")


def draw(report: Report, threads: int, path: Path) -> None:
    """Write the picture. ``ImportError`` without matplotlib."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    rows = sorted((r for r in suite(report, threads) if r.ratio()), key=lambda r: r.ratio() or 0.0)
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "tcl",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(8.2, 1.5 + 0.235 * len(rows)), facecolor=_PAPER)
        axes.set_facecolor(_PAPER)
        for position, row in enumerate(rows):
            for peer, ratio in ratios(row).items():
                axes.plot(
                    ratio, position, "o", color=COLOURS[peer], markersize=6, markeredgecolor=_PAPER
                )
        axes.axvline(1, color=_INK, linewidth=1.4)
        _axes(matplotlib, axes, [row.name for row in rows])
        peers = dict.fromkeys(peer for row in rows for peer in ratios(row))
        handles = [
            matplotlib.lines.Line2D([], [], marker="o", linestyle="", color=COLOURS[p], label=p)
            for p in COLOURS
            if p in peers
        ]
        axes.legend(handles=handles, loc="lower right", facecolor=_PAPER, edgecolor=_LINES)
        mean = geometric_mean(row.ratio() for row in rows) or 0.0
        axes.set_title(
            f"The best peer takes {mean:.2f} times as long as tcl (geometric mean of "
            f"{len(rows)} rows)",
            fontsize=11,
            fontweight="bold",
            loc="left",
            x=-0.38,
            pad=34,
        )
        axes.text(-0.38, 1.015, _caption(report, threads), transform=axes.transAxes, fontsize=8)
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None})
        # Whoever has not this font has a similar one.
        text = path.read_text("utf-8").replace(
            "'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif"
        )
        path.write_text(text, "utf-8")
        pyplot.close(figure)


def readme_table(report: Report) -> str:
    """Markdown: the ``TABLE_ROWS``, one thread, ours beside each peer, in milliseconds."""
    (threads,) = report.ceilings
    rows = {row.name: row for row in suite(report, threads)}
    peers = [name for name in COLOURS if name in rows[TABLE_ROWS[0]].entries]
    lines = [f"| one thread, milliseconds | tcl | {' | '.join(peers)} | best peer / tcl |"]
    lines.append("|---|" + "---|" * (len(peers) + 2))
    for name in TABLE_ROWS:
        row = rows[name]
        assert row.ours is not None
        times = [row.ours[1], *(row.entries[peer].seconds or math.nan for peer in peers)]
        shown = " | ".join(f"{1000 * seconds:.2f}" for seconds in times)
        lines.append(f"| {name} | {shown} | {row.ratio() or 0:.2f} |")
    found = [row.ratio() or math.nan for row in rows.values()]
    lines += [
        "",
        f"Over all {len(rows)} operations of the suite, without any tuning, the best of the "
        f"{len(peers)} peers",
        f"takes **{geometric_mean(found):.2f} times** as long as `tcl` (geometric mean; least "
        f"{min(found):.2f}, most {max(found):.2f}).",
        f"({report.machine['cpu']}; {report.date[:10]})",
        "",
    ]
    return "\n".join(lines)


def suite(report: Report, threads: int, placement: str = "") -> list[Result]:
    """The rows of the suite in the first run, on a placement, by default the first."""
    found = report.results_of(threads, placement or report.placements[0])
    return [row for row in found if row.run == 1 and row.kind in SUITE_KINDS]


def ratios(row: Result) -> dict[str, float]:
    """Each peer's time over ours, with the best options known."""
    own = row.ours
    assert own is not None
    return {
        name: entry.seconds / own[1]
        for name, entry in row.entries.items()
        if name not in OURS and entry.seconds is not None
    }


def _axes(matplotlib: Any, axes: Any, names: list[str]) -> None:
    axes.set_xscale("log")
    ticks = [0.5, 1, 2, 5, 10, 20, 50, 100]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_xlim(0.6)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.grid(axis="both", color=_LINES, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.set_xlabel("times as long as tcl takes (line: tcl itself; to its right tcl is faster)")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _caption(report: Report, threads: int) -> str:
    tuned = any(TUNED in row.entries for row in suite(report, threads))
    options = "tuned options" if tuned else "untuned defaults (no search)"
    versions = ", ".join(
        f"{name} {report.versions[name]}"
        for name in ("numpy", "torch", "jax", "halide")
        if name in report.versions
    )
    plural = "" if threads == 1 else "s"
    return (
        f"{options}, {threads} thread{plural}; {versions}; {report.date[:10]}\n"
        f"{report.machine['cpu']}"
    )


if __name__ == "__main__":
    main()
