"""What work costs as it grows: statements, dimensions, population, knobs, entries of a cache.

    python -m benchmarks.growth --out FILE       # everything, ten minutes
    python -m benchmarks.growth --only cache     # one of the subjects
    python -m benchmarks.growth --draw           # the committed result as docs/pictures/growth.svg

A subject is a way to grow; its parts are timed one after the other by this thread's own time, the
median of several, so that what else runs on the machine counts for little. The exponent is that of
the power of n that fits the larger half of the numbers best, and stands beside that of n log n over
the same numbers. No GPU is needed, and kernels are not run.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import median
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import command, write
from benchmarks.compiling import CPU
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.options.knobs import Knob
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu, gpu
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax.parser import parse
from tcl.tuner.cache import table_rows
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.strategy import SearchSettings

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks/results/2026-11-26-growth.json"
PICTURE = ROOT / "docs/pictures/growth.svg"
DEFAULT = MappingOptions("mlp")
STATEMENTS = (1, 12, 25, 50, 100, 200)
MORE = (*STATEMENTS, 400, 800)
POPULATIONS = (10, 20, 40, 80, 160)
KNOBS = (4, 8, 16, 32, 64)
ENTRIES = (10**3, 10**4, 10**5, 10**6)
RECORDS = (10, 20, 50, 100, 200)
_RECORDS = 20
"""Entries of one key."""
_EVALUATIONS = 320
_ENOUGH, _MOST = 0.5, 7
"""Seconds after which nothing is timed again, and how often at most."""

Parts = dict[str, float]


class Text(NamedTuple):
    """A def called ``f``, and shapes for it."""

    source: str
    shapes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Series:
    """What one part of a subject costs."""

    subject: str
    part: str
    n: tuple[int, ...]
    seconds: tuple[float, ...]

    def exponent(self) -> float:
        """Of the power of n that fits the seconds of the larger half of the n best."""
        return self._slope(self.seconds)

    def n_log_n(self) -> float:
        """The exponent that n log(n + 1) would have."""
        return self._slope([n * math.log(n + 1) for n in self.n])

    def _slope(self, values: Sequence[float]) -> float:
        count = max(3, len(self.n) // 2)
        x, y = np.log([*zip(self.n, values, strict=True)][-count:]).T
        return float(np.polyfit(x, y, 1)[0])


def products(count: int, size: int = 64) -> Text:
    """A chain of matrix products."""
    return _chain(count, size, "T{i}(m, n) +=! T{before}(m, k) * B(k, n)")


def elementwise(count: int, size: int = 64) -> Text:
    """A chain of products of elements."""
    return _chain(count, size, "T{i}(m, n) = T{before}(m, n) * B(m, n)")


def by_row(count: int, size: int = 64) -> Text:
    """A chain of sums over rows."""
    return _chain(count, size, "T{i}(m) +=! T{before}(m) * B(m, k)", "A(m, 0)")


def _chain(count: int, size: int, statement: str, first: str = "") -> Text:
    lines = [statement.format(i=i, before=i - 1) for i in range(1, count + 1)]
    lines[0] = lines[0].replace("T0(m)" if first else "T0", first or "A")
    outputs = ", ".join(f"T{i}" for i in range(1, count + 1))
    body = "\n".join(lines)
    source = f"def f(float(M, N) A, float(N, N) B) -> ({outputs}) {{\n{body}\n}}"
    return Text(source, {"A": (size, size), "B": (size, size)})


def transposed(count: int) -> Text:
    """A product of the elements of two tensors, one of them with its dimensions reversed."""
    names = ascii_lowercase[:count]
    x, y = ", ".join(names), ", ".join(reversed(names))
    inputs = f"float({x.upper()}) X, float({y.upper()}) Y"
    source = f"def f({inputs}) -> (out) {{ out({x}) = X({x}) * Y({y}) }}"
    return Text(source, {"X": (2,) * count, "Y": (2,) * count})


def contraction(count: int) -> Text:
    """A contraction with so many dimensions, two at least: half of them reduced, in another order
    in the other factor."""
    names = ascii_lowercase[: max(1, count - 1)]
    results, reduced = names[: len(names) // 2], names[len(names) // 2 :]
    x, y, out = ", ".join(names), ", ".join([*reversed(reduced), "q"]), ", ".join([*results, "q"])
    source = (
        f"def f(float({x.upper()}) X, float({y.upper()}) Y) -> (out) "
        f"{{ out({out}) +=! X({x}) * Y({y}) }}"
    )
    return Text(source, {"X": (3,) * len(names), "Y": (*[3] * len(reduced), 4)})


def window(count: int) -> Text:
    """A convolution with half of so many dimensions, and a window in each."""
    results, reduced = ascii_lowercase[: count // 2], ascii_lowercase[count // 2 : count]
    x, w = ", ".join(results), ", ".join(reduced)
    at = ", ".join(f"{i} + {j}" for i, j in zip(results, reduced, strict=True))
    inputs = f"float({x.upper()}) X, float({w.upper()}) W"
    source = f"def f({inputs}) -> (out) {{ out({x}) +=! X({at}) * W({w}) }}"
    return Text(source, {"X": (4,) * len(results), "W": (2,) * len(reduced)})


def compiling(make: Callable[[int], Text], big: Callable[[int], Text] | None = None) -> Subject:
    """Each stage from text to object code; ``big``: what is scheduled for a GPU, if not the same,
    as small tensors are one block's work there."""

    def parts(n: int) -> Parts:
        text = make(n)
        found = {"parse": timed(lambda: parse(text.source))}
        found["check"] = timed(lambda: check(text.source)) - found["parse"]
        checked = check(text.source)["f"]
        found["ranges"] = timed(lambda: infer(checked, text.shapes))
        sized = infer(checked, text.shapes)

        def planned() -> object:
            cpu.default_plan.cache_clear()
            return cpu.schedule(sized, DEFAULT, CPU, cpu_layouts(sized))

        found["schedule, CPU"] = timed(planned)
        other = big(n) if big is not None else text
        large = infer(check(other.source)["f"], other.shapes)
        found["schedule, H200"] = timed(
            lambda: gpu.schedule(large, DEFAULT, H200, gpu_layouts(large))
        )
        built = cpu.schedule(sized, DEFAULT, CPU, cpu_layouts(sized))
        found["emit"] = timed(lambda: emit_program(built, CPU))
        source = emit_program(built, CPU).text
        found["LLVM"] = timed(lambda: compile_object(source, CPU))
        return found

    return parts


