"""Nearest neighbours among compressed vectors (product quantisation).

A vector is cut into parts, and each part is stored as one byte: the number of the nearest of 256
codes. For a query, a table holds the distance from each of its parts to each code. The distance to
a stored vector is the sum of the table entries that its bytes select. The nearest vector is an
argmin: the least distance, then the first vector with this distance. All other vectors count as
``N``, which is not the number of a vector.

    python examples/product_quantised.py
"""

import argparse
from typing import Any

import numpy as np
import torch

import tcl
from tcl.bench.turns import compare_in_turns

SEARCH = """
def search(float(Q, M, D) Query, float(M, C, D) Code, uint8(N, M) Stored)
    -> (Best, Least, Distance, Table) {
    Table(q, m, c) +=! (Query(q, m, d) - Code(m, c, d)) * (Query(q, m, d) - Code(m, c, d))
    Distance(q, n) +=! Table(q, m, Stored(n, m))
    Least(q) min=! Distance(q, n)
    Best(q) min=! (Distance(q, n) == Least(q)) ? n : N
}
def compress(float(N, M, D) X, float(M, C, D) Code) -> (Byte, Least, Distance) {
    Distance(n, m, c) +=! (X(n, m, d) - Code(m, c, d)) * (X(n, m, d) - Code(m, c, d))
    Least(n, m) min=! Distance(n, m, c)
    Byte(n, m) min=! (Distance(n, m, c) == Least(n, m)) ? c : C
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few vectors, done in a moment")
    small = parser.parse_args().small
    stored, queries, parts, width = (50, 3, 4, 3) if small else (50_000, 16, 16, 4)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((stored, parts, width), np.float32)
    query = vectors[:queries] + rng.standard_normal((queries, parts, width), np.float32) / 4
    codes = rng.standard_normal((parts, 256, width), np.float32)

    T = tcl.define(SEARCH)
    some = np.array_split(vectors, -(-stored // 1000))  # all distances at once would be large
    numbers = np.concatenate([T.compress(x, codes, wanted=("Byte",)) for x in some])
    data = numbers.astype(np.uint8)

    def with_tcl() -> Any:
        return T.search(query, codes, data, wanted=("Best",))

    columns = np.ascontiguousarray(data.T)

    def with_numpy() -> Any:
        table = np.square(query[:, :, None] - codes).sum(axis=3)
        distance = np.zeros((queries, stored), np.float32)
        for part, column in enumerate(columns):
            distance += np.take(table[:, part], column, axis=1)
        return distance.argmin(axis=1)

    q, c = torch.from_numpy(query), torch.from_numpy(codes)
    subscripts = torch.from_numpy(columns.astype(np.int64))

    def with_torch() -> Any:
        table = (q[:, :, None] - c).square_().sum(3)
        distance = torch.zeros(queries, stored)
        for part, column in enumerate(subscripts):
            distance += table[:, part].index_select(1, column)
        return distance.argmin(1)

    # Rounding may decide between two that are as near: distances are compared.
    exact = np.square(query.astype(float)[:, None] - codes[np.arange(parts), data]).sum(axis=(2, 3))
    for found in (with_tcl(), with_numpy(), with_torch().numpy()):
        nearest = np.take_along_axis(exact, found[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(nearest, exact.min(axis=1), rtol=1e-5)
    compare_in_turns({"tcl": with_tcl, "NumPy": with_numpy, "torch": with_torch})


if __name__ == "__main__":
    main()
