"""Measures the programs of ``docs/gallery``, and writes the times into their pages.

    python -m benchmarks.gallery             # run all, save the times, and write the pages' tables
    python -m benchmarks.gallery --pages     # write tables and programs into the pages, run nothing
    python -m benchmarks.gallery --pictures  # draw the pages' pictures (with matplotlib)

Each program runs in a separate process with a separate tuning cache, on one thread unless
``THREADS`` has another number. It compares its results, and its contenders take turns. All of them
take about three minutes. Nothing else should run during this time.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.common import command, write
from tcl.bench import turns
from tcl.common.number_format import duration, plural, ratio_text

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/gallery"
RESULTS = ROOT / "benchmarks/results"
PROGRAMS = (
    "attention",
    "grouped_convolution",
    "group_norm",
    "wavenet",
    "kronecker",
    "product_quantised",
    "picture_stencil",
    "train_network",
    "tuned_convolution",
    "tuned_with_dask",
    "own_kernel",
)
THREADS = {"own_kernel": 2}
"""Of what is about sharing work among threads."""
PART = re.compile(r"(?<=<!-- (figures|program) -->\n).*?(?=<!-- end of \1 -->)", re.DOTALL)
Times = Mapping[str, float]


def main() -> None:
    """Run, and write."""
    parser = command("gallery", __doc__, "the times (JSON); the newest is what pages tell")
    parser.set_defaults(out=RESULTS / f"{time.strftime('%Y-%m-%d')}-gallery.json")
    parser.add_argument("--pages", action="store_true", help="write only the pages")
    parser.add_argument("--pictures", action="store_true", help="draw only the pictures")
    parser.add_argument("--only", help="run one program; print its times, save nothing")
    given = parser.parse_args()
    if given.pictures:
        from benchmarks.gallery_pictures import PICTURES

        for name in [given.only] if given.only else PROGRAMS:
            PICTURES[name]()
        return
    if given.only:
        print(measured(given.only))
        return
    if not given.pages:
        times = {name: measured(name) for name in PROGRAMS}
        write(given.out, {"programs": times})
    for name in PROGRAMS:
        page = PAGES / f"{name}.md"
        page.write_text(filled(name, page.read_text("utf-8"), newest_result()), "utf-8")


def threads_of(name: str) -> int:
    """Of kernels, and of the libraries beside them."""
    return THREADS.get(name, 1)


def measured(name: str) -> list[Times]:
    """Seconds of a call of each contender, for each comparison that a program prints."""
    print(f"== {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        number = str(threads_of(name))
        libraries = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        own = dict.fromkeys((*libraries, "TCL_NUM_THREADS"), number) | {"TCL_CACHE_DIR": folder}
        before = dict(os.environ)
        os.environ.update(own)  # before the process begins: libraries look at it once
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                return process.submit(_run, name, folder).result()
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run(name: str, folder: str) -> list[Times]:
    """Be the process of a program: run it as a user does, and keep what it compares."""
    found: list[Times] = []
    if name == "tuned_convolution":  # the process that tunes prints no times; a later one does
        _as_main(name, folder, [])
        print("(once more, to keep the times)", flush=True)
    compare = turns.compare_in_turns

    def kept(contenders: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
        found.append(times := compare(contenders, rounds))
        return times

    turns.compare_in_turns = kept
    _as_main(name, folder, ["--later"] if name == "tuned_convolution" else [])
    return found


def _as_main(name: str, folder: str, arguments: Sequence[str]) -> None:
    os.chdir(folder)
    sys.argv = [f"{name}.py", *arguments]
    runpy.run_path(str(ROOT / f"examples/{name}.py"), run_name="__main__")


def newest_result() -> dict[str, Any]:
    """What was measured last, of those that are committed."""
    found: dict[str, Any] = json.loads(max(RESULTS.glob("*-gallery.json")).read_text("utf-8"))
    return found


def filled(name: str, page: str, result: Mapping[str, Any]) -> str:
    """The page, with the times of the result and the text of the program."""
    program = (ROOT / f"examples/{name}.py").read_text("utf-8")
    parts = {
        "figures": figures(name, result),
        "program": f"<!-- not run: a program of examples/ -->\n```python\n{program}```\n",
    }
    return PART.sub(lambda match: parts[match[1]], page)


def figures(name: str, result: Mapping[str, Any]) -> str:
    """Markdown: a table for each comparison, and where it was measured."""
    lines = []
    for times in result["programs"][name]:
        first = next(iter(times.values()))
        lines += [
            f"| {plural(threads_of(name), 'thread')} | time per call | relative time |",
            "|---|---|---|",
        ]
        for contender, seconds in times.items():
            lines.append(f"| {contender} | {duration(seconds)} | {ratio_text(seconds / first)} |")
        lines.append("")
    lines.append(
        f"({result['machine']}; {result['date']}; medians of rounds in turns; load average at the "
        f"end {result['load'][0]})"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
