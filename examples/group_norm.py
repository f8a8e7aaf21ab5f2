"""Group normalisation and SiLU, a pair of layers in every diffusion U-Net, as one kernel.

Each group of channels of each image gets mean 0 and variance 1, then a gain and an offset per
channel, then ``x * sigmoid(x)``. Libraries read and write the images once per operation, or once
per layer. Here the statements run group by group, while the elements of a group are in a cache.

    python examples/group_norm.py
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import tcl
from tcl.bench.turns import compare_in_turns

GROUP_NORM = """
def group_norm(float(N, G, D, H, W) I, float(G, D) Gain, float(G, D) Offset) -> (O, mean, var) {
    mean(n, g) +=! I(n, g, d, h, w)
    mean(n, g) = mean(n, g) / (D * H * W)
    var(n, g) +=! (I(n, g, d, h, w) - mean(n, g)) * (I(n, g, d, h, w) - mean(n, g))
    var(n, g) = var(n, g) / (D * H * W)
    O(n, g, d, h, w) =
        Gain(g, d) * (I(n, g, d, h, w) - mean(n, g)) * rsqrt(var(n, g) + 1e-5) + Offset(g, d)
    O(n, g, d, h, w) = O(n, g, d, h, w) * expit(O(n, g, d, h, w))
}
"""

Array = npt.NDArray[np.float32]


def with_numpy(images: Array, gain: Array, offset: Array) -> Array:
    """The same with NumPy, into as few arrays as it needs."""
    axes = (2, 3, 4)
    out: Array = images - np.mean(images, axis=axes, keepdims=True)
    out *= gain[..., None, None] / np.sqrt(
        np.mean(np.square(out), axis=axes, keepdims=True) + np.float32(1e-5)
    )
    out += offset[..., None, None]
    sigmoid = np.exp(-out)
    sigmoid += 1
    out /= sigmoid
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    n, groups, channels, size = (2, 3, 4, 5) if small else (4, 32, 10, 64)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((n, groups, channels, size, size), np.float32)
    gain, offset = rng.standard_normal((2, groups, channels), np.float32)

    T = tcl.define(GROUP_NORM)
    given = (torch.from_numpy(a) for a in (images.reshape(n, -1, size, size), gain, offset))
    image, weight, bias = (t if t.ndim == 4 else t.flatten() for t in given)

    def with_torch() -> Any:
        normalised = torch.nn.functional.group_norm(image, groups, weight, bias, 1e-5)
        return torch.nn.functional.silu(normalised, inplace=True)

    out = T.group_norm(images, gain, offset, wanted=("O",))
    np.testing.assert_allclose(out, with_numpy(images, gain, offset), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(out, with_torch().reshape(out.shape), rtol=1e-3, atol=1e-4)
    compare_in_turns(
        {
            "tcl": lambda: T.group_norm(images, gain, offset, wanted=("O",)),
            "torch": with_torch,
            "NumPy": lambda: with_numpy(images, gain, offset),
        }
    )


if __name__ == "__main__":
    main()
