"""A stack of WaveNet cells: each layer is one kernel.

A cell has two causal convolutions with two taps, ``2 ** layer`` steps apart: a filter and a gate.
Their product feeds a residual and a skip connection. Torch calls a dozen operators for a cell. The
dilation is a size: the extent of the input ``Dilation``, whose elements are never read.

    python examples/wavenet.py
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import tcl
from tcl.bench.turns import compare_in_turns

CELL = Path(__file__).with_name("wavenet.tc")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    layers, length, channels, skips = (2, 23, 5, 7) if small else (8, 4000, 32, 256)
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32) / 4

    sound = normal(1, channels, length)
    weights = [
        [
            *(normal(channels, channels, 2), normal(channels)),  # filter
            *(normal(channels, channels, 2), normal(channels)),  # gate
            *(normal(channels, channels), normal(channels)),  # residual
            *(normal(skips, channels), normal(skips)),
        ]
        for _ in range(layers)
    ]
    dilations = [np.empty(2**layer, np.float32) for layer in range(layers)]

    T = tcl.define(CELL)

    def with_tcl() -> Any:
        x, total = sound, np.zeros((1, skips, length), np.float32)
        for given, dilation in zip(weights, dilations, strict=True):
            x, skip = T.wavenet(x, *given, dilation, wanted=("Res", "Skip"))
            total += skip
        return total

    tensors = [[torch.from_numpy(array) for array in given] for given in weights]

    def with_torch() -> Any:
        x, total = torch.from_numpy(sound), torch.zeros(1, skips, length)
        for layer, given in enumerate(tensors):
            filters, filter_bias, gate, gate_bias, res, res_bias, skip, skip_bias = given
            padded = functional.pad(x, (2**layer, 0))
            one = functional.conv1d(padded, filters, filter_bias, dilation=2**layer).tanh_()
            one *= functional.conv1d(padded, gate, gate_bias, dilation=2**layer).sigmoid_()
            x = x + (res @ one + res_bias[:, None])
            total += skip @ one + skip_bias[:, None]
        return total

    np.testing.assert_allclose(with_tcl(), with_torch(), rtol=1e-3, atol=1e-3)
    compare_in_turns({"tcl": with_tcl, "torch": with_torch})


if __name__ == "__main__":
    main()
