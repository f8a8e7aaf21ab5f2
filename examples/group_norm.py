"""Group normalisation: mean and variance of each group of channels, then scale and offset.

NumPy passes over the images once per operation. Here the statements of one group run after one
another while its elements are in a cache, and all images are read from memory once.

    python examples/group_norm.py
"""

import argparse

import numpy as np
import numpy.typing as npt

import tcl
from tcl.bench.turns import compare_in_turns

GROUP_NORM = """
def group_norm(float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta) -> (O, mean, var) {
    mean(n, g) +=! I(n, g, d, h, w)
    mean(n, g) = mean(n, g) / (D * H * W)
    var(n, g) +=! (I(n, g, d, h, w) - mean(n, g)) * (I(n, g, d, h, w) - mean(n, g))
    var(n, g) = var(n, g) / (D * H * W)
    O(n, g, d, h, w) =
        gamma(g, d) * (I(n, g, d, h, w) - mean(n, g)) * rsqrt(var(n, g) + 1e-5) + beta(g, d)
}
"""

Array = npt.NDArray[np.float32]


class WithNumPy:
    """The same with NumPy; every array that it needs is made once."""

    def __init__(self, images: Array, gamma: Array, beta: Array) -> None:
        self.images, self.gamma, self.beta = images, gamma[..., None, None], beta[..., None, None]
        self.moment = np.empty((*images.shape[:2], 1, 1, 1), np.float32)
        self.out, self.squares = np.empty_like(images), np.empty_like(images)

    def __call__(self) -> Array:
        axes = (2, 3, 4)
        np.mean(self.images, axis=axes, keepdims=True, out=self.moment)
        np.subtract(self.images, self.moment, out=self.out)
        np.square(self.out, out=self.squares)
        np.mean(self.squares, axis=axes, keepdims=True, out=self.moment)
        self.moment += 1e-5
        self.out /= np.sqrt(self.moment, out=self.moment)
        self.out *= self.gamma
        self.out += self.beta
        return self.out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    n, groups, channels, size = (2, 3, 4, 5) if small else (8, 32, 8, 28)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((n, groups, channels, size, size), np.float32)
    gamma, beta = rng.standard_normal((2, groups, channels), np.float32)

    T = tcl.define(GROUP_NORM)
    outputs = T.group_norm(images, gamma, beta)
    with_numpy = WithNumPy(images, gamma, beta)
    np.testing.assert_allclose(outputs[0], with_numpy(), rtol=1e-3, atol=1e-4)

    compare_in_turns(
        {
            "tcl": lambda: T.group_norm(images, gamma, beta, outputs=outputs),
            "NumPy": with_numpy,
        }
    )


if __name__ == "__main__":
    main()
