"""What a call of a def costs in JAX, beside JAX's own smallest operation.

    python -m benchmarks.jax_overhead --out overhead.json

Both are one operation under ``jax.jit`` on arrays of the same size: ``x + 1``, as a def and as
JAX has it. A sample is a loop of calls, the last of which is waited for. The two take turns, in an
order that changes, so that what else the machine does meets both; the medians are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

import tcl.jax
from benchmarks.turns import command, medians

SOURCE = "def increment(float(N) A) -> (B) { B(n) = A(n) + 1 }"


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
    result = medians(forms, lambda call: sample(call, array, calls), samples)
    result["ratio under jit"] = result["ours under jit"] / result["x + 1 under jit"]
    return result


if __name__ == "__main__":
    command("jax_overhead", jax, 20, compared, __doc__)
