"""``tcl.BlockTuner`` on a CPU: the chunk that it selects beside the best of all candidates.

    python -m benchmarks.chunks
    python -m benchmarks.chunks --threads 1

Each kernel is tuned, then all candidates are timed in turns, round after round, so that what else
runs on the machine falls on all of them. Printed is how long the best of them takes, how long the
selected one, and their ratio; beside it the ratio of the fixed default, and of the worst.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numba
import numpy as np
from numba import types

import tcl
from tcl.block_tuning.c_functions import CFunction
from tcl.block_tuning.candidates import LaunchShape, default_chunks

_FLOATS = types.CPointer(types.float32)
_SIGNATURE = types.void(types.int64, types.int64, _FLOATS, _FLOATS)
_LONG = types.CPointer(types.int64)
SAMPLE = 2e-3
"""Seconds of a sample: shorter calls are repeated."""


def scale(begin: int, end: int, x: Any, y: Any) -> None:
    """Memory alone."""
    for i in range(begin, end):
        y[i] = x[i] * np.float32(2)


def waves(begin: int, end: int, x: Any, y: Any) -> None:
    """Arithmetic alone."""
    for i in range(begin, end):
        y[i] = np.sin(x[i]) * np.exp(-x[i])


def triangle(begin: int, end: int, x: Any, y: Any) -> None:
    """More work the further on: halves are not equal."""
    for i in range(begin, end):
        total = np.float32(0)
        for k in range(i):
            total += x[k]
        y[i] = total


def bursts(begin: int, end: int, x: Any, y: Any) -> None:
    """A few numbers of the range take nearly all of the time."""
    for i in range(begin, end):
        total = x[i]
        for _ in range(3000 if i % 4096 < 256 else 3):
            total = total * np.float32(0.5) + np.float32(1)
        y[i] = total


KERNELS: tuple[tuple[Callable[..., None], int], ...] = (
    *((scale, 1 << 22), (scale, 1 << 16), (waves, 1 << 19), (triangle, 4000)),
    (bursts, 1 << 16),
)


def timed(function: Any, size: int, threads: int, rounds: int, arrays: Any) -> dict[int, float]:
    """Median seconds of each chunk."""
    target = CFunction(function, (size,), threads, None)
    runs = {
        chunk: target.bound(LaunchShape((chunk,)), arrays)
        for (chunk,) in default_chunks(size, threads)
    }
    calls = {}
    for chunk, run in runs.items():
        run()
        began = time.perf_counter()
        run()
        calls[chunk] = max(1, int(SAMPLE / (time.perf_counter() - began)))
    times: dict[int, list[float]] = {chunk: [] for chunk in runs}
    for _ in range(rounds):
        for chunk, run in runs.items():
            run()
            began = time.perf_counter()
            for _ in range(calls[chunk]):
                run()
            times[chunk].append((time.perf_counter() - began) / calls[chunk])
    return {chunk: median(found) for chunk, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TCL_CACHE_DIR"] = folder
        print(
            "kernel       numbers  tuned in  candidates    best      selected  best/sel.  "
            "best/default  best/worst"
        )
        for python, size in KERNELS:
            function = numba.cfunc(_SIGNATURE)(python)
            arrays = np.random.default_rng(0).random(size, np.float32), np.empty(size, np.float32)
            began = time.perf_counter()
            result = tcl.BlockTuner(function, size, threads=given.threads).tune(*arrays)
            seconds = time.perf_counter() - began
            times = timed(function, size, given.threads, given.rounds, arrays)
            best = min(times, key=lambda chunk: times[chunk])
            own, default = times[result.block[0]], times[next(iter(times))]
            print(
                f"{python.__name__:10} {size:9}  {seconds:6.2f} s  {len(times):6}  "
                f"{times[best] * 1e6:10.1f} µs {own * 1e6:10.1f} µs     {times[best] / own:.3f}  "
                f"      {times[best] / default:.3f}       {times[best] / max(times.values()):.3f}"
                f"   {best} {result.block[0]} {'launch-bound' * result.launch_bound}"
            )


if __name__ == "__main__":
    main()
