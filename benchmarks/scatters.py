"""Compares scatters, untuned, with the functions of NumPy and torch.

    python -m benchmarks.scatters --out FILE

Histograms of 1e6 random numbers into 256 and into 1e5 bins, with and without weights; means of 1000
segments of 1e5 rows of 64; the gradient of an embedding with 30000 words of 256, for 8192 words.
All are in float32, with positions in int64. Forms take turns; each allocates its result. The ratio
of a row is the time of the fastest peer divided by ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tcl
from benchmarks.common import Call, beside_peers, command, write

Array = NDArray[Any]

TEXT = """
def few(int64(N) At, float(N) W) -> (float(256) H) { H(At(n)) +=! W(n) }
def many(int64(N) At, float(N) W) -> (float(100000) H) { H(At(n)) +=! W(n) }
def count_few(int64(N) At) -> (int64(256) H) { H(At(n)) +=! 1 }
def count_many(int64(N) At) -> (int64(100000) H) { H(At(n)) +=! 1 }
def means(int64(N) At, float(N, D) X) -> (float(1000) Count, float(1000, D) Mean) {
    Count(At(n)) +=! 1.0
    Mean(At(n), d) +=! X(n, d)
    Mean(s, d) = Mean(s, d) / fmax(Count(s), 1)
}
def embedding(int64(N) At, float(N, D) X) -> (float(30000, D) H) { H(At(n), d) +=! X(n, d) }
"""
EXTENTS = {"few": 256, "many": 100_000, "means": 1000, "embedding": 30_000}


def _inputs(row: str) -> tuple[Array, ...]:
    rng = np.random.default_rng(0)
    points, width = {"means": (100_000, 64), "embedding": (8192, 256)}.get(row, (1_000_000, 0))
    at = rng.integers(0, EXTENTS[row.removeprefix("count_")], points)
    if row.startswith("count_"):
        return (at,)
    return at, rng.random((points, width) if width else points, np.float32)


def _at(extents: tuple[int, ...], at: Array, x: Array) -> Array:
    made = np.zeros(extents, np.float32)
    np.add.at(made, at, x)
    return made


def _index_add(extents: tuple[int, ...], at: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(extents).index_add_(0, at, x)


def _scatter_add(extents: tuple[int, ...], at: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(extents).scatter_add_(0, at.reshape(-1, *[1] * (x.ndim - 1)).expand_as(x), x)


def _peers(row: str, inputs: tuple[Array, ...]) -> dict[str, Call]:
    """By name, what computes a row as well."""
    extent, given = EXTENTS[row.removeprefix("count_")], tuple(map(torch.from_numpy, inputs))
    if row.startswith("count_"):
        return {
            "bincount": lambda: np.bincount(inputs[0], minlength=extent),
            "torch bincount": lambda: torch.bincount(given[0], minlength=extent),
        }
    at, x = given
    extents = (extent, *x.shape[1:])
    sums: Mapping[str, Callable[..., Any]] = {
        "index_add_": _index_add,
        "scatter_add_": _scatter_add,
    }
    found: dict[str, Call] = {n: partial(f, extents, at, x) for n, f in sums.items()}
    found["add.at"] = lambda: _at(extents, inputs[0], inputs[1])
    if x.ndim == 1:
        found["bincount"] = lambda: np.bincount(inputs[0], inputs[1], extent)
        found["torch bincount"] = lambda: torch.bincount(at, x, extent)
    if row == "embedding":
        backward = torch.ops.aten.embedding_dense_backward
        found["embedding backward"] = lambda: backward(x, at, extent, -1, False)
    if row == "means":
        ones = torch.ones(len(at))

        def means(add: Callable[..., Any]) -> Any:
            return add(extents, at, x) / add(extents[:1], at, ones).clamp(min=1)[:, None]

        found = {name: partial(means, add) for name, add in sums.items()}
    return found


def main() -> None:
    """The command line."""
    parser = command("scatters", __doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", default="1,2")
    given = parser.parse_args()
    rows = []
    for threads in map(int, given.threads.split(",")):
        torch.set_num_threads(threads)
        defs = tcl.define(TEXT, threads=threads)
        for row in ("few", "many", "count_few", "count_many", "means", "embedding"):
            inputs = _inputs(row)
            forms: dict[str, Call] = {
                "tcl": partial(getattr(defs, row), *inputs),
                **_peers(row, inputs),
            }
            rows.append(beside_peers(row, threads, forms, given.rounds))
    write(given.out, {"rows": rows})


if __name__ == "__main__":
    main()
