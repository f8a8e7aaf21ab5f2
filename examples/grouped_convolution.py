"""ResNeXt's grouped convolution replaces layers of an existing torch model.

A grouped convolution is many small convolutions, and libraries that are tuned for large ones are
slow at it. In the def, groups and channels are separate dimensions, and the padding is a condition.
The program replaces each ``torch.nn.Conv2d`` that has groups. The weights stay, and the model can
be trained: the gradients are derived from the def.

    python examples/grouped_convolution.py
"""

import argparse
import copy
from functools import partial
from typing import Any

import torch
from torch import nn

import tcl
from tcl.bench.turns import compare_in_turns

GROUPED = """
def grouped(float(N, G, C, H, W) I, float(G, F, C, 3, 3) K) -> (O) {
    O(n, g, f, h, w) +=! (h + kh >= 1 && h + kh - 1 < H && w + kw >= 1 && w + kw - 1 < W)
        ? I(n, g, c, h + kh - 1, w + kw - 1) * K(g, f, c, kh, kw) : 0 where h in 0:H, w in 0:W
}
"""


def exchange(model: nn.Module) -> Any:
    """The same model with our grouped convolutions; it shares the parameters."""
    model = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d) and layer.groups > 1:
            layer.forward = partial(convolve, tcl.torch.op(GROUPED, "grouped"), layer)
    return model


def convolve(operator: Any, layer: nn.Conv2d, x: Any) -> Any:
    """Replaces ``layer``: 3 by 3 taps, padded by one, without a bias."""
    kernels = layer.weight.unflatten(0, (layer.groups, -1))
    return operator(x.unflatten(1, (layer.groups, -1)), kernels).flatten(1, 2)


def resnext(channels: int, width: int, groups: int) -> Any:
    """Two blocks: down to ``width`` channels, a grouped convolution, and up again."""
    blocks = (
        nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)),
            nn.Conv2d(width, width, 3, padding=1, groups=groups, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU(True)),
            *(nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )
        for _ in range(2)
    )
    return nn.ModuleList(blocks)


def run(model: Any, x: Any) -> Any:
    for block in model:
        x = torch.relu(x + block(x))
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    n, channels, width, groups, size = (2, 8, 6, 3, 5) if small else (4, 256, 128, 32, 56)
    torch.manual_seed(0)
    theirs = resnext(channels, width, groups)
    ours = exchange(theirs)
    image = torch.randn(n, channels, size, size)

    found = []
    for model in (theirs.train(), ours.train()):
        model.zero_grad()
        run(model, image).square().mean().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for expected, gradient in zip(*found, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)

    with torch.inference_mode():
        expected = run(theirs.eval(), image)
        torch.testing.assert_close(run(ours.eval(), image), expected, rtol=1e-3, atol=1e-4)
        x, mine, other = torch.randn(n, width, size, size), ours[0][3], theirs[0][3]
        compare_in_turns({"tcl, convolution": lambda: mine(x), "torch": lambda: other(x)})
        compare_in_turns(
            {"tcl, model": lambda: run(ours, image), "torch": lambda: run(theirs, image)}
        )


if __name__ == "__main__":
    main()
