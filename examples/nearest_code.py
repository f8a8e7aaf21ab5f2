"""The nearest code of a codebook for each vector: an argmin.

A reduction gives the least distance, not its place. The place is a second reduction: the least
``c`` whose distance is the least one. Codes that are further away count as ``C``, which is no code.

    python examples/nearest_code.py
"""

import argparse

import numpy as np

import tcl
from tcl.bench.turns import compare_in_turns

NEAREST = """
def nearest_code(float(N, D) X, float(C, D) Code) -> (Best, Least, Distance) {
    Distance(n, c) +=! (X(n, d) - Code(c, d)) * (X(n, d) - Code(c, d))
    Least(n) min=! Distance(n, c)
    Best(n) min=! (Distance(n, c) == Least(n)) ? c : C
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    vectors, codes, width = (20, 12, 4) if small else (2048, 256, 16)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((vectors, width), np.float32)
    code = rng.standard_normal((codes, width), np.float32)

    T = tcl.define(NEAREST)
    outputs = T.nearest_code(X, code)
    best = np.asarray(outputs[0])
    exact = ((X[:, None].astype(float) - code) ** 2).sum(axis=2)
    chosen = np.take_along_axis(exact, best[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, exact.min(axis=1), rtol=1e-5)  # rounding may decide a tie

    products, out = np.empty((vectors, codes), np.float32), np.empty(vectors, np.intp)
    lengths = (code**2).sum(axis=1) / 2

    def with_numpy() -> object:  # |x - c|^2 = |x|^2 - 2 (x c - |c|^2 / 2): a product, and argmax
        np.matmul(X, code.T, out=products)
        np.subtract(products, lengths, out=products)
        return np.argmax(products, axis=1, out=out)

    compare_in_turns({"tcl": lambda: T.nearest_code(X, code, outputs=outputs), "NumPy": with_numpy})


if __name__ == "__main__":
    main()
