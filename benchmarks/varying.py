"""What a kernel for many sizes costs: beside the kernel for each size alone.

    python -m benchmarks.varying                                   # the suite, 1 thread
    python -m benchmarks.varying --sizes 1000 --rows softmax --threads 2 --out FILE

Each row's batch dimension (of those without one, the first of its sizes) varies: random sizes up to
the row's own. At each, the kernel of ``define(..., varying=...)`` and the one for that size alone
take turns on the same arrays, and results are compared. Printed are the ratio of their times (its
geometric mean, and the worst size), how many kernels were made, and what the first call at a new
size takes besides the kernel, if its class is known.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import tcl
from benchmarks.turns import medians
from tcl.arrays.random_inputs import random_inputs
from tcl.bench.rows import SUITE, Row, select
from tcl.codegen.cpu.run import varying

SAMPLE = 2e-3
"""Seconds of a sample: shorter calls are repeated."""
SAMPLES = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="names or patterns, by commas")
    parser.add_argument(
        "--sizes", type=int, default=6, help="random sizes of each row that are timed"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    compiled = counted()
    found: dict[str, dict[str, Any]] = {}
    for row in select(given.rows) if given.rows else SUITE:
        found[row.name] = measured(row, given.sizes, given.threads, given.seed, compiled)
        print(f"{row.name:28}", *(f"{k} {v}" for k, v in found[row.name].items()), sep="  ")
    mean = statistics.geometric_mean(x["ratio"] for x in found.values())
    print(f"geometric mean {mean:.3f}")
    if given.out:
        about = {
            "what": "time of the kernel for many sizes over that of the kernel for one",
            "date": datetime.now(UTC).date().isoformat(),
            "threads": given.threads,
            "mean": round(mean, 3),
        }
        given.out.write_text(json.dumps({**about, "rows": found}, indent=1) + "\n")


def counted() -> list[int]:
    """One more entry for every kernel for many sizes that is made."""
    made: list[int] = []
    plain = varying.ready_for_all

    def ready(*arguments: Any, **options: Any) -> Any:
        made.append(1)
        return plain(*arguments, **options)

    import tcl.executors.varying as users

    users.ready_for_all = ready  # type: ignore[attr-defined]
    return made


def measured(row: Row, count: int, threads: int, seed: int, compiled: list[int]) -> dict[str, Any]:
    """The figures of a row."""
    rng = random.Random(seed)
    name = row.batch or row.checked.sizes[0]
    most = row.values[name]
    sizes = sorted({rng.randint(1, most) for _ in range(count)} | {most})
    many = tcl.define(row.text, varying=(name,), threads=threads)[row.entry]
    ratios, firsts, classes = [], [], set()
    before = len(compiled)
    for size in sizes:
        inputs = random_inputs(row.checked, {**row.values, name: size}, seed)
        kernels = len(compiled)
        begun = time.perf_counter()
        results = many(*inputs)
        first = time.perf_counter() - begun
        results = results if isinstance(results, tuple) else (results,)
        one = tcl.define(row.text, threads=threads)[row.entry]
        expected = one(*inputs)
        for a, b in zip(
            results, expected if isinstance(expected, tuple) else (expected,), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * max(1, np.abs(b).max()))
        outputs = tuple(np.empty_like(r) for r in results)
        calls: dict[str, Callable[[], object]] = {
            "many": lambda: many(*inputs, outputs=outputs),  # noqa: B023
            "one": lambda: one(*inputs, outputs=outputs),  # noqa: B023
        }
        took = min(_timed(calls["one"], 1) for _ in range(3))
        repeat = max(1, math.ceil(SAMPLE / max(took, 1e-7)))
        times = medians(calls, lambda call: _timed(call, repeat) / repeat, SAMPLES)  # noqa: B023
        ratios.append(times["many"] / times["one"])
        classes.add((size % 16 == 0, (size.bit_length() - 1) // 4))
        if len(compiled) == kernels:
            firsts.append((first - times["many"]) * 1e6)
    return {
        "varies": name,
        "ratio": round(statistics.geometric_mean(ratios), 3),
        "worst": round(max(ratios), 3),
        "at": sizes[ratios.index(max(ratios))],
        "sizes": len(sizes),
        "classes": len(classes),
        "kernels": len(compiled) - before,
        "first_call_us": round(statistics.median(firsts), 1) if firsts else None,
    }


def _timed(call: Callable[[], object], repeat: int) -> float:
    begun = time.perf_counter()
    for _ in range(repeat):
        call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
