"""A convolution with padding and strides, as in deep-learning frameworks.

The padding is a condition: if a tap would be outside the image, it adds 0. The image is not copied.
A guarded access does not bound its indices, so ``where`` gives the ranges of the output's rows and
columns, and of the taps.

    python examples/convolution.py
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

import tcl
from tcl.bench.turns import compare_in_turns

try:
    import torch
except ImportError:
    torch = None

CONVOLUTION = """
def convolution(float(N, C, H, W) Image, float(F, C, 3, 3) Weight, float(F) Bias) -> (Out) {
    Out(n, f, h, w) +=!
        (2 * h + kh >= 1 && 2 * h + kh <= H && 2 * w + kw >= 1 && 2 * w + kw <= W)
        ? Image(n, c, 2 * h + kh - 1, 2 * w + kw - 1) * Weight(f, c, kh, kw) : 0
        where h in 0:(H + 1) / 2, w in 0:(W + 1) / 2, kh in 0:3, kw in 0:3
    Out(n, f, h, w) = Out(n, f, h, w) + Bias(f)
}
"""

Array = npt.NDArray[np.float32]


def with_numpy(image: Array, weight: Array, bias: Array) -> Array:
    """The same with NumPy: a padded copy, a view of its windows, a product over each."""
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    out: Array = np.einsum("nchwij,fcij->nfhw", windows, weight, optimize=True)
    return out + bias[:, None, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    n, c, f, size = (2, 3, 4, 11) if small else (16, 32, 32, 56)
    rng = np.random.default_rng(0)
    image = rng.standard_normal((n, c, size, size), np.float32)
    weight = rng.standard_normal((f, c, 3, 3), np.float32)
    bias = rng.standard_normal(f, np.float32)

    T = tcl.define(CONVOLUTION)
    out = T.convolution(image, weight, bias)
    np.testing.assert_allclose(out, with_numpy(image, weight, bias), rtol=1e-3, atol=1e-4)

    contenders = {"tcl": lambda: T.convolution(image, weight, bias, outputs=(out,))}
    if torch is None:
        print("torch is not installed: compared with NumPy alone")
    else:
        given = [torch.from_numpy(array) for array in (image, weight, bias)]

        def with_torch() -> Any:  # it has no out=
            return torch.nn.functional.conv2d(*given, stride=2, padding=1)

        np.testing.assert_allclose(out, with_torch(), rtol=1e-3, atol=1e-4)
        contenders["torch"] = with_torch
    contenders["NumPy"] = lambda: with_numpy(image, weight, bias)
    compare_in_turns(contenders)


if __name__ == "__main__":
    main()
