"""Measures the time of a call besides its kernel: the product of two arrays of 16 floats.

    python -m benchmarks.call_overhead               # medians of 200 turns of 1000 calls
    python -m benchmarks.call_overhead --turns 50 --out FILE
    python -m benchmarks.call_overhead --inside torch   # a def as an operator, and other operators
    python -m benchmarks.call_overhead --inside jax     # a def under jit, and x + 1

The rows take turns, so other work on the machine affects all of them. Times are CPU times of this
thread; inside torch and JAX, which have more threads, they are wall times. The kernel, with the one
call out of Python that starts it, is subtracted. The last rows are the first call of a process
after another process compiled the same kernel, or tuned it on first use.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tcl
import tcl.torch
from benchmarks.common import Call, command, medians, write
from tcl.executors.dispatch import Kernels, Settings
from tcl.executors.executor import Executor
from tcl.torch.registration import Registered

SOURCE = """
def multiply(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) }
def scale(float s, float(N) A) -> (C) { C(i) = s * A(i) }
def increment(float(N) A) -> (B) { B(n) = A(n) + 1 }
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


def rows() -> dict[str, Call]:
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


def in_turns(defs: tcl.Definitions, arrays: Sequence[Array]) -> Call:
    """Calls with these arrays, one after the other, and outputs for each."""
    outputs = [(np.empty(a.shape, a.dtype),) for a in arrays]
    turns = itertools.cycle(zip(arrays, outputs, strict=True))

    def call() -> object:
        a, c = next(turns)
        return defs.multiply(a, a, outputs=c)

    for _ in range(3 * len(arrays)):
        call()
    return call


LIBRARY = torch.library.Library("tcl_benchmark", "FRAGMENT")


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's, to be an operator."""
    return torch.mul(a, b)


def in_torch() -> Callable[[int], dict[str, Call]]:
    """Products of two arrays of a size into a new one (but ``out=``): a def as an operator, by code
    without Python (what ``tcl.torch.op`` registers) and by its fall-back in Python; ``torch.mul``
    as an operator by ``Library.define`` and ``impl``, and by ``torch.library.custom_op``."""
    LIBRARY.define("multiply(Tensor a, Tensor b) -> Tensor")
    LIBRARY.impl("multiply", torch.mul, "CPU")

    custom: Any = torch.library.custom_op("tcl_benchmark::custom", product, mutates_args=())
    kernels = Kernels(SOURCE, Settings())
    definition = kernels.definition("multiply")
    python = Registered("benchmark_multiply_python", kernels, definition, native=False)
    ours = tcl.torch.op(SOURCE, "multiply")

    def forms(size: int) -> dict[str, Call]:
        a, b, c = torch.rand(size), torch.rand(size), torch.empty(size)
        found: dict[str, Any] = {
            "ours: tcl.torch.op(...)(a, b)": ours,
            "ours: its overload, without Python": ours.overload,
            "ours: its overload, by Python": python.overload,
            "torch.mul as define + impl": torch.ops.tcl_benchmark.multiply.default,
            "torch.mul as custom_op": custom,
            "torch.mul": torch.mul,
            "torch.mul(out=)": partial(torch.mul, out=c),
        }
        for form in found.values():
            torch.testing.assert_close(form(a, b), a * b)
        return {name: partial(form, a, b) for name, form in found.items()}

    return forms


def in_jax() -> Callable[[int], dict[str, Call]]:
    """One operation on an array of a size, as a def and as JAX has it. Of a loop of calls the last
    is waited for."""
    jax: Any = import_module("jax")
    increment = import_module("tcl.jax").call(SOURCE, "increment")

    def several(form: Callable[[Any], Any], array: Any) -> None:
        for _ in range(INSIDE["jax"][1]):
            found = form(array)
        found.block_until_ready()

    def forms(size: int) -> dict[str, Call]:
        array = jax.numpy.ones(size)
        found = {
            "ours under jit": jax.jit(lambda x: increment(x)),
            "x + 1 under jit": jax.jit(lambda x: x + 1),
            "ours as it is": increment,
            "x + 1 as it is": lambda x: x + 1,
        }
        return {name: partial(several, form, array) for name, form in found.items()}

    return forms


INSIDE = {"torch": (in_torch, 50, 50), "jax": (in_jax, 20, 1)}
"""Forms, calls of a sample, and how many of these are not the form's own loop."""
SIZES = (1, 16, 1024)
"""Elements of the arrays there."""


def inside(framework: str, turns: int) -> dict[str, dict[str, float]]:
    """Microseconds of a call by size and form, printed as they come."""
    make, calls, own = INSIDE[framework]
    forms, results = make(), {}
    for size in SIZES:
        found = medians(forms(size), turns, calls=own)
        results[str(size)] = {n: round(own * t / calls * 1e6, 3) for n, t in found.items()}
        print(f"{size} elements: microseconds of a call, and over those of the first")
        first = next(iter(results[str(size)].values()))
        for name, taken in results[str(size)].items():
            print(f"  {taken:8.2f} {taken / first:6.2f}  {name}")
    return results


def first_calls() -> dict[str, float]:
    """Milliseconds of CPU time, medians, by name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode, name in (("off", "compiled before"), ("auto", "tuned on first use before")):
            words = [sys.executable, "-c", FIRST.format(mode)]
            environment = {**os.environ, "TCL_CACHE_DIR": folder}
            taken = [
                float(
                    subprocess.run(words, env=environment, check=True, capture_output=True).stdout
                )
                for _ in range(1 + PROCESSES)
            ]
            found[f"first call, {name}"] = median(taken[1:]) * 1e3
    return found


def main() -> None:
    parser = command("call_overhead", __doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--inside", choices=INSIDE, help="calls inside this framework")
    given = parser.parse_args()
    gc.disable()
    torch.set_num_threads(1)
    if given.inside:
        version = import_module(given.inside).__version__
        write(given.out, {given.inside: version, "elements": inside(given.inside, given.turns)})
        return
    all_rows = rows()
    with torch.no_grad():
        found = medians(all_rows, given.turns, calls=CALLS, clock=time.thread_time)
    print("microseconds: of a call, and over the kernel alone")
    for name, taken in found.items():
        print(f"{1e6 * taken:8.2f} {1e6 * (taken - found[KERNEL]):8.2f}  {name}")
    first = first_calls()
    print("milliseconds of CPU time")
    for name, taken in first.items():
        print(f"{taken:8.1f}           {name}")
    table = {name: round(taken * 1e6, 3) for name, taken in found.items()}
    starts = {name: round(taken, 1) for name, taken in first.items()}
    write(given.out, {"microseconds": table, "milliseconds": starts})


if __name__ == "__main__":
    main()
