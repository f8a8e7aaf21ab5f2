"""PyTorch, eager: ``out=`` where there is one, and every form that might be the fastest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from tcl.bench.peers.library import PeerLibrary
from tcl.bench.peers.torch_narrow import narrow, native
from tcl.bench.task import Array, Registry, Values

# Imported by name, and untyped, so that type checks are the same with and without torch.
torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")

forms = Registry()
forms.include(narrow)
form = forms.form


class Torch(PeerLibrary):
    """The contender, for a registry of forms."""

    def __init__(self, registry: Registry, threads: int) -> None:
        super().__init__(registry, threads)
        torch.set_num_threads(threads)
        with contextlib.suppress(RuntimeError):
            torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def own(self, array: Array) -> Any:
        """A tensor of the same memory."""
        if array.dtype.name == "bfloat16":  # NumPy's is none that torch knows
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    def array(self, found: Any) -> Array:
        """An array of the same values; bfloat16 as float32."""
        plain = found.float() if found.dtype == torch.bfloat16 else found
        return np.asarray(plain)


make = partial(Torch, forms)


form("matmul", name="mm")(
    lambda x: partial(torch.mm, native(x.A), x.B, out=x.empty(x.sizes.M, x.sizes.N))
)
form("tmm", name="mm")(lambda x: partial(torch.mm, x.A, x.B.T, out=x.empty(x.sizes.M, x.sizes.N)))
form("mtm", name="mm")(lambda x: partial(torch.mm, x.A.T, x.B, out=x.empty(x.sizes.M, x.sizes.N)))
form("c3", name="mm")(lambda x: partial(torch.mm, x.I, x.W.T, out=x.empty(x.sizes.B, x.sizes.WY)))
form("batch_matmul", name="bmm")(
    lambda x: partial(torch.bmm, native(x.X), x.Y, out=x.empty(x.sizes.B, x.sizes.N, x.sizes.K))
)
form("softmax_twice", name="softmax")(
    lambda x: partial(torch.softmax, x.I, 1, out=x.empty(*x.I.shape))
)
form("row_sum", name="sum")(lambda x: partial(torch.sum, x.I, 1, out=x.empty(x.sizes.M)))
form("row_sum", name="mv")(
    lambda x: partial(torch.mv, x.I, torch.ones(x.sizes.N), out=x.empty(x.sizes.M))
)
form("column_sum", name="sum")(lambda x: partial(torch.sum, x.I, 0, out=x.empty(x.sizes.N)))
form("column_sum", name="mv")(
    lambda x: partial(torch.mv, x.I.T, torch.ones(x.sizes.M), out=x.empty(x.sizes.N))
)
form("one_lut", name="embedding_bag")(lambda x: partial(F.embedding_bag, x.I1, x.LUT1, mode="sum"))


@form("kronecker3_1", name="mm")
def kronecker(x: Values) -> Callable[[], Any]:
    s = x.sizes
    out = x.empty(s.M * s.N0 * s.N1, s.D2)
    flat = x.X.reshape(-1, s.N2)
    return lambda: torch.mm(flat, x.W2.T, out=out).view(s.M, s.N0, s.N1, s.D2)


@form("mlp1", name="addmm, relu_")
def mlp1(x: Values) -> Callable[[], Any]:
    out = x.empty(x.sizes.B, x.sizes.N)
    return lambda: torch.addmm(x.B1, x.I, x.W1, out=out).relu_()


@form("mlp1", name="mm, add_, relu_")
def mlp1_apart(x: Values) -> Callable[[], Any]:
    out = x.empty(x.sizes.B, x.sizes.N)
    return lambda: torch.mm(x.I, x.W1, out=out).add_(x.B1).relu_()


@form("mlp3", name="addmm, relu_")
def mlp3(x: Values) -> Iterator[Any]:
    s = x.sizes
    o2, o3, o4 = x.empty(s.B, s.O), x.empty(s.B, s.P), x.empty(s.B, s.Q)
    w2, w3, w4 = x.W2.T, x.W3.T, x.W4.T
    while True:
        torch.addmm(x.B2, x.I, w2, out=o2).relu_()
        torch.addmm(x.B3, o2, w3, out=o3).relu_()
        yield torch.addmm(x.B4, o3, w4, out=o4).relu_()


def _images(x: Values) -> tuple[Any, Any, Any, int]:
    """Images, filters and bias with the groups, if any, as channels; and their number."""
    groups = getattr(x.sizes, "G", 1)
    images = native(x.I).reshape(x.sizes.N, -1, x.sizes.H, x.sizes.W)
    filters = x.W1.reshape(-1, x.sizes.C, x.sizes.KH, x.sizes.KW)
    return images, filters, x.B.reshape(-1), groups


def _ungrouped(x: Values, found: Any) -> Any:
    return found.reshape(*x.I.shape[:-3], x.sizes.F, *found.shape[-2:])


@form("convolution", "group_convolution")
def conv2d(x: Values) -> Callable[[], Any]:
    images, filters, bias, groups = _images(x)
    return lambda: _ungrouped(x, F.conv2d(images, filters, bias, groups=groups))


@form("convolution", "group_convolution", name="conv2d, channels last")
def conv2d_channels_last(x: Values) -> Iterator[Any]:
    images, filters, bias, groups = _images(x)
    last = {"memory_format": torch.channels_last}
    filters = filters.contiguous(**last)
    while True:
        found = F.conv2d(images.contiguous(**last), filters, bias, groups=groups)
        yield _ungrouped(x, found.contiguous())


@form("convolution", "group_convolution", name="conv2d, packed filters")
def conv2d_packed(x: Values) -> Iterator[Any]:
    images, filters, bias, groups = _images(x)
    packed = torch._C._nn.mkldnn_reorder_conv2d_weight(
        filters.to_mkldnn(), [0, 0], [1, 1], [1, 1], groups, list(images.shape)
    )
    convolve = torch.ops.mkldnn._convolution_pointwise
    while True:
        found = convolve(images, packed, bias, [0, 0], [1, 1], [1, 1], groups, "none", [], "")
        yield _ungrouped(x, found)


@form("convolution", "group_convolution", name="unfold, baddbmm")
def unfold(x: Values) -> Iterator[Any]:
    images, filters, bias, groups = _images(x)
    s = x.sizes
    height, width = s.H - s.KH + 1, s.W - s.KW + 1
    windows = images.unfold(2, s.KH, 1).unfold(3, s.KW, 1).permute(0, 1, 4, 5, 2, 3)
    columns = x.empty(groups, s.C * s.KH * s.KW, height * width)
    into = columns.view(windows.shape[1:])
    weights = filters.reshape(groups, s.F, -1)
    bias = bias.reshape(groups, s.F, 1)
    out = x.empty(s.N, groups, s.F, height * width)
    while True:
        for n in range(s.N):
            into.copy_(windows[n])
            torch.baddbmm(bias, weights, columns, out=out[n])
        yield _ungrouped(x, out.view(s.N, -1, height, width))


@form("masked_convolution", name="conv2d")
def masked(x: Values) -> Iterator[Any]:
    rectified = x.empty(*x.I.shape)
    while True:
        weights = x.Weights * (x.Mask == 1)[:, :, None, None]
        yield F.conv2d(torch.clamp_min(x.I, 0, out=rectified), weights)


@form("masked_convolution", name="matmul")
def masked_matmul(x: Values) -> Iterator[Any]:
    s = x.sizes
    rectified, out = x.empty(*x.I.shape), x.empty(s.B, s.F, s.H * s.W)
    while True:
        weights = x.Weights.view(s.F, s.C) * (x.Mask == 1)
        torch.clamp_min(x.I, 0, out=rectified)
        torch.bmm(weights.expand(s.B, -1, -1), rectified.view(s.B, s.C, -1), out=out)
        yield out.view(s.B, s.F, s.H, s.W)


@form("group_normalization_single")
def group_norm(x: Values) -> Callable[[], Any]:
    s = x.sizes
    images = x.I.reshape(s.N, s.G * s.D, s.H, s.W)
    gamma, beta = x.gamma.reshape(-1), x.beta.reshape(-1)
    return lambda: F.group_norm(images, s.G, gamma, beta, 1e-5).view(x.I.shape)


@form("layernorm")
def layer_norm(x: Values) -> Callable[[], Any]:
    eps = float(x.eps)
    return lambda: F.layer_norm(x.I, (x.sizes.D,), x.gamma, x.beta, eps)


@form("moments", name="mean, vector_norm")
def moments(x: Values) -> Iterator[Any]:
    mean, var = x.empty(x.sizes.N), x.empty(x.sizes.N)
    while True:
        torch.mean(x.I, 1, out=mean)
        torch.linalg.vector_norm(x.I, dim=1, out=var)
        var.square_().div_(x.sizes.K).addcmul_(mean, mean, value=-1)
        yield mean, var


@form("attention_scores", name="baddbmm, softmax")
def attention(x: Values) -> Iterator[Any]:
    s = x.sizes
    scores, out = x.empty(s.B, s.S, s.S), x.empty(s.B, s.S, s.S)
    keys, scale = x.K.transpose(1, 2), s.D**-0.5
    while True:
        torch.baddbmm(scores, x.Q, keys, beta=0, alpha=scale, out=scores)
        yield torch.softmax(scores, 2, out=out)


@form("attention", name="scaled_dot_product_attention")
def fused_attention(x: Values) -> Callable[[], Any]:
    return partial(torch.nn.functional.scaled_dot_product_attention, x.Q, x.K, x.V)


@form("bias_relu_scale")
def bias_relu_scale(x: Values) -> Callable[[], Any]:
    out, scale = x.empty(*x.I.shape), float(x.scale)
    return lambda: torch.add(x.I, x.bias, out=out).clamp_min_(0).mul_(scale)


@form("stencil", name="slices")
def stencil(x: Values) -> Callable[[], Any]:
    i = x.I
    out = x.empty(i.shape[0] - 2, i.shape[1] - 2)
    mid, top, low = i[1:-1, 1:-1], i[:-2, 1:-1], i[2:, 1:-1]
    left, right = i[1:-1, :-2], i[1:-1, 2:]
    return lambda: torch.add(mid, top, out=out).add_(low).add_(left).add_(right).mul_(0.2)


@form("wavenet", name="conv1d")
def wavenet_conv(x: Values) -> Iterator[Any]:
    s = x.sizes
    taps = torch.cat([x.FilterWeight, x.GateWeight])
    bias = torch.cat([x.FilterBias, x.GateBias])
    res_weight, skip_weight = x.ResWeight[:, :, None], x.SkipWeight[:, :, None]
    while True:
        padded = F.pad(x.Data, (s.DILATION, 0))
        both = F.conv1d(padded, taps, bias, dilation=s.DILATION)
        filters, gate = both.split(s.DILATION_C, 1)
        units = torch.tanh_(filters).mul_(torch.sigmoid_(gate))
        res = F.conv1d(units, res_weight, x.ResBias).add_(x.Data)
        yield res, F.conv1d(units, skip_weight, x.SkipBias)


@form("wavenet", name="addmm")
def wavenet(x: Values) -> Iterator[Any]:
    s = x.sizes
    t, d, c = s.RECEPTIVE_FIELD, s.DILATION, s.RESIDUAL_C
    taps = torch.cat([x.FilterWeight, x.GateWeight])
    taps = torch.cat([taps[:, :, 1], taps[:, :, 0]], 1).contiguous()
    bias = torch.cat([x.FilterBias, x.GateBias])[:, None]
    wide, both = torch.zeros(2 * c, t), x.empty(2 * s.DILATION_C, t)
    res, skip = x.empty(s.B, c, t), x.empty(s.B, s.SKIP_C, t)
    while True:
        for b in range(s.B):
            wide[:c] = x.Data[b]
            wide[c:, d:] = x.Data[b][:, :-d]
            torch.addmm(bias, taps, wide, out=both)
            units = both[: s.DILATION_C].tanh_().mul_(both[s.DILATION_C :].sigmoid_())
            torch.addmm(x.ResBias[:, None], x.ResWeight, units, out=res[b]).add_(x.Data[b])
            torch.addmm(x.SkipBias[:, None], x.SkipWeight, units, out=skip[b])
        yield res, skip


@form("argmin", name="min")
def argmin_by_min(x: Values) -> Iterator[Any]:
    least, best = torch.empty(()), torch.empty((), dtype=torch.int64)
    while True:
        torch.min(x.Distance, 0, out=(least, best))
        yield best, least


@form("argmin")
def argmin(x: Values) -> Iterator[Any]:
    while True:
        best = torch.argmin(x.Distance)
        yield best, x.Distance[best]
