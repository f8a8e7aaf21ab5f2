"""How good the default search is on our own spaces: against the best of many random options.

    python -m benchmarks.own_spaces --out benchmarks/results/DATE-own-spaces.json   # 30 minutes
    python -m benchmarks.own_spaces --defs matmul,tmm --random 200 --runs 2         # an impression

See ``benchmarks/README.md`` for what is counted and how.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from tcl import tuning
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.cpu_backend import CpuBackend
from tcl.codegen.options.options import MappingOptions
from tcl.common.scratch_folder import workspace
from tcl.executors.call_kernels import size
from tcl.grammar.check.definitions import check
from tcl.selection.best_options import DEFAULT, cache_key
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.evaluate import compute_reference, race_candidates, set_up
from tcl.tuner.measure.timing import MeasureSettings, together
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.workers.pool import WorkerPool

EXAMPLES = Path(__file__).parent.parent / "examples"
DEFS = {
    "matmul": ("matmul", "M=256,N=256,K=256"),
    "tmm": ("tmm", "M=128,N=256,K=1024"),
    "group_convolution": ("group_convolution", "N=4,G=16,C=8,F=8,H=28,W=28,KH=3,KW=3"),
    "softmax_twice": ("softmax", "N=256,D=1024"),
    "moments": ("moments", "N=256,K=4608"),
}
"""Def → example file and sizes: kinds that differ, kernels of 0.05 to 1 ms."""
STARTS: dict[str, tuple[MappingOptions, ...]] = {"nothing": (), "presets": tuning.STARTS}
"""What runs start from: nothing, or as users' runs do."""
EVALUATIONS = 100
GOOD = 0.97
"""What the median run has to reach of the best random options."""
_BATCH = 100
"""Random options per generation."""
_RACED = 12
"""The fastest random options, which race for who is the best."""
_RACES = 5


@dataclass(frozen=True, slots=True)
class Run:
    """One search and its winner."""

    seed: int
    evaluations: int
    found: float
    """Seconds per call of its winner, as the search measured it."""
    time: float
    """In the race."""
    options: str


@dataclass(frozen=True, slots=True)
class Row:
    """One def."""

    name: str
    sizes: str
    random: int
    """Random options that were evaluated."""
    works: int
    """How many of these are correct."""
    best: float
    """Seconds per call of the best of them, in the race with the winners."""
    best_options: str
    default: float
    """Of the untuned default, in the same race."""
    runs: dict[str, tuple[Run, ...]] = field(repr=False)
    """By what they started from."""
    seconds: float

    def ratios(self, start: str) -> list[float]:
        """Best random time / winner's time, of each run."""
        return [self.best / run.time for run in self.runs[start]]


class Subject:
    """A def with inputs, searched and raced on one core."""

    def __init__(self, name: str, folder: str) -> None:
        file, self.sizes = DEFS[name]
        self.name = name
        source = (EXAMPLES / f"{file}.tc").read_text("utf-8")
        checked = check(source)[name]
        inputs = random_inputs(checked, parse_sizes(self.sizes, checked), 0)
        self.backend = CpuBackend.create(source, name, inputs, folder, 1)
        self._space = MappingSpace(self.backend.program(), self.backend.device)
        self._key = cache_key(size(checked, inputs), inputs, 1)
        self._folder = Path(folder)
        self._searches = 0

    def search(
        self, config: TunerConfig, start: Sequence[MappingOptions] = ()
    ) -> TuningResult[MappingOptions]:
        """One search, with a cache that is empty."""
        self._searches += 1
        cache = TuningCache(self._folder / f"{self._searches}.db")
        tuner = Tuner(self.backend, self._space, config=config, cache=cache, key=self._key)
        return tuner.tune(start)

    def race(self, options: Sequence[MappingOptions]) -> list[float]:
        """Seconds per call of each: the best median of several races like those of a search's
        finals, as other programs only ever make a race slower."""
        _, cores = split_cores(available_cores())
        reference = compute_reference(self.backend)
        setup = (self.backend, reference.outputs, MeasureSettings())
        codes = [self.backend.compile(each) for each in options]
        pool = WorkerPool(1, initializer=set_up, initargs=setup, cpus=cores)
        try:
            races = [pool.submit(race_candidates, codes).result() for _ in range(_RACES)]
        finally:
            pool.kill()
        return [min(median(together(race[k])) for race in races) for k in range(len(options))]


