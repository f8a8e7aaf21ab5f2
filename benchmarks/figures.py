"""The measured figures in README, docs and the README of the benchmarks, from committed results.

    python -m benchmarks.figures          # writes what changed
    python -m benchmarks.figures --check  # names what is not current, and exits with 1

A figure stands between two comments, on one line or on several, ``<!-- NAME ARGUMENTS -->`` and
``<!-- end of NAME -->``. NAME is one of ``FIGURES``, which says what is written between them;
arguments are quoted as in a shell.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks import growth, picture
from benchmarks.common import command
from tcl.bench.report import Report
from tcl.bench.rows import SUITE_KINDS
from tcl.bench.task import OURS
from tcl.common.number_format import duration

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results"


def suite(name: str, placement: str = "aligned", part: str = "mean") -> str:
    """The best peer's time over ours in a report with one number of threads: the geometric mean of
    the suite, its ``least`` or its ``most``."""
    report = Report.from_json(_result(name))
    (threads,) = report.ceilings
    ratios = [r.ratio() for r in picture.suite(report, threads, placement)]
    found = [ratio for ratio in ratios if ratio is not None]
    parts = {"mean": geometric_mean(found), "least": min(found), "most": max(found)}
    return f"{parts[part]:.2f}"


def rows(name: str, row: str = "") -> str:
    """The best peer's time over ours in another result: of one row, or their geometric mean."""
    ratios = {each["name"]: each["ratio"] for each in _result(name)["rows"]}
    return f"{ratios[row] if row else geometric_mean(ratios.values()):.2f}"


GPU_RESULT = "2026-11-27-gpu-h100"
"""What ``python -m benchmarks.gpu`` wrote on a GPU: a new one takes its place."""


def gpu(part: str = "table", name: str = "") -> str:
    """Of the result on a GPU: the table of its rows, or one part. ``best`` and ``torch``: the time
    over ours of the best peer and of torch, the geometric mean of the suite. ``right``: how many
    rows of ours had right results. ``copy``: GB/s. ``bar``: the number of the bar that is called
    so. ``ratio`` and ``share``: the best peer's time over ours, and the share of the roofline, of
    the row that is called so. ``row``: its time."""
    data = _result(GPU_RESULT)
    results = {row["name"]: row for row in data["results"]}
    if part == "table":
        return "\n" + _gpu_table(data)
    if part in ("best", "torch"):
        key = "ratio" if part == "best" else "ratio_torch"
        own = [r["summary"][key] for r in results.values() if r["kind"] in SUITE_KINDS]
        return f"{geometric_mean(ratio for ratio in own if ratio is not None):.2f}"
    if part == "right":
        wrong = [r for r in results.values() if not any(map(r["summary"]["medians"].get, OURS))]
        return f"{len(results) - len(wrong)} of {len(results)}"
    if part == "copy":
        return f"{data['ceilings']['rates']['copy'] / 1e9:,.0f}"
    if part == "bar":
        (value,) = (bar["value"] for bar in data["bars"] if bar["name"] == name)
        return "-" if value is None else f"{value:.2f}"
    about = results[name]["summary"]
    if part == "row":
        return duration(min(t for n in OURS if (t := about["medians"].get(n)) is not None))
    return f"{about[{'ratio': 'ratio', 'share': 'share_ours'}[part]]:.2f}"


