"""A ResNeXt block and a transformer layer in torch, in which single layers are replaced by defs.

    python -m benchmarks.models                   # 1 thread, then 2; eager and compiled
    python -m benchmarks.models --threads 1 --out FILE

Each model is built twice with the same weights: as torch's own modules, and with the layers that
torch has no fused kernel for replaced by ``tcl.torch.op``. Both run in inference mode, eagerly and
under ``torch.compile(fullgraph=True)``; outputs are compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

import tcl.torch
from benchmarks.common import command, write
from tcl.bench.turns import interleaved
from tcl.common.dataclass import dataclass

RESNEXT = """
# A grouped 3x3 convolution, padded with zeros; then normalised by known moments, and rectified.
def group_convolution_norm_relu(
    float(N, G, C, H, W) I, float(G, F, C, 3, 3) Weight, float(G, F) scale, float(G, F) shift
) -> (O) {
    O(n, g, f, h, w) +=! (h + kh - 1 >= 0 && h + kh - 1 < H && w + kw - 1 >= 0 && w + kw - 1 < W)
        ? I(n, g, c, h + kh - 1, w + kw - 1) * Weight(g, f, c, kh, kw) : 0
        where h in 0:H, w in 0:W
    O(n, g, f, h, w) = fmax(O(n, g, f, h, w) * scale(g, f) + shift(g, f), 0)
}

def norm_add_relu(float(N, C, H, W) I, float(N, C, H, W) Residual, float(C) scale, float(C) shift)
    -> (O) {
    O(n, c, h, w) = fmax(I(n, c, h, w) * scale(c) + shift(c) + Residual(n, c, h, w), 0)
}
"""

TRANSFORMER = """
def layer_norm(float(B, T, D) I, float(D) gamma, float(D) beta) -> (O, mean, var) {
    mean(b, t) +=! I(b, t, d)
    mean(b, t) = mean(b, t) / D
    var(b, t) +=! (I(b, t, d) - mean(b, t)) * (I(b, t, d) - mean(b, t))
    O(b, t, d) = (I(b, t, d) - mean(b, t)) * rsqrt(var(b, t) / D + 1e-5) * gamma(d) + beta(d)
}

# The weights with which a query sees the keys up to its own; the scale is that of D features.
def causal_softmax(float(B, H, T, T) Score, float scale) -> (P, Weight, most, total) {
    most(b, h, i) max=! (j <= i) ? Score(b, h, i, j) * scale : -1e30 where j in 0:T
    Weight(b, h, i, j) = (j <= i) ? exp(Score(b, h, i, j) * scale - most(b, h, i)) : 0
    total(b, h, i) +=! Weight(b, h, i, j)
    P(b, h, i, j) = Weight(b, h, i, j) / total(b, h, i)
}

def bias_gelu(float(B, T, D) I, float(D) bias) -> (O) {
    O(b, t, d) = 0.5 * (I(b, t, d) + bias(d)) * (1 + erf((I(b, t, d) + bias(d)) * rsqrt(2.0)))
}
"""


def folded(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Scale and shift of a normalisation by its running moments."""
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return scale.detach(), (norm.bias - norm.running_mean * scale).detach()


class ResNeXtBlock(nn.Module):  # type: ignore[misc]
    """1x1 convolution, grouped 3x3 convolution, 1x1 convolution, each normalised; a residual."""

    def __init__(self, channels: int = 256, width: int = 128, groups: int = 32) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.grouped = nn.Conv2d(width, width, 3, padding=1, groups=groups, bias=False)
        self.grouped_norm = nn.BatchNorm2d(width)
        self.last = nn.Conv2d(width, channels, 1, bias=False)
        self.last_norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) to the same."""
        y = functional.relu(self.first_norm(self.first(x)))
        y = functional.relu(self.grouped_norm(self.grouped(y)))
        return functional.relu(self.last_norm(self.last(y)) + x)


class ReplacedBlock(nn.Module):  # type: ignore[misc]
    """The same, with the grouped convolution and the end replaced."""

    def __init__(self, block: ResNeXtBlock, threads: int) -> None:
        super().__init__()
        self.block = block
        groups, width = block.grouped.groups, block.grouped.out_channels
        self.groups, self.each = groups, width // groups
        self.weight = block.grouped.weight.detach().reshape(groups, self.each, -1, 3, 3)
        self.grouped = [each.reshape(groups, self.each) for each in folded(block.grouped_norm)]
        self.last = folded(block.last_norm)
        self.convolve = tcl.torch.op(RESNEXT, "group_convolution_norm_relu", threads=threads)
        self.finish = tcl.torch.op(RESNEXT, "norm_add_relu", threads=threads)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) to the same."""
        block = self.block
        y = functional.relu(block.first_norm(block.first(x)))
        split = y.unflatten(1, (self.groups, self.each))
        y = self.convolve(split, self.weight, *self.grouped).flatten(1, 2)
        return self.finish(block.last(y), x, *self.last)


