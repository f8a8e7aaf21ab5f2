"""A Kronecker layer: 32,768 inputs, 4,096 outputs and 1,536 weights.

The matrix of the layer is the Kronecker product of three small matrices. The large matrix is never
made: each factor is applied along one axis. NumPy and torch write two intermediate arrays to
memory. The three statements of the def are one kernel, which processes one row of the batch at a
time.

    python examples/kronecker.py
"""

import argparse
from typing import Any

import numpy as np
import torch

import tcl
from tcl.bench.turns import compare_in_turns

KRONECKER = """
def kronecker(float(A, I) U, float(B, J) V, float(C, K) W, float(M, I, J, K) X) -> (Y, XW, XWV) {
    XW(m, i, j, c) +=! X(m, i, j, k) * W(c, k)
    XWV(m, i, b, c) +=! XW(m, i, j, c) * V(b, j)
    Y(m, a, b, c) +=! XWV(m, i, b, c) * U(a, i)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    batch, n, d = (3, 5, 4) if small else (256, 32, 16)
    rng = np.random.default_rng(0)
    factors = U, V, W = rng.standard_normal((3, d, n), np.float32)
    X = rng.standard_normal((batch, n, n, n), np.float32)

    T = tcl.define(KRONECKER)

    def with_tcl() -> Any:
        return T.kronecker(U, V, W, X, wanted=("Y",))

    def with_numpy() -> Any:
        last_two = (V @ (X @ W.T)).reshape(batch, n, d * d)
        return (U @ last_two).reshape(batch, d, d, d)

    u, v, w, x = (torch.from_numpy(array) for array in (*factors, X))

    def with_torch() -> Any:
        return torch.einsum("ai,bj,ck,mijk->mabc", u, v, w, x)

    whole = np.kron(np.kron(U, V), W)[:, :]  # what is never made, for a few rows
    few = (X[:2].reshape(2, -1) @ whole.T).reshape(2, d, d, d)
    np.testing.assert_allclose(with_tcl()[:2], few, rtol=1e-3, atol=1e-2)
    for expected in (with_numpy(), with_torch()):
        np.testing.assert_allclose(with_tcl(), expected, rtol=1e-3, atol=1e-2)
    compare_in_turns(
        {"tcl": with_tcl, "NumPy, step by step": with_numpy, "torch, einsum": with_torch}
    )


if __name__ == "__main__":
    main()
