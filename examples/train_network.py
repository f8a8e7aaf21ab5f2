"""A network whose layers are all defs, trained with derived gradients.

The network classifies grids of symbols by the symbol in their first corner: an embedding, a padded
convolution, group normalisation, relu, a linear layer and the loss of a softmax. Each layer is an
operator of torch (``tcl.torch.op``) with a derived backward def. Torch's optimiser takes the steps.
For comparison, the same network of torch's own layers starts from the same numbers.

    python examples/train_network.py
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import tcl
from tcl.bench.turns import compare_in_turns

LAYERS = """
def embed(float(V, C) Table, int32(N, H, W) Symbol) -> (O) {
    O(n, c, h, w) = Table(Symbol(n, h, w), c)
}
def convolve(float(N, C, H, W) I, float(F, C, 3, 3) K, float(F) B) -> (O) {
    O(n, f, h, w) +=! (h + kh >= 1 && h + kh - 1 < H && w + kw >= 1 && w + kw - 1 < W)
        ? I(n, c, h + kh - 1, w + kw - 1) * K(f, c, kh, kw) : 0 where h in 0:H, w in 0:W
    O(n, f, h, w) = O(n, f, h, w) + B(f)
}
def normalise(float(N, G, D, H, W) I, float(G, D) Gamma, float(G, D) Beta) -> (O, mean, scale) {
    mean(n, g) +=! I(n, g, d, h, w)
    mean(n, g) = mean(n, g) / (D * H * W)
    scale(n, g) +=! (I(n, g, d, h, w) - mean(n, g)) * (I(n, g, d, h, w) - mean(n, g))
    scale(n, g) = rsqrt(scale(n, g) / (D * H * W) + 1e-5)
    O(n, g, d, h, w) = (I(n, g, d, h, w) - mean(n, g)) * scale(n, g) * Gamma(g, d) + Beta(g, d)
}
def relu(float(N, F, H, W) I) -> (O) { O(n, f, h, w) = fmax(I(n, f, h, w), 0) }
def linear(float(N, F, H, W) I, float(K, F, H, W) A, float(K) B) -> (O) {
    O(n, k) +=! I(n, f, h, w) * A(k, f, h, w)
    O(n, k) = O(n, k) + B(k)
}
def loss(float(N, K) Z, int32(N) Label) -> (L, most, total) {
    most(n) max=! Z(n, k)
    total(n) +=! exp(Z(n, k) - most(n))
    L +=! log(total(n)) + most(n) - Z(n, Label(n))
    L = L / N
}
"""
GROUPS, CHANNELS = 2, 4
Network = Callable[..., Any]


def ours() -> Network:
    """The loss of the network of defs."""
    outputs = {"normalise": "O", "loss": "L"}
    names = ("embed", "convolve", "normalise", "relu", "linear", "loss")
    layer = {n: tcl.torch.op(LAYERS, n, wanted=outputs.get(n)) for n in names}

    def run(symbols: Any, labels: Any, *parameters: Any) -> Any:
        table, kernel, bias, gamma, beta, weights, offset = parameters
        x = layer["convolve"](layer["embed"](table, symbols), kernel, bias)
        grouped = x.unflatten(1, (GROUPS, CHANNELS))
        x = layer["relu"](layer["normalise"](grouped, gamma, beta).flatten(1, 2))
        return layer["loss"](layer["linear"](x, weights, offset), labels)

    return run


def theirs(symbols: Any, labels: Any, *parameters: Any) -> Any:
    """The loss of the network of torch's layers."""
    table, kernel, bias, gamma, beta, weights, offset = parameters
    x = functional.embedding(symbols, table).permute(0, 3, 1, 2)
    x = functional.conv2d(x, kernel, bias, padding=1)
    x = functional.group_norm(x, GROUPS, gamma.flatten(), beta.flatten(), 1e-5).relu()
    scores = functional.linear(x.flatten(1), weights.flatten(1), offset)
    return functional.cross_entropy(scores, labels.long())


def learn(network: Network, steps: int, size: int, batch: int) -> list[float]:
    """The loss of each step, from the same initial numbers."""
    random, filters = torch.Generator().manual_seed(0), GROUPS * CHANNELS
    symbols, embedded, kinds = 8, 3, 4
    shapes: Sequence[tuple[int, ...]] = (
        *((symbols, embedded), (filters, embedded, 3, 3), (filters,)),
        *((GROUPS, CHANNELS), (GROUPS, CHANNELS), (kinds, filters, size, size), (kinds,)),
    )
    parameters = [(torch.randn(shape, generator=random) * 0.3).requires_grad_() for shape in shapes]
    optimiser = torch.optim.Adam(parameters, lr=0.02)
    found = []
    for _ in range(steps):
        grid = torch.randint(symbols, (batch, size, size), generator=random)
        loss = network(grid.int(), (grid[:, 0, 0] % kinds).int(), *parameters)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    steps, size, batch = (20, 4, 8) if small else (200, 8, 64)
    network = ours()
    mine, other = (learn(each, steps, size, batch) for each in (network, theirs))
    np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4)
    print(f"loss from {mine[0]:.4f} to {mine[-1]:.4f}, torch's to {other[-1]:.4f}")
    few = max(1, steps // 20)
    compare_in_turns(
        {
            "tcl": lambda: learn(network, few, size, batch),
            "torch": lambda: learn(theirs, few, size, batch),
        }
    )


if __name__ == "__main__":
    main()