class TransformerLayer(nn.Module):  # type: ignore[misc]
    """Causal self-attention and a perceptron, each after a layer normalisation, with residuals."""

    def __init__(self, features: int = 512, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.second_norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)

    def normalised(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        """Rows of mean 0 and variance 1, scaled and shifted."""
        return norm(x)

    def weights(self, scores: Tensor, scale: float) -> Tensor:
        """The causal softmax of (batch, heads, T, T)."""
        t = scores.shape[-1]
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        return torch.softmax((scores * scale).masked_fill(future, float("-inf")), -1)

    def activated(self, x: Tensor) -> Tensor:
        """The perceptron's inner layer."""
        return functional.gelu(self.up(x))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, T, features) to the same."""
        batch, t, features = x.shape
        qkv = self.qkv(self.normalised(x, self.norm)).view(batch, t, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        p = self.weights(q @ k.transpose(-1, -2), (features / self.heads) ** -0.5)
        x = x + self.out((p @ v).transpose(1, 2).reshape(batch, t, features))
        return x + self.down(self.activated(self.normalised(x, self.second_norm)))


class ReplacedLayer(TransformerLayer):
    """The same, with the normalisations, the softmax and the activation replaced."""

    def __init__(self, layer: TransformerLayer, threads: int) -> None:
        super().__init__(layer.qkv.in_features, layer.heads)
        self.load_state_dict(layer.state_dict())
        self.layer_norm = tcl.torch.op(TRANSFORMER, "layer_norm", wanted="O", threads=threads)
        self.causal_softmax = tcl.torch.op(
            TRANSFORMER, "causal_softmax", wanted="P", threads=threads
        )
        self.bias_gelu = tcl.torch.op(TRANSFORMER, "bias_gelu", threads=threads)

    def normalised(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        """Rows of mean 0 and variance 1, scaled and shifted."""
        return self.layer_norm(x, norm.weight, norm.bias)

    def weights(self, scores: Tensor, scale: float) -> Tensor:
        """The causal softmax of (batch, heads, T, T)."""
        return self.causal_softmax(scores, torch.tensor(scale))

    def activated(self, x: Tensor) -> Tensor:
        """The perceptron's inner layer."""
        return self.bias_gelu(functional.linear(x, self.up.weight), self.up.bias)


@dataclass(frozen=True, slots=True)
class Row:
    """One model on so many threads. Times are seconds of one forward pass."""

    model: str
    threads: int
    noise: float
    """The largest difference of an output from torch's, relative to the largest output."""
    eager: float
    eager_replaced: float
    compiled: float
    compiled_replaced: float


def models(threads: int) -> dict[str, tuple[nn.Module, nn.Module, Tensor]]:
    """Model, the same with layers replaced, and an input, by what is printed."""
    torch.manual_seed(0)
    block, layer = ResNeXtBlock().eval(), TransformerLayer().eval()
    for norm in (block.first_norm, block.grouped_norm, block.last_norm):
        nn.init.uniform_(norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(norm.running_var, 0.5, 1.5)
    return {
        "ResNeXt block, 4x256x28x28": (
            block,
            ReplacedBlock(block, threads),
            torch.randn(4, 256, 28, 28),
        ),
        "transformer layer, 4x256x512": (
            layer,
            ReplacedLayer(layer, threads),
            torch.randn(4, 256, 512),
        ),
    }


def measured(name: str, threads: int) -> Row:
    """One row; ``AssertionError`` if outputs differ by more than float32 explains."""
    model, replaced, x = models(threads)[name]
    contenders: dict[str, Callable[[], Tensor]] = {
        "eager": partial(model, x),
        "eager_replaced": partial(replaced, x),
        "compiled": partial(torch.compile(model, fullgraph=True), x),
        "compiled_replaced": partial(torch.compile(replaced, fullgraph=True), x),
    }
    expected = model(x)
    largest = float(expected.abs().max())
    noise = max(float((run() - expected).abs().max()) / largest for run in contenders.values())
    assert noise < 1e-5, f"{name}: outputs differ by {noise:.1e} of the largest"
    times = interleaved(contenders, rounds=9)
    return Row(name, threads, noise, **times)


def main() -> None:
    """Measure, print, and write down."""
    parser = command("models", __doc__)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, each a run")
    given = parser.parse_args()
    rows = []
    for threads in map(int, given.threads.split(",")):
        torch.set_num_threads(threads)
        for name in models(threads):
            with torch.inference_mode():
                row = measured(name, threads)
            rows.append(row)
            print(
                f"{name:30} {threads} thread(s)  eager {row.eager * 1e3:6.2f} -> "
                f"{row.eager_replaced * 1e3:6.2f} ms ({row.eager / row.eager_replaced:.2f}x)  "
                f"compiled {row.compiled * 1e3:6.2f} -> {row.compiled_replaced * 1e3:6.2f} ms "
                f"({row.compiled / row.compiled_replaced:.2f}x)  differ by {row.noise:.1e}"
            )
    write(given.out, {"torch": torch.__version__, "rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
