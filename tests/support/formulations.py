"""What every def of ``examples/`` computes, said again in NumPy.

Each formulation takes the inputs by name and the sizes by symbol and returns the outputs by name.
They know nothing of the language: sliding windows, einsum, padding and fancy indexing on float64
copies of the inputs, so that what is compared with them is also a measure of rounding. Where a
def's result is exact, so is the formulation's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Arrays: TypeAlias = dict[str, Array]
Sizes: TypeAlias = dict[str, int]
Formulation: TypeAlias = Callable[[Arrays, Sizes], Arrays]

FORMULATIONS: dict[tuple[str, str], Formulation] = {}
"""(stem of the file, name of the def) to its formulation."""


def formulates(file: str, *defs: str) -> Callable[[Formulation], Formulation]:
    """Register a function as the formulation of ``defs`` in ``examples/<file>.tc``."""

    def register(formulation: Formulation) -> Formulation:
        for name in defs:
            if (file, name) in FORMULATIONS:
                raise ValueError(f"two formulations of {file}.{name}")
            FORMULATIONS[file, name] = formulation
        return formulation

    return register


def wide(inputs: Arrays) -> Arrays:
    """The inputs with the floats in float64 and the rest unchanged."""
    return {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in inputs.items()}


def einsum(file: str, name: str, **outputs: str) -> None:
    """Register a def each of whose outputs is one einsum, ``O="mk,kn->mn A B"``."""

    def formulation(inputs: Arrays, sizes: Sizes) -> Arrays:
        x = wide(inputs)
        found: Arrays = {}
        for output, text in outputs.items():
            subscripts, *operands = text.split()
            found[output] = np.einsum(subscripts, *(x[o] for o in operands))
        return found

    formulates(file, name)(formulation)


def single(file: str, name: str, output: str, function: Callable[[Arrays], Any]) -> None:
    """Register a def of one output by a function of the widened inputs."""

    def formulation(inputs: Arrays, sizes: Sizes) -> Arrays:
        return {output: np.asarray(function(wide(inputs)))}

    formulates(file, name)(formulation)


einsum("tmm", "tmm", C="mk,nk->mn A B")
einsum("tmm", "mtm", C="km,kn->mn A B")
einsum("matmul", "matmul", C="mk,kn->mn A B")
einsum("matmul", "matmul_half", C="mk,kn->mn A B")
einsum("matmul", "matmul_double", C="mk,kn->mn A B")
einsum("matmul", "matmul_grad", AGrad="mn,kn->mk CGrad B", BGrad="mk,mn->kn A CGrad")
einsum("batch_matmul", "batch_matmul", Z="bnm,bmk->bnk X Y")
einsum("c3", "c3", C3="bx,yx->by I W")
einsum("sums", "row_sum", R="mn->m I")
einsum("sums", "column_sum", C="mn->n I")
einsum("sums", "row_and_column_sums", R="mn->m I", C="mn->n I")
einsum("sums", "total_sum", S="mn-> I")
einsum("moments", "row_sums", S="nk->n I")
einsum("moments", "sum_of_squares", S="nk,nk->n I I")
einsum("moments", "sum_and_squares", S="nk->n I", Q="nk,nk->n I I")
einsum("kronecker", "kronecker3_1", XW2="mabc,dc->mabd X W2")
einsum("kronecker", "kronecker3_2", XW2W1="mabc,db->madc XW2 W1")
einsum("kronecker", "kronecker3_3", Y="mabc,da->mdbc XW2W1 W0")
einsum("layers", "tensordot", O="nabhw,nbchw->nachw I0 I1")
einsum("layers", "transpose", O="nchw->cnwh I")
single("matmul", "matmul_int8", "C", lambda x: x["A"].astype(np.int64) @ x["B"].astype(np.int64))
single("matmul", "matmul_uint8", "C", lambda x: x["A"].astype(np.int64) @ x["B"].astype(np.int64))
single(
    "batch_matmul", "batch_matmul_int8", "Z",
    lambda x: x["X"].astype(np.int64) @ x["Y"].astype(np.int64),
)  # fmt: skip
single("moments", "row_mean", "M", lambda x: x["I"].mean(1))
single("moments", "variance", "V", lambda x: np.square(x["I"] - x["M"][:, None]).mean(1))


# Convolutions: windows of the (padded) images, multiplied out.


def windows(images: Array, height: int, width: int, step: int = 1) -> Array:
    """(..., H, W) to (..., HO, WO, height, width): the windows ``step`` apart."""
    view = sliding_window_view(images, (height, width), axis=(-2, -1))
    return view[..., ::step, ::step, :, :]


def convolve(images: Array, filters: Array, step: int = 1) -> Array:
    """(N, C, H, W) with (F, C, KH, KW) to (N, F, HO, WO)."""
    found = windows(images, filters.shape[-2], filters.shape[-1], step)
    return np.asarray(np.einsum("nchwij,fcij->nfhw", found, filters))


def padded(images: Array, height: int, width: int) -> Array:
    """The images with ``height`` rows and ``width`` columns of zeros on each side."""
    return np.pad(images, ((0, 0), (0, 0), (height, height), (width, width)))


def biased(x: Arrays, images: Array, step: int = 1) -> Array:
    """``images`` convolved with the filters W1, plus the bias B of each filter."""
    return convolve(images, x["W1"], step) + x["B"][:, None, None]


def grouped(x: Arrays, step: int) -> Array:
    """The convolution of each group by itself."""
    groups = range(x["I"].shape[1])
    out = np.stack([convolve(x["I"][:, g], x["W1"][g], step) for g in groups], axis=1)
    return np.asarray(out + x["B"][:, :, None, None])


def masked(x: Arrays) -> Array:
    """The convolution of the rectified images with the filters set to zero where masked."""
    kept = x["Weights"] * (x["Mask"] == 1)[:, :, None, None]
    return convolve(np.maximum(x["I"], 0), kept)


single("convolution", "convolution", "O", lambda x: biased(x, x["I"]))
single(
    "convolution", "convolution_int8", "O",
    lambda x: convolve(x["I"].astype(np.int64), x["W1"].astype(np.int64)),
)  # fmt: skip
single("convolution", "convolution_padded", "O", lambda x: biased(x, padded(x["I"], 1, 1)))
single("convolution", "convolution_strided", "O", lambda x: biased(x, x["I"], 2))
single("group_convolution", "group_convolution", "O", lambda x: grouped(x, 1))
single("group_convolution", "group_convolution_strided", "O", lambda x: grouped(x, 2))
single("masked_convolution", "masked_convolution", "O", masked)


@formulates("convolution", "convolution_dilated")
def _convolution_dilated(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    f, c, kh, kw = x["W1"].shape
    spread = np.zeros((f, c, 3 * kh - 2, 3 * kw - 2))  # zeros between the taps
    spread[:, :, ::3, ::3] = x["W1"]
    return {"O": convolve(x["I"], spread) + x["B"][:, None, None]}


@formulates("convolution", "convolution_grad")
def _convolution_grad(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    spread = padded(x["OGrad"], sizes["KH"] - 1, sizes["KW"] - 1)
    turned = x["W1"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    seen = windows(x["I"], sizes["HO"], sizes["WO"])
    return {
        "IGrad": convolve(spread, turned),
        "W1Grad": np.einsum("ncklhw,nfhw->fckl", seen, x["OGrad"]),
        "BGrad": x["OGrad"].sum((0, 2, 3)),
    }


# Normalisation and moments.


def normalised(values: Array, axes: int | tuple[int, ...], eps: float) -> Array:
    """Mean 0 and variance 1 along ``axes``; ``eps`` is added to the variance."""
    mean = values.mean(axes, keepdims=True)
    return np.asarray((values - mean) / np.sqrt(values.var(axes, keepdims=True) + eps))


@formulates("group_normalization", "group_normalization_single")
def _group_normalization_single(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    gamma, beta = (x[k][:, :, None, None] for k in ("gamma", "beta"))
    axes = (2, 3, 4)
    return {
        "O": normalised(x["I"], axes, 1e-5) * gamma + beta,
        "mean": x["I"].mean(axes),
        "var": x["I"].var(axes),
    }


@formulates("group_normalization", "group_normalization")
def _group_normalization(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    gamma, beta = (x[k][:, :, None, None] for k in ("gamma", "beta"))
    mean, var = (x[k][:, :, None, None, None] for k in ("mean", "var"))
    return {"O": (x["I"] - mean) / np.sqrt(var + 1e-5) * gamma + beta}


@formulates("group_normalization", "group_moments")
@formulates("moments", "moments")
def _moments(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    return {"mean": x["I"].mean(1), "var": x["I"].var(1)}


@formulates("layernorm", "layernorm")
def _layernorm(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    out = normalised(x["I"], 1, float(x["eps"])) * x["gamma"] + x["beta"]
    return {"O": out, "mean": x["I"].mean(1), "var": x["I"].var(1)}


@formulates("layernorm", "layernorm_sequence")
def _layernorm_sequence(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    return {
        "O": normalised(x["I"], 2, 1e-5),
        "mean": x["I"].mean(2),
        "centered": x["I"] - x["I"].mean(2, keepdims=True),
        "var": x["I"].var(2) + 1e-5,
    }


@formulates("layers", "batchnorm")
def _batchnorm(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    axes, m = (0, 2, 3), x["momentum"]
    mean, var = x["I"].mean(axes), x["I"].var(axes)
    return {
        "O": normalised(x["I"], axes, float(x["eps"])),
        "rMeanOut": x["rMeanIn"] + m * (mean - x["rMeanIn"]),
        "rVarOut": x["rVarIn"] + m * (var - x["rVarIn"]),
        "mean": mean,
        "var": var,
    }


# Softmax and attention.


def exponentials(rows: Array) -> tuple[Array, Array, Array]:
    """Largest element along the last axis, exp(element - largest), and the sum of these."""
    most = rows.max(-1)
    found = np.exp(rows - most[..., None])
    return most, found, found.sum(-1)


@formulates("softmax", "softmax", "softmax_twice")
def _softmax(inputs: Arrays, sizes: Sizes) -> Arrays:
    most, found, total = exponentials(wide(inputs)["I"])
    return {"O": found / total[:, None], "maxVal": most, "expDistance": found, "expSum": total}


@formulates("softmax", "log_softmax")
def _log_softmax(inputs: Arrays, sizes: Sizes) -> Arrays:
    found = _softmax(inputs, sizes)
    return found | {"O": np.log(found["O"])}


def scores(x: Arrays, sizes: Sizes) -> Array:
    """Queries times keys, over the square root of the depth."""
    return np.asarray(x["Q"] @ x["K"].transpose(0, 2, 1) / np.sqrt(sizes["D"]))


def weights(score: Array, seen: Array) -> Arrays:
    """The outputs of the attention defs for scores of which ``seen`` are not hidden."""
    most, found, total = exponentials(seen)
    return {"P": found / total[..., None], "Score": score, "Most": most, "Total": total}


@formulates("attention_scores", "attention_scores")
def _attention_scores(inputs: Arrays, sizes: Sizes) -> Arrays:
    score = scores(wide(inputs), sizes)
    return weights(score, score)


@formulates("attention_scores", "causal_attention_scores")
def _causal_attention_scores(inputs: Arrays, sizes: Sizes) -> Arrays:
    score = scores(wide(inputs), sizes)
    future = np.triu(np.ones((sizes["S"], sizes["S"]), dtype=bool), 1)
    return weights(score, np.where(future, -np.inf, score))


@formulates("attention_scores", "attention")
def _attention(inputs: Arrays, sizes: Sizes) -> Arrays:
    found = _attention_scores(inputs, sizes)
    found["O"] = found.pop("P") @ wide(inputs)["V"]
    return found


# Perceptrons, the Kronecker chain, WaveNet.


def dense(rows: Array, weights: Array, bias: Array) -> Array:
    """(B, M) with (N, M) and (N,) to (B, N), rectified."""
    return np.asarray(np.maximum(rows @ weights.T + bias, 0))


single("mlp1", "mlp1", "O1", lambda x: dense(x["I"], x["W1"].T, x["B1"]))
single("mlp3", "layer", "Out", lambda x: dense(x["I"], x["W"], x["Bias"]))
single("layers", "fcrelu", "O1", lambda x: dense(x["I"], x["W1"], x["B1"]))
single("layers", "fully_connected", "O1", lambda x: x["I"] @ x["W1"].T + x["B1"])


@formulates("mlp3", "mlp3", "mlp3_calls")
def _mlp3(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    second = dense(x["I"], x["W2"], x["B2"])
    third = dense(second, x["W3"], x["B3"])
    return {"O2": second, "O3": third, "O4": dense(third, x["W4"], x["B4"])}


@formulates("kronecker", "kronecker3")
def _kronecker3(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    m = sizes["M"]
    whole = np.kron(np.kron(x["W0"], x["W1"]), x["W2"])
    out = x["X"].reshape(m, -1) @ whole.T
    first = x["X"] @ x["W2"].T
    return {
        "Y": out.reshape(m, sizes["D0"], sizes["D1"], sizes["D2"]),
        "XW2W1": np.swapaxes(np.swapaxes(first, 2, 3) @ x["W1"].T, 2, 3),
        "XW2": first,
    }


def logistic(values: Array) -> Array:
    """1 / (1 + exp(-values)), by the hyperbolic tangent."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


