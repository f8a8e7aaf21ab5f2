"""How much sooner a search finds what is fast if it starts from a model: replayed on a cache.

    python -m benchmarks.model_search --cache model.db --out FILE

The measured candidates of each problem of a cache that ``benchmarks.model_data`` has filled are a
recorded space, where the default is not good enough. The shipped strategy searches it as ``tcl
tune`` does: it is told of the heuristic default, then proposes generations. Once it has nothing
else to go by, once it starts from a model that has not seen the def, or the def with these sizes.
Counted are evaluations, the default's included, until a candidate is found whose time is at most
the best one's over 0.97. See ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean, geometric_mean, median

import numpy as np

from benchmarks.model_data import Task
from benchmarks.model_problems import PROBLEMS
from benchmarks.replay import RecordedSpace
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import DEFAULT
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.prior import Prior
from tcl.tuner.strategies.strategy import SearchSettings
from tcl.tuner.training.evaluate import folds
from tcl.tuner.training.history import MeasuredProblem, history
from tcl.tuner.training.learn import learn, predictor

GOOD = 0.97
"""Of the best: a search is looked at until it has found a candidate like that."""
PARTS = 5
"""Of the problems; each is searched with models of the others."""
HELD_OUT = ("def", "sizes")
_FEWEST = 30
"""Candidates that a space has to have."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a model expects of every candidate of a recorded space: a ``Prior``."""

    places: dict[Config, int]
    expected: Prediction

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """See ``Prior``."""
        at = [self.places[c] for c in configs]
        return Prediction(self.expected.logs[at], self.expected.spread[at])


@dataclass(frozen=True, slots=True)
class Table:
    """The candidates of a problem as a recorded space."""

    problem: MeasuredProblem
    space: RecordedSpace
    places: dict[Config, int]
    """Of configurations, among the problem's candidates."""
    default: Config

    @staticmethod
    def of(problem: MeasuredProblem) -> Table | None:
        """None where few candidates are known, or the default is not among them, or good enough."""
        subject = problem.subject
        if not isinstance(subject, CpuSubject) or problem.default is None:
            return None
        if problem.seconds[problem.default] <= problem.best / GOOD:
            return None
        about = MappingSpace(subject.program, subject.device)
        pairs = [(about.from_options(o), k) for k, o in enumerate(problem.options)]
        places: dict[Config, int] = {}
        for config, place in sorted(pairs, key=lambda pair: not problem.raced[pair[1]]):
            if config is not None:
                places.setdefault(config, place)
        default = about.from_options(DEFAULT)
        if default not in places or len(places) < _FEWEST:
            return None
        times = {c: float(problem.seconds[k]) for c, k in places.items()}
        return Table(
            problem, RecordedSpace(problem.entry, about.space.knobs, times), places, default
        )

    def good(self, config: Config) -> bool:
        """Whether a candidate is as fast as a search has to find one. A single reading does not
        tell: what was lucky in it has been timed in turns with others, and was slower then."""
        place = self.places[config]
        near = bool(self.problem.seconds[place] <= self.problem.best / GOOD)
        return near and bool(self.problem.raced[place])

    def evaluations(self, prior: Prior | None, seed: int) -> int:
        """Until a search has found a good candidate; all there are if it gives up before."""
        strategy = make_strategy(
            "screened", self.space, Random(seed), SearchSettings(), prior=prior
        )
        asked: tuple[Config, ...] = (self.default,)
        done = 0
        while asked:
            for config in asked:
                done += 1
                if self.good(config):
                    return done
            strategy.tell([(c, self.space.times[c]) for c in asked])
            asked = strategy.ask()
        return len(self.places)

    def ranked(self, expected: Prediction) -> int:
        """Evaluations until a good candidate if all are tried in the order of a model, after the
        default, and nothing is learned meanwhile."""
        others = [c for c in self.places if c != self.default]
        others.sort(key=lambda c: expected.logs[self.places[c]])
        found = [n for n, config in enumerate(others) if self.good(config)]
        return found[0] + 2 if found else len(self.places)


