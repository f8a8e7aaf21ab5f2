"""Compares one kernel for many sizes with a kernel for each size.

    python -m benchmarks.varying                                   # the suite, 1 thread
    python -m benchmarks.varying --rows softmax --timed 25 --out FILE

The batch dimension of each row varies (if it has none, another size of its def). Sizes are drawn up
to the row's own size, each order of magnitude equally often. The kernel of ``define(...,
varying=...)`` and the kernel for one size take turns on the same arrays. The output has the ratio
of their times: the geometric mean, and the worst size.
"""

from __future__ import annotations

import math
import random
import statistics
from functools import partial
from typing import Any

import numpy as np

import tcl
from benchmarks.common import command, samples, write
from tcl.arrays.random_inputs import random_inputs
from tcl.bench.rows import SUITE, Row, select
from tcl.bench.task import as_tuple

SAMPLE = 2e-3
"""Seconds of a sample: shorter calls are repeated."""
SAMPLES = 15
"""Of which the least counts: whatever else runs makes others longer."""
LEAST_MOST = 32
"""Rows that have fewer in their batches are drawn up to this."""


def measured(row: Row, count: int, threads: int, seed: int) -> dict[str, Any]:
    """The ratios of a row at so many sizes and the largest."""
    sizes = row.checked.sizes
    name = row.batch or ("B" if "B" in sizes else sizes[0])
    most = max(row.values[name], LEAST_MOST)
    rng = random.Random(seed)
    drawn = sorted({int(math.exp(rng.uniform(0, math.log(most + 1)))) for _ in range(1000)})
    many = tcl.define(row.text, varying=(name,), threads=threads)[row.entry]
    ratios: dict[int, float] = {}
    for size in sorted({*rng.sample(drawn, min(count, len(drawn))), most}):
        inputs = random_inputs(row.checked, {**row.values, name: size}, seed)
        outputs = tuple(np.empty_like(result) for result in as_tuple(many(*inputs)))
        one = tcl.define(row.text, threads=threads)[row.entry]
        calls = {n: partial(f, *inputs, outputs=outputs) for n, f in (("many", many), ("one", one))}
        times = samples(calls, SAMPLES, least=SAMPLE)
        ratios[size] = min(times["many"]) / min(times["one"])
    worst = max(ratios, key=lambda size: ratios[size])
    return {
        "varies": name,
        "timed": len(ratios),
        "ratio": round(statistics.geometric_mean(ratios.values()), 3),
        "worst": round(ratios[worst], 3),
        "at": worst,
    }


def main() -> None:
    """The command line."""
    parser = command("varying", __doc__)
    parser.add_argument("--rows", default="", help="comma-separated names or patterns")
    parser.add_argument("--timed", type=int, default=6, help="number of timed sizes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for row in select(given.rows) if given.rows else SUITE:
        found[row.name] = measured(row, given.timed, given.threads, given.seed)
        about = (f"{k} {v}" for k, v in found[row.name].items())
        print(f"{row.name:28}", *about, sep="  ", flush=True)
    mean = round(statistics.geometric_mean(x["ratio"] for x in found.values()), 3)
    print(f"geometric mean {mean}")
    write(given.out, {"threads": given.threads, "mean": mean, "rows": found})


if __name__ == "__main__":
    main()