def searching(population: int, knobs: int) -> Parts:
    """The searcher's own seconds for each candidate, by strategy, on a space whose knobs add up."""
    space = SearchSpace(tuple(Knob(f"k{i}", (1, 2, 4, 8), 1, ordered=True) for i in range(knobs)))

    def seconds_of(config: Config) -> float:
        return 1.0 + sum(abs(float(v) - i % 5) for i, v in enumerate(config))

    def search(strategy: str) -> int:
        settings = SearchSettings(population=population, elites=population // 2)
        made = make_strategy(strategy, space, Random(1), settings)
        count = 0
        while count < _EVALUATIONS and (asked := made.ask()):
            made.tell([(config, seconds_of(config)) for config in asked])
            count += len(asked)
        return count

    found = {}
    for strategy in ("random", "genetic", "screened"):
        found[strategy] = timed(partial(search, strategy)) / search(strategy)
    return found


def cache(entries: int, each: int = _RECORDS) -> Parts:
    """A look-up in a cache with so many entries, some ``each`` key."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tuning.db"
        store, keys = TuningCache(path), [_key(i) for i in range(entries // each)]

        def fill(db: Any) -> None:
            for i, key in enumerate(keys):
                records = [_record(i, k) for k in range(each)]
                table_rows.insert(db, table_rows.problem_id(db, key, "f"), records)

        store.transaction(fill)
        rng = Random(0)

        def first() -> object:
            opened = TuningCache(path)
            found = opened.best(rng.choice(keys))
            opened.close()
            return found

        assert store.best(keys[-1]) is not None and first() is not None
        found = {
            "look-up": timed(lambda: store.best(rng.choice(keys)), least=200),
            "not there": timed(lambda: store.best(_key(entries + rng.randrange(99))), least=200),
            "open, and look up": timed(first, least=30),
        }
        store.close()
        return found


def _key(i: int) -> CacheKey:
    layout = ArrayLayout((i + 1, 64), (64, 1), "float32")
    return CacheKey("a text", "cpu", (layout,), "a processor", "1")


def _record(key: int, k: int) -> Record:
    options = json.dumps({"preset": "naive", "nests": [{"tile": [key, k]}]})
    samples = (1e-3 + 1e-6 * k,) * 5
    return Record(options, Verdict.CORRECT, samples[0], samples, "", float(k), f"run {key}")


Subject = Callable[[int], Parts]
SUBJECTS: dict[str, tuple[str, Sequence[int], Subject]] = {
    "chained products": (
        "statements", STATEMENTS, compiling(products, lambda n: products(n, 1024)),
    ),
    "chained elementwise": (
        "statements", MORE, compiling(elementwise, lambda n: elementwise(n, 1024)),
    ),
    "chained sums over rows": (
        "statements", STATEMENTS, compiling(by_row, lambda n: by_row(n, 1024)),
    ),
    "elementwise": ("dimensions", range(1, 13), compiling(transposed)),
    "contraction": ("dimensions", range(2, 13), compiling(contraction)),
    "window": ("dimensions", range(2, 13, 2), compiling(window)),
    "population": ("candidates", POPULATIONS, lambda n: searching(n, 16)),
    "knobs": ("knobs", KNOBS, lambda n: searching(20, n)),
    "cache": ("entries", ENTRIES, cache),
    "one key of a cache": ("entries", RECORDS, lambda n: cache(n, n)),
}  # fmt: skip
"""What grows: in what it is counted, how far, and what its parts take."""


def timed(call: Callable[[], object], least: int = 1) -> float:
    """Median seconds of this thread, after a call that is not counted where that is quick."""
    found: list[float] = []
    call_seconds = _once(call)
    if call_seconds > _ENOUGH:
        return call_seconds
    while len(found) < least or (len(found) < _MOST and sum(found) < _ENOUGH):
        found.append(_once(call))
    return median(found)


def _once(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def measure(names: Sequence[str]) -> Iterator[Series]:
    """Each part of the subjects."""
    for name in names:
        _, counts, parts = SUBJECTS[name]
        parts(counts[0])  # imports, and what is computed once in a process
        found = [parts(n) for n in counts]
        for part in found[0]:
            yield Series(name, part, tuple(counts), tuple(each[part] for each in found))


def load(path: Path = RESULT) -> list[Series]:
    """A result."""
    data = json.loads(path.read_text("utf-8"))
    return [
        Series(s["subject"], s["part"], tuple(s["n"]), tuple(s["seconds"])) for s in data["series"]
    ]


def table(series: Sequence[Series]) -> str:
    """Markdown: each part at some sizes, in milliseconds, and the exponents."""
    lines = []
    subject = ""
    for one in series:
        if one.subject != subject:
            subject = one.subject
            unit = SUBJECTS[one.subject][0]
            shown = sorted({0, len(one.n) // 2, len(one.n) - 1})
            lines += [
                "",
                f"| {one.subject}, ms by {unit} | "
                + " | ".join(f"{one.n[k]}" for k in shown)
                + " | exponent | of n log n |",
                "|---|" + "---|" * (len(shown) + 2),
            ]
        times = " | ".join(f"{1000 * one.seconds[k]:.3g}" for k in shown)
        lines.append(f"| {one.part} | {times} | {one.exponent():.2f} | {one.n_log_n():.2f} |")
    return "\n".join(lines[1:]) + "\n"


def draw(series: Sequence[Series], path: Path) -> None:
    """A panel for each subject; panels of the same parts share a legend. ``ImportError`` without
    matplotlib."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    subjects = list(dict.fromkeys(s.subject for s in series))
    style = {"svg.fonttype": "none", "svg.hashsalt": "tcl", "font.size": 8}
    # Each tick, frame and marker is some elements of the file, and each text names its fonts.
    few = {"font.sans-serif": ["DejaVu Sans"], "xtick.major.size": 0, "ytick.major.size": 0}
    with pyplot.rc_context(style | few):
        figure, panels = pyplot.subplots(2, -(-len(subjects) // 2), figsize=(12, 6))
        explained: list[str] = []
        for axes, subject in zip(panels.flat, subjects, strict=False):
            for one in (s for s in series if s.subject == subject):
                milliseconds = [1000 * t for t in one.seconds]
                axes.plot(one.n, milliseconds, label=one.part, linewidth=1)
            axes.set(xscale="log", yscale="log", title=subject, xlabel=SUBJECTS[subject][0])
            axes.minorticks_off()
            axes.xaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.spines[:].set_visible(False)
            axes.grid(color="#d8d6d0", linewidth=0.6)
            parts = [one.part for one in series if one.subject == subject]
            if parts != explained:
                axes.legend(fontsize=6, edgecolor="none", framealpha=0.6)
            explained = parts
        for axes in panels[:, 0]:
            axes.set_ylabel("milliseconds")
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    text = re.sub(r"\s*\n\s*", "\n", path.read_text("utf-8"))
    path.write_text(re.sub(r"<g id=\S+/>\n", "", text), "utf-8")


def main() -> None:
    """The command line."""
    parser = command("growth", __doc__)
    parser.add_argument(
        "--only", choices=SUBJECTS, action="append", help="measure only this subject"
    )
    parser.add_argument("--draw", action="store_true", help="draw the committed result instead")
    given = parser.parse_args()
    if given.draw:
        draw(load(), PICTURE)
        return
    found = []
    for one in measure(given.only or [*SUBJECTS]):
        found.append(one)
        times = "".join(f"{1000 * t:10.3g}" for t in one.seconds)
        print(f"{one.subject:24}{one.part:18}{times}  n^{one.exponent():.2f}", flush=True)
    write(given.out, {"series": [vars(s) for s in found]})


if __name__ == "__main__":
    main()
