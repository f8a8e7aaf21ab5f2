"""Causal attention in one def: scores, mask, softmax, values.

The statements share their indices, so one kernel makes them all, some rows at a time: scores are
used while they are still in a cache. The mask is a condition on indices: query ``i`` sees the keys
``j <= i``. Everything that a def assigns is an output of it.

    python examples/attention.py
"""

import argparse

import numpy as np
import numpy.typing as npt

import tcl
from tcl.bench.turns import compare_in_turns

ATTENTION = """
def attention(float(B, S, D) Q, float(B, S, D) K, float(B, S, E) V) -> (O, Score, Most, Total) {
    Score(b, i, j) +=! Q(b, i, d) * K(b, j, d)
    Score(b, i, j) = Score(b, i, j) * rsqrt(float(D))
    Most(b, i) max=! (j <= i) ? Score(b, i, j) : -1e30 where j in 0:S
    Total(b, i) +=! (j <= i) ? exp(Score(b, i, j) - Most(b, i)) : 0 where j in 0:S
    O(b, i, e) +=! (j <= i) ? exp(Score(b, i, j) - Most(b, i)) * V(b, j, e) : 0 where j in 0:S
    O(b, i, e) = O(b, i, e) / Total(b, i)
}
"""

Array = npt.NDArray[np.float32]


class WithNumPy:
    """The same with NumPy; every array that it needs is made once."""

    def __init__(self, q: Array, k: Array, v: Array) -> None:
        self.q, self.k, self.v = q / np.sqrt(np.float32(q.shape[2])), k.transpose(0, 2, 1), v
        batch, length, _ = q.shape
        self.future = np.where(np.tri(length, dtype=np.bool_), np.float32(0), np.float32(-1e30))
        self.weights = np.empty((batch, length, length), np.float32)
        self.row = np.empty((batch, length, 1), np.float32)
        self.out = np.empty_like(v)

    def __call__(self) -> Array:
        np.matmul(self.q, self.k, out=self.weights)
        self.weights += self.future
        self.weights -= np.max(self.weights, axis=2, keepdims=True, out=self.row)
        np.exp(self.weights, out=self.weights)
        self.weights /= np.sum(self.weights, axis=2, keepdims=True, out=self.row)
        return np.matmul(self.weights, self.v, out=self.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    batch, length, width = (2, 20, 8) if small else (8, 256, 64)
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((batch, length, width), np.float32) for _ in range(3))

    T = tcl.define(ATTENTION)
    outputs = T.attention(Q, K, V)
    with_numpy = WithNumPy(Q, K, V)
    np.testing.assert_allclose(outputs[0], with_numpy(), rtol=1e-3, atol=1e-5)

    compare_in_turns({"tcl": lambda: T.attention(Q, K, V, outputs=outputs), "NumPy": with_numpy})


if __name__ == "__main__":
    main()
