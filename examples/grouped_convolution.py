"""ResNeXt's grouped convolution, exchanged in a torch model that is there already.

A grouped convolution is many small convolutions, and libraries that are tuned for large ones are
slow at it. In its def groups and channels are dimensions of their own, and padding is a condition.
A module that calls it replaces each ``torch.nn.Conv2d`` with groups. The weights stay, and the
model can be trained: the gradients are derived from the def.

    python examples/grouped_convolution.py
"""

import argparse
import copy

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


class Grouped(nn.Module):
    """In place of ``Conv2d(channels, channels, 3, padding=1, groups=groups, bias=False)``."""

    def __init__(self, like: nn.Conv2d) -> None:
        super().__init__()
        self.groups, self.weight = like.groups, like.weight
        self.operator = tcl.torch.op(GROUPED, "grouped")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernels = self.weight.unflatten(0, (self.groups, -1))
        return self.operator(x.unflatten(1, (self.groups, -1)), kernels).flatten(1, 2)


def exchange(model: nn.Module) -> nn.Module:
    """The same model, its parameters shared, with our grouped convolutions."""
    model = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Conv2d) and layer.groups > 1:
                setattr(parent, name, Grouped(layer))
    return model


class Block(nn.Module):
    """A block of ResNeXt: down to ``width`` channels, a grouped convolution, and up again."""

    def __init__(self, channels: int, width: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)),
            nn.Conv2d(width, width, 3, padding=1, groups=groups, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU(True)),
            *(nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.layers(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small sizes, done in a moment")
    small = parser.parse_args().small
    n, channels, width, groups, size = (2, 8, 6, 3, 5) if small else (4, 256, 128, 32, 56)
    torch.manual_seed(0)
    theirs = nn.Sequential(Block(channels, width, groups), Block(channels, width, groups))
    ours = exchange(theirs)
    image = torch.randn(n, channels, size, size)

    found = []
    for model in (theirs.train(), ours.train()):
        model.zero_grad()
        model(image).square().mean().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for expected, gradient in zip(*found, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)

    with torch.inference_mode():
        torch.testing.assert_close(ours.eval()(image), theirs.eval()(image), rtol=1e-3, atol=1e-4)
        x, layers = torch.randn(n, width, size, size), (ours[0].layers[3], theirs[0].layers[3])
        for what, given, (mine, other) in (
            ("the convolution", x, layers),
            ("the model", image, (ours, theirs)),
        ):
            compare_in_turns(
                {
                    f"tcl, {what}": lambda mine=mine, given=given: mine(given),
                    f"torch, {what}": lambda other=other, given=given: other(given),
                }
            )


if __name__ == "__main__":
    main()
