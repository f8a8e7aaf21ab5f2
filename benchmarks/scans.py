"""Compares running reductions, untuned, with NumPy and torch, and triangles with squares.

    python -m benchmarks.scans --out FILE

Running sums, products and maxima of float32, of 1e6 and 1e7 numbers, and of 1024 x 4096 along
either dimension, into existing memory; the ratio of a row is the time of the fastest peer divided
by ours. Then a product with a triangular matrix, and causal attention scores, compared with our own
times for the whole square. Forms take turns. ``copy`` is the time of NumPy for a copy of the array;
it is not a peer. The errors are the largest relative errors of running sums of 1e7 numbers, all .1
or random between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tcl
from benchmarks.common import Call, beside_peers, command, medians, write

Array = NDArray[np.float32]

_RUNS = {"sum": ("+", "0"), "product": ("*", "1"), "maximum": ("max", "log(0.0)")}
_SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "1e6": ((1_000_000,), 0),
    "1e7": ((10_000_000,), 0),
    "columns": ((1024, 4096), 0),
    "rows": ((1024, 4096), 1),
}
_SUBSCRIPTS = {"1e6": "{}", "1e7": "{}", "columns": "{}, d", "rows": "d, {}"}
_AXES = {"1e6": "N", "1e7": "N", "columns": "N, D", "rows": "D, N"}
TRIANGLES = """
def lower(float(N, N) A, float(N, M) B) -> (C) { C(i, k) +=! (j <= i) ? A(i, j) * B(j, k) : 0 }
def lower_square(float(N, N) A, float(N, M) B) -> (C) { C(i, k) +=! A(i, j) * B(j, k) }
def scores(float(B, N, D) Q, float(B, N, D) K) -> (S) {
    S(b, i, j) +=! (j <= i) ? Q(b, i, d) * K(b, j, d) : 0
}
def scores_square(float(B, N, D) Q, float(B, N, D) K) -> (S) {
    S(b, i, j) +=! Q(b, i, d) * K(b, j, d)
}
"""
_OPERANDS = {"lower": ((1024, 1024), (1024, 512)), "scores": ((8, 1024, 64), (8, 1024, 64))}


def text_of(run: str, shape: str) -> str:
    """The def of a running reduction."""
    op, nothing = _RUNS[run]
    at = _SUBSCRIPTS[shape]
    return (
        f"def f(float({_AXES[shape]}) X) -> (O) {{ O({at.format('i')}) {op}=! "
        f"(j <= i) ? X({at.format('j')}) : {nothing} where i in 0:N }}"
    )


def _peers(run: str, axis: int, given: Array) -> dict[str, Call]:
    made, x = np.empty_like(given), torch.from_numpy(given)
    of_numpy: dict[str, Any] = {"sum": np.add, "product": np.multiply, "maximum": np.maximum}
    of_torch: dict[str, Callable[..., Any]] = {"sum": torch.cumsum, "product": torch.cumprod}
    found: dict[str, Call] = {
        "numpy": lambda: of_numpy[run].accumulate(given, axis, out=made),
    }
    into = torch.empty_like(x)
    if run == "maximum":
        places = torch.empty(given.shape, dtype=torch.int64)
        found["torch"] = lambda: torch.cummax(x, axis, out=(into, places))
    else:
        found["torch"] = lambda: of_torch[run](x, axis, out=into)
    return found


def errors() -> dict[str, float]:
    """Of running sums of 1e7 numbers."""
    n = 10**7
    given = {
        "equal": np.full(n, 0.1, np.float32),
        "random": np.random.default_rng(n).random(n, np.float32),
    }
    f = tcl.define(text_of("sum", "1e7")).f
    return {
        values: float(np.max(np.abs(f(x) / np.cumsum(x, dtype=np.float64) - 1)))
        for values, x in given.items()
    }


def main() -> None:
    """The command line."""
    parser = command("scans", __doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_args()
    rows, triangles = [], []
    rng = np.random.default_rng(0)
    for threads in map(int, options.threads.split(",")):
        torch.set_num_threads(threads)
        for shape, (extents, axis) in _SHAPES.items():
            given = (rng.random(extents, np.float32) - 0.5) * 1e-4 + 1
            made = np.empty_like(given)
            copy = medians({"copy": partial(np.copyto, made, given)}, options.rounds, least=0.02)
            for run in _RUNS:
                own = tcl.define(text_of(run, shape), threads=threads).f
                forms: dict[str, Call] = {
                    "tcl": partial(own, given, outputs=(made,)),
                    **_peers(run, axis, given),
                }
                row = beside_peers(f"{run} {shape}", threads, forms, options.rounds)
                rows.append({**row, **copy})
        defs = tcl.define(TRIANGLES, threads=threads)
        for name, shapes in _OPERANDS.items():
            operands = [rng.random(s, np.float32) for s in shapes]
            square = partial(getattr(defs, f"{name}_square"), *operands)
            forms = {"tcl": partial(getattr(defs, name), *operands), "square": square}
            triangles.append(beside_peers(name, threads, forms, options.rounds))
    found = errors()
    print("errors of running sums:", found)
    write(options.out, {"rows": rows, "triangles": triangles, "errors": found})


if __name__ == "__main__":
    main()
