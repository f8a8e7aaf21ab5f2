"""Measures the errors of long float32 sums, untuned, of NumPy and of torch.

    python -m benchmarks.sums --out FILE

The numbers are relative errors of sums of equal terms (0.1, which is rounded in the same direction
each time) and of random terms between 0 and 1: along rows and down columns of a matrix, in dot
products, means, variances and norms. The larger of two results counts. Sums have up to 1e8 terms,
which take 800 MB; the reference has up to 1e7, and the emulated kernels of a GPU have 1e5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tcl
from benchmarks.common import command, write
from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emulator import compile_modules
from tcl.codegen.devices.gpu import H200
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.selection.best_options import DEFAULT

Array = NDArray[np.float32]

TEXT = """
def row(float(M, N) A) -> (R) { R(m) +=! A(m, n) }
def column(float(N, M) A) -> (R) { R(m) +=! A(n, m) }
def dot(float(M, N) A, float(M, N) B) -> (R) { R(m) +=! A(m, n) * B(m, n) }
def mean(float(M, N) A) -> (R) {
    R(m) +=! A(m, n)
    R(m) = R(m) / N
}
def variance(float(M, N) A) -> (Mean, R) {
    Mean(m) +=! A(m, n)
    Mean(m) = Mean(m) / N
    R(m) +=! (A(m, n) - Mean(m)) * (A(m, n) - Mean(m))
    R(m) = R(m) / N
}
def norm(float(M, N) A) -> (R) {
    R(m) +=! A(m, n) * A(m, n)
    R(m) = sqrt(R(m))
}
"""
TERMS = (10**5, 10**6, 10**7, 10**8)
RESULTS = 2
EMULATED, REFERENCE = 10**5, 10**7
"""The most terms for which these are asked."""


def inputs_of(row: str, terms: int, values: str) -> list[Array]:
    """The arrays of a row, each of them as the others."""
    shape = (terms, RESULTS) if row == "column" else (RESULTS, terms)
    if values == "equal":
        given = np.full(shape, 0.1, np.float32)
    else:
        given = np.random.default_rng(terms).random(shape, np.float32)
    return [given] * (2 if row == "dot" else 1)


def exact(row: str, given: Array) -> NDArray[np.float64]:
    """The results in float64, pairwise, of a few rows at a time."""
    found = []
    for line in given.T if row == "column" else given:
        parts = [p.astype(np.float64) for p in np.array_split(line, max(1, line.size >> 20))]
        total = math.fsum(float(p.sum()) for p in parts)
        squares = math.fsum(float((p * p).sum()) for p in parts)
        mean = total / line.size
        rest = math.fsum(float(((p - mean) ** 2).sum()) for p in parts) / line.size
        results = {"dot": squares, "norm": math.sqrt(squares), "variance": rest, "mean": mean}
        found.append(results.get(row, total))
    return np.array(found)


PEERS: dict[str, Callable[..., Any]] = {
    "row": lambda library, a: a.sum(1),
    "column": lambda library, a: a.sum(0),
    "dot": lambda library, a, b: [float(x @ y) for x, y in zip(a, b, strict=True)],
    "mean": lambda library, a: a.mean(1),
    "variance": lambda library, a: library.var(a, 1, correction=0),
    "norm": lambda library, a: [float(library.linalg.norm(x)) for x in a],
}
"""What NumPy and torch have for each row."""


def contenders(row: str, terms: int) -> Iterator[tuple[str, Callable[[Sequence[Array]], Any]]]:
    """By name, what computes a row."""

    def last(found: Any) -> Any:
        return found[-1] if isinstance(found, tuple | list) else found

    def ours(**settings: Any) -> Callable[[Sequence[Array]], Any]:
        return lambda arrays: last(getattr(tcl.define(TEXT, **settings), row)(*arrays))

    def lowered(arrays: Sequence[Array]) -> tuple[Any, dict[str, Array]]:
        checked = check(TEXT)[row]
        shapes = {t.name: x.shape for t, x in zip(checked.inputs, arrays, strict=True)}
        made = {t.name: np.zeros(RESULTS, np.float32) for t in checked.outputs}
        return infer(checked, shapes), made

    def reference(arrays: Sequence[Array]) -> Any:
        sized, made = lowered(arrays)
        compile_reference(sized)(list(arrays), list(made.values()))
        return made["R"]

    def emulated(arrays: Sequence[Array]) -> Any:
        sized, made = lowered(arrays)
        module = emit_module(sized, DEFAULT, H200)
        (kernel,) = compile_modules([module])
        given = {t.name: x for t, x in zip(sized.checked.inputs, arrays, strict=True)}
        kernel.run({**given, **made}, "forward", seed=1)
        return made["R"]

    yield "default, 1 thread", ours(threads=1)
    yield "default, 2 threads", ours(threads=2)
    yield "naive", ours(options="naive", threads=1)
    if terms <= REFERENCE:
        yield "reference", reference
    if terms <= EMULATED:
        yield "emulated GPU", emulated
    yield "numpy", lambda arrays: PEERS[row](np, *arrays)
    yield "torch", lambda arrays: PEERS[row](torch, *map(torch.from_numpy, arrays))


def main() -> None:
    """The command line."""
    parser = command("sums", __doc__)
    parser.add_argument("--most", type=float, default=TERMS[-1], help="largest number of terms")
    given = parser.parse_args()
    rows = []
    for terms in (n for n in TERMS if n <= given.most):
        for row in PEERS:
            for values in ("equal", "random"):
                if row == "variance" and values == "equal":
                    continue  # it is 0
                arrays = inputs_of(row, terms, values)
                right = exact(row, arrays[0])
                errors = {}
                for name, compute in contenders(row, terms):
                    made = np.asarray(compute(arrays), np.float64)
                    errors[name] = float(np.max(np.abs(made / right - 1)))
                del arrays
                rows.append({"row": row, "terms": terms, "values": values, "errors": errors})
                shown = "  ".join(f"{name} {error:.1e}" for name, error in errors.items())
                print(f"{row:8} {terms:.0e} {values:6}  {shown}", flush=True)
    write(given.out, {"rows": rows})


if __name__ == "__main__":
    main()