def _gpu_table(data: Any) -> str:
    """Times of all rows, in Markdown."""
    peers = list(dict.fromkeys(n for r in data["results"] for n in r["entries"] if n not in OURS))
    cells = [["", "tcl", "predicted", *peers, "best peer / tcl", "share of the roofline"]]
    cells.append(["---"] * len(cells[0]))
    for row in data["results"]:
        about, entries = row["summary"], row["entries"]

        def time(*names: str, about: Any = about, entries: Any = entries) -> str:
            found = [(t, n) for n in names if (t := about["medians"].get(n)) is not None]
            if not found:
                return "failed" if any(n in entries for n in names) else ""
            least, name = min(found)
            return duration(least) + "+" * (not entries[name]["captured"])

        predicted = row["facts"].get("predicted_seconds")
        numbers = (about["ratio"], about["share_ours"])
        cells.append(
            [
                *(row["name"], time(*OURS), "" if predicted is None else duration(predicted)),
                *(time(peer) for peer in peers),
                *("" if number is None else f"{number:.2f}" for number in numbers),
            ]
        )
    device = f"{data['device']['name']}, driver {data['device']['driver']}"
    versions = ", ".join(f"{n} {v}" for n, v in data["versions"].items() if n in _NAMED)
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in cells),
            "",
            *(f"- {b['name']}: {b['value']:.2f} {b['unit']}" for b in data["bars"] if b["value"]),
            "",
            f"({device}, {versions}; {data['date'][:10]})\n",
        ]
    )


_NAMED = ("cupy", "torch", "cuDNN", "triton")


def _result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


FIGURES: dict[str, Callable[..., str]] = {
    "table": lambda: (
        "\n" + picture.readme_table(Report.from_json(_result(picture.TABLE_RESULT.stem)))
    ),
    "growth": lambda: "\n" + growth.table(growth.load()),
    "suite": suite,
    "rows": rows,
    "gpu": gpu,
}
MARKED = re.compile(
    rf"(?P<mark><!-- (?P<name>{'|'.join(FIGURES)})(?P<arguments>[^\n]*?) -->)(?P<text>.*?)"
    r"(?=<!-- end of (?P=name) -->)",
    re.DOTALL,
)
MEASURED = re.compile(
    r"(?<![\w.])\d*\.?\d+(?:\s(?:ms|µs|ns|GB/s|GFLOP/s|TFLOP/s)\b|\stimes\sas\s(?:long|fast)\b)"
)
"""What looks like something that was measured."""
SOURCED = re.compile(r"results/|\d{4}-\d\d-\d\d-|benchmarks(?:\.\w|/README)|tcl (?:bench|tune)")
"""Where it is from: a result, or what prints it."""
ELSEWHERE = {
    ("benchmarks/README.md", "How it measures"): "settings of the benchmark",
    ("docs/arrays.md", "What a call takes"): "benchmarks.call_overhead",
    ("docs/model.md", "Choosing with it"): "an order of magnitude",
    ("docs/tuning.md", "What is measured is what runs"): "settings of the tuner",
    ("docs/varying.md", "Sizes that vary"): "benchmarks.varying",
    ("docs/when-not.md", "What the language cannot say"): "benchmarks.call_overhead",
}
"""(page, heading): sections with such numbers that name no source, and what they are from."""


def pages() -> list[Path]:
    """Those with figures."""
    return [
        ROOT / "README.md",
        ROOT / "benchmarks/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def current(text: str) -> str:
    """The text of a page with all figures as the results have them. ``KeyError``, ``ValueError`` or
    ``OSError`` for a mark that asks for what there is not."""
    return MARKED.sub(lambda m: m["mark"] + FIGURES[m["name"]](*shlex.split(m["arguments"])), text)


def unsourced() -> Iterator[tuple[str, str, str]]:
    """(page, heading, figure): what looks measured, has no mark, and no source in its section."""
    for page in pages():
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"<!-- (\w+).*?-->.*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
        for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
            found = MEASURED.search(section)
            if found and not SOURCED.search(section):
                heading = section.partition("\n")[0]
                yield page.relative_to(ROOT).as_posix(), heading, " ".join(found[0].split())


def main() -> None:
    """The command line."""
    parser = command("figures", __doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    changed = []
    for page in pages():
        before = page.read_text("utf-8")
        after = current(before)
        if after != before:
            changed.append(page)
            print(f"{'not current' if given.check else 'written'}: {page.relative_to(ROOT)}")
            if not given.check:
                page.write_text(after, "utf-8")
    if given.check and changed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