def fastest(result: TuningResult[MappingOptions], count: int) -> list[MappingOptions]:
    """The winner of a search and those that were the fastest on their own."""
    ranked = sorted(
        (c for c in result.history if c.time is not None), key=lambda c: c.time or math.inf
    )
    winner = [result.options] if result.options is not None else []
    return list(dict.fromkeys([*winner, *(c.options for c in ranked[:count])]))


def compare(name: str, count: int, runs: int, seed: int) -> Row:
    """Search one def at random and by the default strategy, and race what they found."""
    began = time.monotonic()
    with workspace() as folder:
        subject = Subject(name, folder)
        batch = min(_BATCH, count)
        chance = TunerConfig(
            strategy="random", population=batch, elites=0, generations=-(-count // batch), seed=seed
        )
        drawn = subject.search(chance)
        _say(f"{name}: {len(drawn.history)} random options in {drawn.seconds:.0f} s")
        candidates = fastest(drawn, _RACED)
        times = subject.race(candidates)
        best = candidates[times.index(min(times))]
        found = []
        for start, options in STARTS.items():
            for own in range(seed + 1, seed + 1 + runs):
                result = subject.search(_limited(own, len(options)), options)
                found.append((start, own, result))
            spent = sum(result.seconds for _, _, result in found[-runs:])
            _say(f"{name}: {runs} runs from {start} in {spent:.0f} s")
        winners = [result.options or DEFAULT for _, _, result in found]
        reached = subject.race([best, DEFAULT, *winners])
    raced = [
        (start, Run(own, len(r.history), r.time or math.nan, seconds, options.to_json()))
        for (start, own, r), seconds, options in zip(found, reached[2:], winners, strict=True)
    ]
    return Row(
        name,
        subject.sizes,
        len(drawn.history),
        sum(c.time is not None for c in drawn.history),
        reached[0],
        best.to_json(),
        reached[1],
        {start: tuple(run for own, run in raced if own == start) for start in STARTS},
        time.monotonic() - began,
    )


def _limited(seed: int, started: int) -> TunerConfig:
    """The default settings with so many generations that no more than ``EVALUATIONS`` fit."""
    config = TunerConfig(seed=seed)
    search = config.settings.search
    return config.generations(1 + (EVALUATIONS - started - search.population) // search.children)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of a table."""
    yield f"{'def':<20}{'random':>8}{'best':>11}{'default':>11}{'runs from':>11}{'median':>8}  each"
    for row in rows:
        for start in STARTS:
            ratios = row.ratios(start)
            each = " ".join(f"{r:.3f}" for r in ratios)
            yield (
                f"{row.name:<20}{row.random:>8}{1e3 * row.best:>8.3f} ms{1e3 * row.default:>8.3f} "
                f"ms{start:>11}{median(ratios):>8.3f}  {each}"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_spaces", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--defs", default=",".join(DEFS), help="names, with commas")
    parser.add_argument("--random", type=int, default=1500, help="options drawn at random")
    parser.add_argument("--runs", type=int, default=5, help="from each start")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    names = given.defs.split(",")
    for name in names:
        if name not in DEFS:
            parser.error(f"there is no def {name!r}; there are {', '.join(DEFS)}")
    if given.random < 1 or given.runs < 1:
        parser.error("there is at least 1 random option and 1 run")
    rows = []
    for name in names:
        rows.append(compare(name, given.random, given.runs, given.seed))
        _say("\n".join(table(rows[-1:])))
    _say("\n".join(table(rows)))
    if given.out is not None:
        data = {
            "date": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "evaluations": EVALUATIONS,
            "medians": {r.name: {start: median(r.ratios(start)) for start in STARTS} for r in rows},
            "good": {s: all(median(r.ratios(s)) >= GOOD for r in rows) for s in STARTS},
            "rows": [asdict(row) for row in rows],
        }
        given.out.write_text(json.dumps(data, indent=1) + "\n")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
