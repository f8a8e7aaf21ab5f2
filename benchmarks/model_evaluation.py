"""How good a model's choices are, timed beside the best that is known.

    python -m benchmarks.model_evaluation --cache model.db --out FILE [--most 60]

Each problem of a cache that ``benchmarks.model_data`` has filled is chosen for by models that have
not seen it: once with its sizes held out, once with its def. What was chosen, the heuristic default
and the fastest candidates of the cache are then timed in turns, twice, by processes of their own:
single readings of a cache would tell mostly how lucky a candidate was. The winner of one race in
the times of the other is the noise floor.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import geometric_mean

import numpy as np

from benchmarks.model_data import PATIENCE, TIMING, Task
from benchmarks.model_problems import PROBLEMS
from tcl.backends.cpu_backend import CpuBackend
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.common.scratch_folder import workspace
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.run.pipeline import CandidatePipeline
from tcl.tuner.run.workplace import Here, Orders
from tcl.tuner.training.evaluate import Score, evaluate
from tcl.tuner.training.history import MeasuredProblem, history
from tcl.tuner.training.learn import learn, predictor

_BEST = 4
"""The fastest of the cache that take part."""


def raced(task: Task, options: Sequence[MappingOptions]) -> list[float]:
    """Seconds of each, timed in turns by a process of its own."""
    with workspace() as folder:
        backend = CpuBackend.create(task.source, task.name, task.inputs, folder, task.threads)
        stages = Here().open(Orders(backend, None, TIMING, PATIENCE, 60.0, 0, task.threads))
        try:
            times = CandidatePipeline(backend, stages, lambda: 0).race(options)
        finally:
            stages.close()
    if times is None:
        raise RuntimeError(f"{task.name} {task.sizes}: the race failed")
    return [geometric_mean(min(samples) for _, samples in placed) for placed in times]


def fastest(problem: MeasuredProblem) -> list[MappingOptions]:
    """The fastest of those that were timed in turns."""
    order = np.where(problem.raced, problem.seconds, np.inf).argsort()[:_BEST]
    return [problem.options[k] for k in order if problem.raced[k]]


@dataclass(frozen=True, slots=True)
class Row:
    """A problem."""

    task: Task
    candidates: int
    best: float
    """Seconds of the fastest that was timed."""
    shares: dict[str, float]
    """Who chose → the best time over that of the choice."""
    left: tuple[str, ...]
    """For which problems held out the default was left for another candidate."""
    flipped: bool
    """Whether the races have different winners."""

    def as_data(self) -> dict[str, object]:
        """For a file."""
        return {
            **{"def": self.task.name, "sizes": self.task.sizes, "candidates": self.candidates},
            **{"best_us": round(self.best * 1e6, 2), "left_default": self.left},
            **{"flipped": self.flipped},
            "shares": {name: round(share, 4) for name, share in self.shares.items()},
        }


def timed(task: Task, problem: MeasuredProblem, choices: Mapping[str, MappingOptions]) -> Row:
    """The default, what was chosen with which problems held out, and the fastest, in two races."""
    pool = dict.fromkeys([DEFAULT, *choices.values(), *fastest(problem)])
    first, second = (raced(task, [*pool]) for _ in range(2))
    times = dict(zip(pool, map(min, first, second), strict=True))
    best, winner = min(times.values()), int(np.argmin(first))
    shares = {
        "default": best / times[DEFAULT],
        **{held_out: best / times[options] for held_out, options in choices.items()},
        "winner_of_the_other_race": min(second) / second[winner],
    }
    left = tuple(held_out for held_out, options in choices.items() if options != DEFAULT)
    flipped = winner != int(np.argmin(second))
    return Row(task, len(problem.options), best, shares, left, flipped)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_evaluation")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=int, help="time so many problems, drawn at random")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    device = replace(host_cpu(), threads=given.threads)
    tasks = [Task(name, sizes, given.threads) for name, all_ in PROBLEMS.items() for sizes in all_]
    by_key = {task.key: task for task in tasks}
    defs = {task.name: task.checked for task in tasks}.values()
    known = history(TuningCache(given.cache), defs, {device_identity(device): device}).problems
    problems = [p for p in known if p.key in by_key and p.default is not None]
    chosen = {}
    for held_out in ("sizes", "def"):
        if found := evaluate(problems, held_out, lambda ps: predictor(learn(ps))):
            chosen[held_out] = found
            print(f"{held_out} held out, by the cache's times: {found.scores()}", flush=True)
    drawn = Random(0).sample(range(len(problems)), min(len(problems), given.most or len(problems)))
    rows: list[Row] = []
    for place in drawn:
        choices = {held_out: each.choices[place].used for held_out, each in chosen.items()}
        rows.append(timed(by_key[problems[place].key], problems[place], choices))
        print(rows[-1].as_data(), flush=True)
    scores = {
        name: Score.from_ratios([row.shares[name] for row in rows]) for name in rows[0].shares
    }
    for name, score in scores.items():
        print(f"{name:26} mean {score.mean:.3f} P10 {score.tenth:.3f} least {score.least:.3f}")
    data = {
        "threads": given.threads,
        "machine": host_cpu().title,
        "learned_from": {
            "problems": len(problems),
            "candidates": sum(len(p.options) for p in problems),
        },
        "by_the_caches_times": {h: e.as_data()["scores"] for h, e in chosen.items()},
        "scores": {name: asdict(score) for name, score in scores.items()},
        "flipped": sum(row.flipped for row in rows),
        "problems": [row.as_data() for row in rows],
    }
    given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
