"""NumPy, by whole arrays or in blocks that stay in the cache, whichever is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tcl.bench.peers.library import NARROW_FLOATS, PeerLibrary, exact_blocks, largest_term
from tcl.bench.task import Array, Registry, Values

forms = Registry()
form = forms.form
F32 = np.float32

# Types that BLAS does not know are made float32 in each call, where the sums are done.


def widened(product: Callable[..., Any], *arrays: Array) -> Callable[..., Array]:
    """What calls ``product`` with the arrays in float32, into a float32 ``out``."""
    wide = [np.empty(a.shape, F32) for a in arrays]

    def run(out: Array) -> Array:
        for source, target in zip(arrays, wide, strict=True):
            np.copyto(target, source)
        return np.asarray(product(*wide, out=out))

    return run


def rounded(x: Values, a: Array, b: Array, *shape: int) -> Callable[[], Any]:
    """The product in float32, rounded once."""
    product, total, out = widened(np.matmul, a, b), np.empty(shape, F32), x.empty(*shape)

    def run() -> Any:
        np.copyto(out, product(total), casting="same_kind")
        return out

    return run


form("matmul", name="in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul", name="in float32", types=NARROW_FLOATS)(
    lambda x: rounded(x, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


def counted(x: Values, a: Array, b: Array, *shape: int) -> Callable[[], Any]:
    """The product of integers in blocks that float32 adds up without rounding."""
    cuts = exact_blocks(a.shape[-1], largest_term(a.dtype.name))
    parts = [widened(np.matmul, a[..., k], b[..., k, :]) for k in cuts]
    total, out = np.empty(shape, F32), x.empty(*shape, dtype="int32")

    def run() -> Any:
        np.copyto(out, parts[0](total), casting="unsafe")
        for part in parts[1:]:
            np.add(out, part(total), out=out, casting="unsafe")
        return out

    return run


form("matmul_int8", "matmul_uint8", name="in float32")(
    lambda x: counted(x, x.A, x.B, x.sizes.M, x.sizes.N)
)
form("batch_matmul_int8", name="in float32")(
    lambda x: counted(x, x.X, x.Y, x.sizes.B, x.sizes.N, x.sizes.K)
)


@form("convolution", name="im2col in float32", types=NARROW_FLOATS)
@form("convolution_int8", name="im2col in float32")
def im2col_widened(x: Values) -> Iterator[Any]:
    s = x.sizes
    windows = sliding_window_view(x.I, (s.KH, s.KW), axis=(-2, -1))
    windows = np.moveaxis(windows, (-2, -1), (-4, -3))  # N, C, KH, KW, HO, WO
    height, width = windows.shape[-2:]
    columns = np.empty((s.C, s.KH, s.KW, height, width), F32)
    flat, total = columns.reshape(-1, height * width), np.empty((s.F, height * width), F32)
    filters = np.empty((s.F, flat.shape[0]), F32)
    exact = x.W1.dtype.name == "int8"
    out = x.empty(s.N, s.F, height, width, dtype="int32" if exact else None)
    cuts = exact_blocks(flat.shape[0], largest_term("int8")) if exact else [slice(None)]
    while True:
        np.copyto(filters, x.W1.reshape(filters.shape))
        for n in range(s.N):
            np.copyto(columns, windows[n])
            image = out[n].reshape(total.shape)
            for i, k in enumerate(cuts):
                np.matmul(filters[:, k], flat[k], out=total)
                if i:
                    np.add(image, total, out=image, casting="unsafe")
                elif exact:
                    np.copyto(image, total, casting="unsafe")
                else:
                    np.add(total, x.B.astype(F32)[:, None], out=total)
                    np.copyto(image, total, casting="same_kind")
        yield out


FLOATS = ("float32", "float64")
"""Types of whose products BLAS does the sums."""
_BLOCK = 256 << 10
"""Bytes of a block of rows."""


class _Numpy(PeerLibrary):
    def versions(self) -> dict[str, str]:
        blas: Any = np.show_config(mode="dicts")
        found = blas["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, found["name"]: found["version"]}


make = partial(_Numpy, forms)


def row_blocks(rows: int, row_bytes: int) -> list[slice]:
    """The rows, cut so that a block fits the cache."""
    step = max(1, _BLOCK // max(1, row_bytes))
    return [slice(i, min(rows, i + step)) for i in range(0, rows, step)]


def by_blocks(out: Array, compute: Callable[[slice, Array], object]) -> Callable[[], Array]:
    cuts = row_blocks(out.shape[0], 4 * out.shape[1])

    def run() -> Any:
        for cut in cuts:
            compute(cut, out[cut])
        return out

    return run


form("matmul", name="matmul", types=FLOATS)(
    lambda x: partial(np.matmul, x.A, x.B, out=x.empty(x.sizes.M, x.sizes.N))
)
form("tmm", name="matmul")(
    lambda x: partial(np.matmul, x.A, x.B.T, out=x.empty(x.sizes.M, x.sizes.N))
)
form("c3", name="matmul")(
    lambda x: partial(np.matmul, x.I, x.W.T, out=x.empty(x.sizes.B, x.sizes.WY))
)
form("batch_matmul", name="matmul", types=FLOATS)(
    lambda x: partial(np.matmul, x.X, x.Y, out=x.empty(x.sizes.B, x.sizes.N, x.sizes.K))
)
form("row_sum", name="sum")(lambda x: partial(np.sum, x.I, axis=1, out=x.empty(x.sizes.M)))
form("row_sum", name="gemv")(
    lambda x: partial(np.matmul, x.I, np.ones(x.sizes.N, F32), out=x.empty(x.sizes.M))
)
form("column_sum", name="sum")(lambda x: partial(np.sum, x.I, axis=0, out=x.empty(x.sizes.N)))
form("column_sum", name="gemv")(
    lambda x: partial(np.matmul, np.ones(x.sizes.M, F32), x.I, out=x.empty(x.sizes.N))
)


@form("kronecker3_1", name="matmul")
def kronecker(x: Values) -> Iterator[Any]:
    s = x.sizes
    out = x.empty(s.M, s.N0, s.N1, s.D2)
    images, flat = x.X.reshape(-1, s.N2), out.reshape(-1, s.D2)
    while True:
        np.matmul(images, x.W2.T, out=flat)
        yield out


@form("mlp1")
def mlp1(x: Values) -> Iterator[Any]:
    out = x.empty(x.sizes.B, x.sizes.N)
    while True:
        layer(x.I, x.W1, x.B1, out)
        yield out


def layer(images: Array, weights: Array, bias: Array, out: Array) -> None:
    """``out = max(images @ weights + bias, 0)``."""
    np.matmul(images, weights, out=out)
    np.add(out, bias, out=out)
    np.maximum(out, 0, out=out)


@form("mlp3")
def mlp3(x: Values) -> Iterator[Any]:
    s = x.sizes
    o2, o3, o4 = x.empty(s.B, s.O), x.empty(s.B, s.P), x.empty(s.B, s.Q)
    while True:
        layer(x.I, x.W2.T, x.B2, o2)
        layer(o2, x.W3.T, x.B3, o3)
        layer(o3, x.W4.T, x.B4, o4)
        yield o4


@form("convolution", "group_convolution", types=FLOATS)
def im2col(x: Values) -> Iterator[Any]:
    """Windows copied out, then one matrix product per image and group."""
    s = x.sizes
    windows = sliding_window_view(x.I, (s.KH, s.KW), axis=(-2, -1))
    windows = np.moveaxis(windows, (-2, -1), (-4, -3))  # ..., C, KH, KW, HO, WO
    height, width = windows.shape[-2:]
    lead = x.I.shape[1:-3]
    columns = x.empty(*lead, s.C, s.KH, s.KW, height, width)
    flat = columns.reshape(*lead, s.C * s.KH * s.KW, height * width)
    filters = x.W1.reshape(*lead, s.F, -1)
    out = x.empty(s.N, *lead, s.F, height, width)
    products = out.reshape(s.N, *lead, s.F, height * width)
    bias = x.B[..., None]
    while True:
        for n in range(s.N):
            np.copyto(columns, windows[n])
            np.matmul(filters, flat, out=products[n])
            np.add(products[n], bias, out=products[n])
        yield out


@form("masked_convolution", name="matmul")
def masked(x: Values) -> Iterator[Any]:
    s = x.sizes
    assert s.K == 1
    out = x.empty(s.B, s.F, s.H, s.W)
    flat = out.reshape(s.B, s.F, -1)
    images = x.I.reshape(s.B, s.C, -1)
    rectified = x.empty(*images.shape)
    weights = x.Weights.reshape(s.F, s.C)
    while True:
        np.maximum(images, 0, out=rectified)
        np.matmul(weights * (x.Mask == 1), rectified, out=flat)
        yield out


@form("group_normalization_single")
def group_norm(x: Values) -> Iterator[Any]:
    s = x.sizes
    count = s.D * s.H * s.W
    images, out = x.I.reshape(s.N, s.G, s.D, -1), x.empty(s.N, s.G, s.D, s.H * s.W)
    while True:
        for n in range(s.N):
            for g in range(s.G):
                i, o = images[n, g], out[n, g]
                np.subtract(i, i.mean(), out=o)
                scale = 1 / np.sqrt(np.vdot(o, o) / F32(count) + F32(1e-5))
                np.multiply(o, (x.gamma[g] * scale)[:, None], out=o)
                np.add(o, x.beta[g][:, None], out=o)
        yield out.reshape(x.I.shape)


@form("layernorm")
def layernorm(x: Values) -> Callable[[], Any]:
    def normalise(cut: slice, o: Array) -> None:
        i = x.I[cut]
        np.subtract(i, i.mean(1, keepdims=True), out=o)
        variance = np.vecdot(o, o)[:, None] / F32(x.sizes.D)
        np.multiply(o, 1 / np.sqrt(variance + x.eps), out=o)
        np.multiply(o, x.gamma, out=o)
        np.add(o, x.beta, out=o)

    return by_blocks(x.empty(x.sizes.N, x.sizes.D), normalise)


@form("moments")
def moments_by_rows(x: Values) -> Iterator[Any]:
    mean, var = x.empty(x.sizes.N), x.empty(x.sizes.N)
    while True:
        for n, row in enumerate(x.I):
            mean[n] = row.sum()
            var[n] = np.dot(row, row)
        np.divide(mean, x.sizes.K, out=mean)
        np.divide(var, x.sizes.K, out=var)
        np.subtract(var, mean * mean, out=var)
        yield mean, var


@form("softmax_twice")
def softmax(x: Values) -> Callable[[], Any]:
    return by_blocks(x.empty(*x.I.shape), lambda cut, o: weights(x.I[cut], o))


def weights(scores: Array, out: Array) -> None:
    """Softmax of the last axis."""
    np.subtract(scores, scores.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(-1, keepdims=True), out=out)


@form("attention_scores")
def attention(x: Values) -> Iterator[Any]:
    s = x.sizes
    out = x.empty(s.B, s.S, s.S)
    scale = F32(s.D) ** F32(-0.5)
    while True:
        for b in range(s.B):
            np.matmul(x.Q[b], x.K[b].T, out=out[b])
            np.multiply(out[b], scale, out=out[b])
            weights(out[b], out[b])
        yield out


@form("bias_relu_scale")
def bias_relu_scale(x: Values) -> Callable[[], Any]:
    def scale(cut: slice, o: Array) -> None:
        np.add(x.I[cut], x.bias, out=o)
        np.maximum(o, 0, out=o)
        np.multiply(o, x.scale, out=o)

    return by_blocks(x.empty(*x.I.shape), scale)


@form("stencil")
def stencil(x: Values) -> Callable[[], Any]:
    i = x.I

    def cross(cut: slice, o: Array) -> None:
        top = i[cut.start : cut.stop]
        mid, low = i[cut.start + 1 : cut.stop + 1], i[cut.start + 2 : cut.stop + 2]
        np.add(mid[:, 1:-1], top[:, 1:-1], out=o)
        np.add(o, low[:, 1:-1], out=o)
        np.add(o, mid[:, :-2], out=o)
        np.add(o, mid[:, 2:], out=o)
        np.multiply(o, F32(0.2), out=o)

    return by_blocks(x.empty(i.shape[0] - 2, i.shape[1] - 2), cross)


@form("wavenet")
def wavenet(x: Values) -> Iterator[Any]:
    s = x.sizes
    t, d = s.RECEPTIVE_FIELD, s.DILATION
    both, wide = x.empty(2 * s.DILATION_C, t), x.empty(2 * s.RESIDUAL_C, t)
    res, skip = x.empty(s.B, s.RESIDUAL_C, t), x.empty(s.B, s.SKIP_C, t)
    taps = np.concatenate([x.FilterWeight, x.GateWeight])
    taps = np.concatenate([taps[:, :, 1], taps[:, :, 0]], axis=1)
    bias = np.concatenate([x.FilterBias, x.GateBias])[:, None]
    filters, gate = both[: s.DILATION_C], both[s.DILATION_C :]
    while True:
        for b in range(s.B):
            wide[: s.RESIDUAL_C] = x.Data[b]
            wide[s.RESIDUAL_C :, :d] = 0
            wide[s.RESIDUAL_C :, d:] = x.Data[b][:, :-d]
            np.matmul(taps, wide, out=both)
            np.add(both, bias, out=both)
            np.tanh(filters, out=filters)
            np.exp(np.negative(gate, out=gate), out=gate)
            np.divide(filters, np.add(gate, 1, out=gate), out=filters)
            np.matmul(x.ResWeight, filters, out=res[b])
            np.add(np.add(res[b], x.Data[b], out=res[b]), x.ResBias[:, None], out=res[b])
            np.matmul(x.SkipWeight, filters, out=skip[b])
            np.add(skip[b], x.SkipBias[:, None], out=skip[b])
        yield res, skip


@form("one_lut", name="take, sum")
def lut(x: Values) -> Iterator[Any]:
    s = x.sizes
    out, found = x.empty(s.B, s.D), x.empty(s.B, s.L1, s.D)
    while True:
        np.take(x.LUT1, x.I1, axis=0, out=found, mode="clip")
        yield np.asarray(np.sum(found, axis=1, out=out))


@form("argmin")
def argmin(x: Values) -> Iterator[Any]:
    while True:
        best = x.Distance.argmin()
        yield best, x.Distance[best]
