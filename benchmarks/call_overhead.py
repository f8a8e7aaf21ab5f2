"""What a call takes besides its kernel: the product of two arrays of 16 floats, one by one.

    python -m benchmarks.call_overhead               # medians of 200 turns of 1000 calls
    python -m benchmarks.call_overhead --turns 50 --out FILE

The rows take turns, so that what else runs on the machine falls on all of them. Times are those of
this thread alone. What is subtracted is the kernel with the one call out of Python that starts it.
At last, the first call of a process after another one compiled, or tuned on first use, the same.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

import tcl
from benchmarks.turns import medians
from tcl.executors.executor import Executor

SOURCE = """
def multiply(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }
def scale(float s, float(N) A) -> (C) { C(i) = s * A(i) }
"""
Array = NDArray[np.float32]
CALLS = 1000
KERNEL = "the kernel alone"
MANY = 16
"""Kernels in turns."""
PROCESSES = 9
FIRST = """
import os, time
import numpy as np
import tcl

text = "def mm(float(M, K) A, float(K, N) B) -> (C) {{ C(m, n) +=! A(m, k) * B(k, n) }}"
T, a = tcl.define(text, threads=1, tune_mode={!r}), np.ones((64, 64), np.float32)
before = time.process_time()
T.mm(a, a)
print(time.process_time() - before)
"""


def rows() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    a, b, c = (np.full(16, k, np.float32) for k in (2, 3, 0))
    at, bt, ct = (torch.full((16,), k) for k in (2.0, 3.0, 0.0))
    defs = tcl.define(SOURCE, threads=1)
    varying = tcl.define(SOURCE, threads=1, varying=("N",))
    sizes = [np.ones(16 + k, np.float32) for k in range(MANY)]
    strided = [np.ones(16 * k, np.float32)[::k] for k in range(1, MANY + 1)]
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
        "T.scale(2.0, a, outputs=(c,)), a Python number": lambda: defs.scale(2.0, a, outputs=(c,)),
        "2 sizes in turns": in_turns(tcl.define(SOURCE, threads=1), sizes[:2]),
        f"{MANY} sizes in turns": in_turns(tcl.define(SOURCE, threads=1), sizes),
        f"{MANY} strides in turns": in_turns(tcl.define(SOURCE, threads=1), strided),
        f"{MANY} varying sizes in turns": in_turns(varying, sizes),
        "torch.mul(A, B, out=C)": lambda: torch.mul(at, bt, out=ct),
        "executor(A, B, outputs=(C,)), torch": lambda: for_torch(at, bt, outputs=(ct,)),
        "torch.mul(A, B)": lambda: torch.mul(at, bt),
        "executor(A, B), torch": lambda: for_torch(at, bt),
    }


def in_turns(defs: tcl.Definitions, arrays: Sequence[Array]) -> Callable[[], object]:
    """Calls with these arrays, one after the other, and outputs for each."""
    outputs = [(np.empty(a.shape, a.dtype),) for a in arrays]
    turns = itertools.cycle(zip(arrays, outputs, strict=True))

    def call() -> object:
        a, c = next(turns)
        return defs.multiply(a, a, outputs=c)

    for _ in range(3 * len(arrays)):
        call()
    return call


def first_calls() -> dict[str, float]:
    """Milliseconds of CPU time, medians, by name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode, name in (("off", "compiled before"), ("auto", "tuned on first use before")):
            command = [sys.executable, "-c", FIRST.format(mode)]
            environment = {**os.environ, "TCL_CACHE_DIR": folder}
            taken = [
                float(
                    subprocess.run(command, env=environment, check=True, capture_output=True).stdout
                )
                for _ in range(1 + PROCESSES)
            ]
            found[f"first call, {name}"] = median(taken[1:]) * 1e3
    return found


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
    first = first_calls()
    print("milliseconds of CPU time")
    for name, taken in first.items():
        print(f"{taken:8.1f}           {name}")
    if given.out:
        table = {name: round(taken, 3) for name, taken in found.items()}
        starts = {name: round(taken, 1) for name, taken in first.items()}
        result = {"microseconds": table, "milliseconds": starts}
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
