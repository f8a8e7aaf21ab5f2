"""The sum of table rows that an index tensor selects, as in recommendation models.

``Row(b, l)`` is a subscript that is read from a tensor. The kernel checks its values while it runs.
If the table does not have a row, the call raises ``IndexError``, and no other memory is read.

    python examples/embedding_sum.py
"""

import argparse

import numpy as np

import tcl
from tcl.bench.turns import compare_in_turns

EMBEDDING = """
def embedding_sum(float(E, D) Table, int32(B, L) Row) -> (Sum) {
    Sum(b, d) +=! Table(Row(b, l), d)
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    entries, width, batch, length = (50, 16, 6, 5) if small else (100_000, 64, 256, 50)
    rng = np.random.default_rng(0)
    table = rng.standard_normal((entries, width), np.float32)
    row = rng.integers(0, entries, (batch, length), np.int32)

    T = tcl.define(EMBEDDING)
    out = T.embedding_sum(table, row)
    np.testing.assert_allclose(out, table[row].sum(axis=1), rtol=1e-4, atol=1e-4)
    try:
        T.embedding_sum(table, np.full((batch, length), entries, np.int32))
    except IndexError as error:
        print(f"refused: {error}")

    gathered, sums = np.empty((batch, length, width), np.float32), np.empty_like(out)

    def with_numpy() -> object:
        np.take(table, row, axis=0, out=gathered, mode="clip")  # "raise" would make a copy
        return np.sum(gathered, axis=1, out=sums)

    compare_in_turns(
        {"tcl": lambda: T.embedding_sum(table, row, outputs=(out,)), "NumPy": with_numpy}
    )


if __name__ == "__main__":
    main()