@dataclass(frozen=True, slots=True)
class Row:
    """A problem. Evaluations are medians over seeds."""

    entry: str
    sizes: str
    candidates: int
    default: float
    """Best time / the default's."""
    alone: float
    """Evaluations without a model."""
    held_out: dict[str, float]
    """Evaluations with a model, by what it has not seen."""
    ranked: dict[str, int]
    """Evaluations in the order of that model, without a search."""


def parted(problems: Sequence[MeasuredProblem], held_out: str) -> list[list[int]]:
    """Places of problems that are held out together: whole defs, some to a part, or sizes."""
    if held_out == "sizes":
        return folds(problems, held_out, PARTS)
    groups = folds(problems, held_out)
    return [[k for group in groups[n::PARTS] for k in group] for n in range(PARTS)]


def expectations(problems: Sequence[MeasuredProblem], held_out: str) -> dict[int, Prediction]:
    """What models expect of problems that they have not learned from."""
    found = {}
    for part in filter(None, parted(problems, held_out)):
        predict = predictor(learn([p for k, p in enumerate(problems) if k not in part]))
        found.update({k: predict(problems[k]) for k in part})
    return found


def searched(
    tables: Sequence[Table], expected: dict[str, list[Prediction]], seeds: Sequence[int]
) -> Iterator[Row]:
    """All searches, a problem after the other."""
    for place, table in enumerate(tables):
        problem = table.problem

        def needed(prior: Prior | None, table: Table = table) -> float:
            return median(table.evaluations(prior, seed) for seed in seeds)

        yield Row(
            *(problem.entry, problem.key.sizes, len(table.places)),
            float(problem.best / problem.seconds[table.places[table.default]]),
            needed(None),
            {h: needed(Expectations(table.places, own[place])) for h, own in expected.items()},
            {h: table.ranked(own[place]) for h, own in expected.items()},
        )


def summary(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """By what was held out: means over problems."""
    found = {}
    for held_out in rows[0].held_out if rows else ():
        pairs = [(row.alone, row.held_out[held_out]) for row in rows]
        alone, model = (fmean(side) for side in zip(*pairs, strict=True))
        found[held_out] = {
            "problems": len(rows),
            "alone": alone,
            "model": model,
            "ranked": fmean(row.ranked[held_out] for row in rows),
            "ratio": model / alone,
            "mean_ratio": geometric_mean(m / a for a, m in pairs),
            "half": fmean(m <= a / 2 for a, m in pairs),
            "worse": fmean(m > a for a, m in pairs),
        }
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_search", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cache", type=Path, required=True, help="one of benchmarks.model_data")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=15, help="searches of each problem")
    parser.add_argument("--seed", type=int, default=0, help="of the first repeat")
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    device = replace(host_cpu(), threads=given.threads)
    defs = [Task(name, sizes[0], given.threads).checked for name, sizes in PROBLEMS.items()]
    known = history(TuningCache(given.cache), defs, {device_identity(device): device}).problems
    if not known:
        parser.error(f"{given.cache} has nothing of this device and this version of the compiler")
    made = [Table.of(problem) for problem in known]
    kept = [k for k, table in enumerate(made) if table is not None]
    expected = {h: expectations(known, h) for h in HELD_OUT}
    rows = []
    for row in searched(
        [table for table in made if table is not None],
        {h: [own[k] for k in kept] for h, own in expected.items()},
        range(given.seed, given.seed + given.repeats),
    ):
        rows.append(row)
        with_model = "  ".join(f"{h} {n:5.0f}" for h, n in row.held_out.items())
        print(
            f"{row.entry:24} {row.candidates:5} candidates  default {row.default:.2f}  "
            f"alone {row.alone:5.0f}  {with_model}",
            flush=True,
        )
    scores = summary(rows)
    for held_out, score in scores.items():
        print(f"{held_out}: " + ", ".join(f"{n} {v:.3g}" for n, v in score.items()))
    if given.out is not None:
        data = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": host_cpu().title,
            "threads": given.threads,
            "good": GOOD,
            "repeats": given.repeats,
            "seed": given.seed,
            "known_problems": len(known),
            "candidates": int(np.sum([row.candidates for row in rows])),
            "scores": scores,
            "rows": [asdict(row) for row in rows],
        }
        given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
