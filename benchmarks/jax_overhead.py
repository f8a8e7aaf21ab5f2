"""What a call of a def costs in JAX, beside JAX's own smallest operation.

    python -m benchmarks.jax_overhead --out overhead.json

Both are one operation under ``jax.jit`` on arrays of the same size: ``x + 1``, as a def and as
JAX has it. A sample is a loop of calls, the last of which is waited for. The two take turns, in an
order that changes, so that what else the machine does meets both; the medians are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

import tcl.jax

SOURCE = "def increment(float(N) A) -> (B) { B(n) = A(n) + 1 }"
SIZES = (1, 16, 1024)


def sample(call: Callable[[Any], Any], array: Any, calls: int) -> float:
    """Microseconds of one call."""
    begun = time.perf_counter()
    for _ in range(calls):
        found = call(array)
    found.block_until_ready()
    return (time.perf_counter() - begun) / calls * 1e6


def compared(size: int, samples: int, calls: int) -> dict[str, float]:
    """Medians of samples that took turns, in microseconds, and the ratio of the two under jit."""
    array = jax.numpy.ones(size)
    increment = tcl.jax.call(SOURCE, "increment")
    forms: dict[str, Callable[[Any], Any]] = {
        "ours under jit": jax.jit(lambda x: increment(x)),
        "x + 1 under jit": jax.jit(lambda x: x + 1),
        "ours as it is": increment,
        "x + 1 as it is": lambda x: x + 1,
    }
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(samples + 1):
        for name in random.sample(list(forms), len(forms)):
            found[name].append(sample(forms[name], array, calls))
    result = {name: statistics.median(times[1:]) for name, times in found.items()}
    result["ratio under jit"] = result["ours under jit"] / result["x + 1 under jit"]
    return {name: round(value, 3) for name, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=501)
    parser.add_argument("--calls", type=int, default=20, help="of a sample")
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    results = {}
    for size in SIZES:
        results[str(size)] = found = compared(size, given.samples, given.calls)
        print(f"{size} elements")
        for name, value in found.items():
            print(f"  {value:8.2f} {'  ' if 'ratio' in name else 'µs'}  {name}")
    if given.out:
        about = {
            "what": "microseconds of a call: medians of samples that took turns",
            "date": datetime.now(UTC).date().isoformat(),
            "command": f"python -m benchmarks.jax_overhead --samples {given.samples} "
            f"--calls {given.calls}",
            "jax": jax.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "load": [round(x, 2) for x in os.getloadavg()],
        }
        given.out.write_text(json.dumps({**about, "elements": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
