"""A product of int8 matrices, summed in int32.

A def computes in the types of its operands, so a product of two int8 numbers wraps around at 127.
``int32(...)`` around the operands makes products and sums wide. The inputs stay small in memory.

    python examples/int8_product.py
"""

import argparse

import numpy as np

import tcl
from tcl.bench.turns import compare_in_turns

PRODUCT = """
def int8_product(int8(M, K) A, int8(K, N) B) -> (C) {
    C(m, n) +=! int32(A(m, k)) * int32(B(k, n))
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    m, n, k = (12, 20, 28) if small else (256, 256, 512)
    rng = np.random.default_rng(0)
    A = rng.integers(-128, 128, (m, k), np.int8)
    B = rng.integers(-128, 128, (k, n), np.int8)

    T = tcl.define(PRODUCT)
    C = T.int8_product(A, B)
    np.testing.assert_array_equal(C, A.astype(np.int64) @ B.astype(np.int64))

    # NumPy's integer products are plain loops. float32 has fast ones, which are exact as long as
    # no sum leaves 24 bits: up to k = 1024.
    wide_a, wide_b, wide_c = (np.empty(s, np.int32) for s in (A.shape, B.shape, (m, n)))
    float_a, float_b, float_c = (np.empty(s, np.float32) for s in (A.shape, B.shape, (m, n)))

    def with_integers() -> None:
        np.copyto(wide_a, A)
        np.copyto(wide_b, B)
        np.matmul(wide_a, wide_b, out=wide_c)

    def with_floats() -> None:
        np.copyto(float_a, A)
        np.copyto(float_b, B)
        np.matmul(float_a, float_b, out=float_c)
        np.copyto(wide_c, float_c, casting="unsafe")

    for peer in (with_integers, with_floats):
        peer()
        np.testing.assert_array_equal(wide_c, C)
    compare_in_turns(
        {
            "tcl": lambda: T.int8_product(A, B, outputs=(C,)),
            "NumPy, by float32": with_floats,
            "NumPy, int32": with_integers,
        }
    )


if __name__ == "__main__":
    main()
