"""What a call takes besides its kernel: the product of two arrays of 16 floats, one by one.

    python -m benchmarks.call_overhead               # medians of 200 turns of 1000 calls
    python -m benchmarks.call_overhead --turns 50 --out FILE

The rows take turns, so that what else runs on the machine falls on all of them. Times are those of
this thread alone. What is subtracted is the kernel with the one call out of Python that starts it.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import tcl
from benchmarks.turns import medians
from tcl.executors.executor import Executor

SOURCE = "def multiply(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }"
CALLS = 1000
KERNEL = "the kernel alone"


def rows() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    a, b, c = (np.full(16, k, np.float32) for k in (2, 3, 0))
    at, bt, ct = (torch.full((16,), k) for k in (2.0, 3.0, 0.0))
    defs = tcl.define(SOURCE, threads=1)
    for_numpy = tcl.compile(SOURCE, "multiply", None, a, b, threads=1)
    for_torch = tcl.compile(SOURCE, "multiply", None, at, bt, threads=1)
    assert isinstance(for_numpy, Executor)
    kernel = for_numpy.kernel((a.strides, b.strides, c.strides))
    kernel((a, b, c))
    call, record = kernel.call, kernel.frames[0].at
    return {
        KERNEL: lambda: call(record),
        "numpy.multiply(a, b, out=c)": lambda: np.multiply(a, b, out=c),
        "executor(a, b, outputs=(c,)), NumPy": lambda: for_numpy(a, b, outputs=(c,)),
        "T.multiply(a, b, outputs=(c,)), NumPy": lambda: defs.multiply(a, b, outputs=(c,)),
        "numpy.multiply(a, b)": lambda: np.multiply(a, b),
        "executor(a, b), NumPy": lambda: for_numpy(a, b),
        "torch.mul(A, B, out=C)": lambda: torch.mul(at, bt, out=ct),
        "executor(A, B, outputs=(C,)), torch": lambda: for_torch(at, bt, outputs=(ct,)),
        "torch.mul(A, B)": lambda: torch.mul(at, bt),
        "executor(A, B), torch": lambda: for_torch(at, bt),
    }


def sample(call: Callable[[], object]) -> float:
    """Microseconds of one call."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    with torch.no_grad():
        found = medians(rows(), sample, given.turns)
    kernel = found[KERNEL]
    print("microseconds: of a call, and over the kernel alone")
    for name, taken in found.items():
        print(f"{taken:8.2f} {taken - kernel:8.2f}  {name}")
    if given.out:
        table = {name: round(taken, 3) for name, taken in found.items()}
        given.out.write_text(json.dumps({"microseconds": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
