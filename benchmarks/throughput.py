"""How many candidates the tuner evaluates per second.

    python -m benchmarks.throughput                      # a float32 product of about 0.2 ms
    python -m benchmarks.throughput --threads 2          # kernels on two cores, compiled in turns
    python -m benchmarks.throughput --generations 10 --seed 7 --out FILE

See ``benchmarks/README.md`` for what is counted and how.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import command, write
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.tuner.config import TunerConfig
from tcl.tuner.run.events import CandidateDone, Event, GenerationStarted
from tcl.tuning import Tuner

SOURCE = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZE = 256
"""Rows and columns of the matrices: 34 million operations, 0.2 ms at 170 GFLOP/s."""


def measure(threads: int, extent: int, config: TunerConfig) -> dict[str, Any]:
    """Tune a product of this size once. ``search``: seconds from the first candidate's start to the
    last one's verdict; ``whole``: with the reference before, and the finals after."""
    inputs = random_inputs(check(SOURCE)["matmul"], {"M": extent, "N": extent, "K": extent}, 0)
    began: list[float] = []
    ended = [0.0]

    def hear(event: Event[MappingOptions]) -> None:
        if isinstance(event, GenerationStarted):
            began.append(time.perf_counter())
        elif isinstance(event, CandidateDone):
            ended[:] = [time.perf_counter()]

    with tempfile.TemporaryDirectory() as folder:
        tuner = Tuner(SOURCE, Path(folder) / "tuning.db", threads=threads)
        result = tuner.tune("matmul", inputs, None, config, progress=False, report=hear)
    return {
        "threads": threads,
        "seed": config.settings.seed,
        "best": result.time,
        "verdicts": dict(Counter(c.outcome.verdict.value for c in result.history)),
        "search": ended[0] - began[0],
        "whole": result.seconds,
    }


def shown(found: dict[str, Any]) -> str:
    """What is printed about one search."""
    verdicts, search = found["verdicts"], found["search"]
    count, correct = sum(verdicts.values()), verdicts.get("correct", 0)
    return (
        f"{found['threads']} thread(s), seed {found['seed']}: {count} candidates in "
        f"{search:.1f} s, best {1e3 * (found['best'] or float('nan')):.3f} ms\n"
        f"  {count / search:.1f} candidates per second ({correct / search:.1f} of them correct); "
        f"{count / found['whole']:.1f} with the reference and the finals, {found['whole']:.1f} s "
        "in all"
    )


def main() -> None:
    """The command line."""
    parser = command("throughput", __doc__)
    parser.add_argument("--threads", type=int, default=1, help="of the kernels")
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns")
    parser.add_argument("--generations", type=int, help="default: the tuner's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1, help="searches, each from the next seed")
    given = parser.parse_args()
    found = []
    for repeat in range(given.repeats):
        config = TunerConfig().seed(given.seed + repeat)
        if given.generations:
            config = config.generations(given.generations)
        found.append(measure(given.threads, given.size, config))
        print(shown(found[-1]), flush=True)
    write(given.out, {"size": given.size, "searches": found})


if __name__ == "__main__":
    main()
