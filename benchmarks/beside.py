"""Measures calls on several threads in programs that also do other work, and torch's own kernels.

    python -m benchmarks.beside                     # 2 threads and all, some two minutes
    python -m benchmarks.beside --threads 4 --seconds 2 --out FILE

Between two calls, the program does other work on as many threads, or sleeps; or another process
multiplies matrices all the time. The results are the median and the 90th percentile of the calls,
as multiples of the median of undisturbed calls. Our kernel on one thread loses what other work does
to caches and clocks, and nothing to late workers.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tcl
from benchmarks.common import Call, command, seconds, write
from tcl.bench.ceilings import core_to_core
from tcl.codegen.cpu.thread_count import usable_cores
from tcl.tuner.measure.cores import available_cores

SOURCE = """
def row_sum(float(M, N) A) -> (R) { R(m) +=! A(m, n) }
def column_sum(float(M, N) A) -> (C) { C(n) +=! A(m, n) }
def mlp1(float(B, M) I, float(N, M) W, float(N) b) -> (O) {
    O(i, n) +=! I(i, m) * W(n, m)
    O(i, n) = fmax(O(i, n) + b(n), 0)
}
def scale(float(M, N) A) -> (O) { O(m, n) = 2 * A(m, n) + 1 }
"""
WARM = 20
"""Calls before those that count."""


WHOSE = ("tcl", "torch", "tcl, 1 thread")


def kernels(threads: int) -> dict[str, tuple[Call, Call, Call]]:
    """Those of ``WHOSE``, by name, into the same arrays."""
    ours, alone = tcl.define(SOURCE, threads=threads), tcl.define(SOURCE, threads=1)
    rng = np.random.default_rng(0)

    def array(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.random(shape, np.float32) - 0.5)

    large, wide, tall = array(4096, 4096), array(1024, 1024), array(2048, 512)
    inputs, weights, bias = array(128, 2000), array(128, 2000), array(128)
    rows, columns, out = array(4096), array(512), array(1024, 1024)
    product, hidden = array(128, 128), array(128, 128)

    def mlp1() -> None:
        torch.addmm(bias, inputs, weights.T, out=product)
        torch.clamp(product, min=0, out=product)

    def scaled() -> None:
        torch.mul(wide, 2, out=out)
        out.add_(1)

    return {
        "row sum 4096x4096": (
            lambda: ours.row_sum(large, outputs=(rows,)),
            lambda: torch.sum(large, 1, out=rows),
            lambda: alone.row_sum(large, outputs=(rows,)),
        ),
        "column sum 2048x512": (
            lambda: ours.column_sum(tall, outputs=(columns,)),
            lambda: torch.sum(tall, 0, out=columns),
            lambda: alone.column_sum(tall, outputs=(columns,)),
        ),
        "MLP1 128x2000x128": (
            lambda: ours.mlp1(inputs, weights, bias, outputs=(hidden,)),
            mlp1,
            lambda: alone.mlp1(inputs, weights, bias, outputs=(hidden,)),
        ),
        "scale 1024x1024": (
            lambda: ours.scale(wide, outputs=(out,)),
            scaled,
            lambda: alone.scale(wide, outputs=(out,)),
        ),
    }


def _between() -> dict[str, Call]:
    """What a program does between calls."""
    a, b, c = np.ones((256, 256), np.float32), torch.ones(256, 256), jnp.ones((256, 256))
    product = jax.jit(jnp.matmul)
    return {
        "alone": lambda: None,
        "numpy's product": lambda: a @ a,
        "torch's product": lambda: b @ b,
        "JAX's product": lambda: product(c, c).block_until_ready(),
        "2 ms of sleep": lambda: time.sleep(0.002),
    }


def _multiply() -> None:
    a = np.ones((512, 512), np.float32)
    while True:
        a @ a


@contextmanager
def _another_process() -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=_multiply, daemon=True)
    process.start()
    time.sleep(2)
    try:
        yield
    finally:
        process.kill()
        process.join()


def times(call: Call, between: Call, long: float) -> tuple[float, float]:
    """Median and 90th percentile of calls, in microseconds."""
    found: list[float] = []
    end = time.monotonic() + long
    while len(found) < WARM + 20 or time.monotonic() < end:
        between()
        found.append(1e6 * seconds(call))
    return statistics.median(found[WARM:]), statistics.quantiles(found[WARM:], n=10)[-1]


def measure(threads: int, long: float) -> list[dict[str, object]]:
    """A row for each kernel, whose it is, and what is done between; printed as they come."""
    torch.set_num_threads(threads)
    rows: list[dict[str, object]] = []
    situations: list[tuple[str, Call]] = [*_between().items(), ("another process", lambda: None)]
    base: dict[tuple[str, str], float] = {}
    print(
        f"{threads} threads: median us; median and 90th percentile over the median alone; "
        "ns from core to core before"
    )
    for situation, between in situations:
        with _another_process() if situation == "another process" else nullcontext():
            for name, calls in kernels(threads).items():
                for whose, call in zip(WHOSE, calls, strict=True):
                    apart = round(1e9 * core_to_core(available_cores()))
                    median, late = times(call, between, long)
                    alone = base.setdefault((name, whose), median)
                    row = {"threads": threads, "kernel": name, "whose": whose}
                    row |= {"between": situation, "us": round(median, 1)}
                    row |= {"median": round(median / alone, 3), "p90": round(late / alone, 3)}
                    rows.append(row | {"ns from core to core": apart})
                    print(
                        f"{name:20} {whose:13} {situation:16} {median:9.1f} "
                        f"{median / alone:6.2f} {late / alone:6.2f} {apart:5}",
                        flush=True,
                    )
    return rows


def main() -> None:
    parser = command("beside", __doc__)
    parser.add_argument("--threads", type=int, nargs="*", help="default: 2, and all cores")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement")
    given = parser.parse_args()
    wanted = given.threads or sorted({2, usable_cores()})
    write(given.out, {"rows": [row for n in wanted for row in measure(n, given.seconds)]})


if __name__ == "__main__":
    main()