def causal(data: Array, weights: Array, bias: Array, dilation: int) -> Array:
    """(B, R, T) with (D, R, 2) to (B, D, T): the tap ``dilation`` steps ago, and the present."""
    past = np.zeros_like(data)
    past[:, :, dilation:] = data[:, :, : data.shape[2] - dilation]
    out = np.einsum("brt,dr->bdt", past, weights[:, :, 0])
    out += np.einsum("brt,dr->bdt", data, weights[:, :, 1])
    return np.asarray(out + bias[:, None])


@formulates("wavenet", "wavenet")
def _wavenet(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    steps = sizes["DILATION"]
    filtered = causal(x["Data"], x["FilterWeight"], x["FilterBias"], steps)
    gate = causal(x["Data"], x["GateWeight"], x["GateBias"], steps)
    product = np.tanh(filtered) * logistic(gate)
    return {
        "FilterOut": filtered,
        "GateOut": gate,
        "NonLin": product,
        "Res": x["Data"] + x["ResWeight"] @ product + x["ResBias"][:, None],
        "Skip": x["SkipWeight"] @ product + x["SkipBias"][:, None],
    }


# Tables and codes.


@formulates("lut", "one_lut", "two_lut")
def _lut(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    return {f"O{t}": x[f"LUT{t}"][x[f"I{t}"]].sum(1) for t in "12" if f"LUT{t}" in x}


@formulates("nearest_code", "nearest_code", "nearest_codes", "table_sums")
def _nearest_code(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    distance = x["Table"][..., np.arange(sizes["M"]), x["Codes"]].sum(-1)
    return {"Distance": distance, "Least": distance.min(-1), "Best": distance.argmin(-1)}


@formulates("nearest_code", "least", "argmin")
def _argmin(x: Arrays, sizes: Sizes) -> Arrays:
    return {"Least": np.asarray(x["Distance"].min()), "Best": np.asarray(x["Distance"].argmin())}


# Stencils, pooling, pointwise and tensor operations.


def five_point(grid: Array) -> Array:
    """The mean of each inner point and its four neighbours."""
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5
    return np.asarray(np.einsum("ijab,ab->ij", windows(grid, 3, 3), cross))


@formulates("stencil", "stencil_same")
def _stencil_same(inputs: Arrays, sizes: Sizes) -> Arrays:
    out = wide(inputs)["I"].copy()
    out[1:-1, 1:-1] = five_point(out)
    return {"O": out}


@formulates("layers", "small_mobilenet")
def _small_mobilenet(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    seen = windows(x["I"], sizes["KH1"], sizes["KW1"])
    first = np.einsum("chwij,cij->chw", seen, x["W1"]) + x["B1"][:, None, None]
    first = np.maximum(first, 0)
    second = np.tensordot(x["W2"], first, 1) + x["B2"][:, None, None]
    return {"O1": first, "O2": np.maximum(second, 0)}


@formulates("layers", "cosine_similarity")
def _cosine_similarity(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = wide(inputs)
    lengths = np.linalg.norm(x["I1"], axis=1) * np.linalg.norm(x["I2"], axis=1)
    return {
        "O": np.einsum("mn,mn->m", x["I1"], x["I2"]) / lengths,
        "sum1": np.square(x["I1"]).sum(1),
        "sum2": np.square(x["I2"]).sum(1),
    }


@formulates("layers", "row_facts")
def _row_facts(x: Arrays, sizes: Sizes) -> Arrays:
    rows = x["I"]
    return {
        "low": rows.min(1),
        "high": rows.max(1),
        "negative": (rows < 0).any(1),
        "count": np.count_nonzero(rows >= 0, axis=1),
    }


def three_by_two(images: Array) -> Array:
    """Windows of 3x2, 2x3 apart."""
    return windows(images, 3, 2)[..., ::2, ::3, :, :]


def cut(values: Array) -> Array:
    """The def's cast. In float32 as there: the last bit of the sum can decide the integer."""
    return np.asarray(np.trunc(values.astype(np.float32) + np.float32(0.5)), dtype=np.int32)


ERF = np.vectorize(math.erf, otypes=[np.float64])

single("stencil", "stencil", "O", lambda x: five_point(x["I"]))
single(
    "bias_relu_scale",
    "bias_relu_scale",
    "O",
    lambda x: np.maximum(x["I"] + x["bias"], 0) * x["scale"],
)
single("layers", "avgpool", "O", lambda x: windows(x["I"], 3, 3, 2).mean((-2, -1)))
single("layers", "maxpool", "O", lambda x: three_by_two(x["I"]).max((-2, -1)))
single("layers", "global_avgpool", "O", lambda x: x["I"].mean((2, 3)))
single("layers", "indexing", "O", lambda x: x["I"][x["index"]])
single("layers", "lut_columns", "O", lambda x: np.take_along_axis(x["LUT"], x["I"], 1).sum(1))
single("layers", "cast", "O1", lambda x: cut(x["A"]))
single("layers", "relu", "O1", lambda x: np.maximum(x["I"], 0))
single("layers", "leaky_relu", "O1", lambda x: np.where(x["I"] > 0, 1, x["slope"]) * x["I"])
single("layers", "gelu", "O1", lambda x: x["I"] * (0.5 + 0.5 * ERF(x["I"] / np.sqrt(2))))
single("layers", "sigmoid", "O", lambda x: logistic(x["I"]))
single("layers", "hyperbolic_tangent", "O", lambda x: np.tanh(x["I"]))
single("layers", "cosine", "O", lambda x: np.cos(x["I"]))
single("layers", "absolute", "O1", lambda x: np.abs(x["A"]))
single("layers", "add", "O", lambda x: x["A"] + x["B"])
single("layers", "scale", "O", lambda x: x["I"] * x["factor"])
single("layers", "copy", "O", lambda x: x["I"])
single("layers", "constant_fill", "B", lambda x: np.full(x["A"].shape, x["c"]))
single("layers", "stack", "O1", lambda x: np.stack((x["A"].T, x["B"].T), axis=1))
single("layers", "concat", "O", lambda x: np.concatenate((x["A"], x["B"]), axis=1))
