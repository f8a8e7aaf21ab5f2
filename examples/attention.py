"""Causal attention scores with a penalty for distance (ALiBi), in one kernel.

The mask and the penalty are formulas over indices: query ``i`` sees the keys ``j <= i``, and each
head subtracts its slope times ``i - j``. No array holds the mask or the penalty. The statements
share their rows, so one kernel computes a row of scores, its softmax and its weights while the row
is in a cache.

    python examples/attention.py
"""

import argparse
from typing import Any

import numpy as np
import torch

import tcl
from tcl.bench.turns import compare_in_turns

ATTENTION = """
def attention(float(H, S, D) Q, float(H, S, D) K, float(H) Slope) -> (P, Score, Most, Total) {
    Score(h, i, j) +=! Q(h, i, d) * K(h, j, d)
    Score(h, i, j) = Score(h, i, j) * rsqrt(float(D)) - Slope(h) * float(i - j)
    Most(h, i) max=! (j <= i) ? Score(h, i, j) : -1e30 where j in 0:S
    Total(h, i) +=! (j <= i) ? exp(Score(h, i, j) - Most(h, i)) : 0 where j in 0:S
    P(h, i, j) = (j <= i) ? exp(Score(h, i, j) - Most(h, i)) / Total(h, i) : 0 where j in 0:S
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    heads, length, width = (2, 20, 8) if small else (8, 512, 64)
    rng = np.random.default_rng(0)
    Q, K = rng.standard_normal((2, heads, length, width), np.float32)
    slope = np.exp2(-np.arange(1, heads + 1)).astype(np.float32)

    T = tcl.define(ATTENTION)

    def with_tcl() -> Any:
        return T.attention(Q, K, slope, wanted=("P",))

    # The mask and the penalty as an array, made once and not timed.
    distance = np.arange(length)[:, None] - np.arange(length)
    bias = np.where(distance < 0, np.float32(-1e30), slope[:, None, None] * -distance)
    q, k, b = (torch.from_numpy(array.astype(np.float32)) for array in (Q, K, bias))

    def with_torch() -> Any:
        return torch.softmax(torch.baddbmm(b, q, k.transpose(1, 2), alpha=width**-0.5), 2)

    def with_numpy() -> Any:
        scores = (Q / np.sqrt(np.float32(width))) @ K.transpose(0, 2, 1)
        scores += bias
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        return scores

    for expected in (with_torch(), with_numpy()):
        np.testing.assert_allclose(with_tcl(), expected, rtol=1e-3, atol=1e-5)
    compare_in_turns({"tcl": with_tcl, "torch": with_torch, "NumPy": with_numpy})


if __name__ == "__main__":
    main()
