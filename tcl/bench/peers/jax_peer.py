"""JAX, jitted. It always returns new arrays: there is no form that writes into existing ones."""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tcl.bench.arrays import Array
from tcl.bench.task import Form, Registry, Task, Values, as_tuple, values

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

forms = Registry()
form = forms.form


class _Jax:
    def __init__(self, threads: int) -> None:
        self._threads = threads

    def versions(self) -> dict[str, str]:
        return {"jax": jax.__version__}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], Form]]]:
        arrays = {k: jnp.asarray(v) for k, v in inputs.items()}
        for name, builder in forms.builders(task.entry):
            function = builder(values(inputs, task.sizes))

            def make(function: Any = function) -> Form:
                compiled = jax.jit(function)

                def run() -> Any:
                    return jax.block_until_ready(compiled(**arrays))

                return Form(run, lambda: [np.asarray(r) for r in as_tuple(run())], self._threads)

            yield name, make

    def facts(self, task: Task) -> dict[str, Any]:
        return {}


def make(threads: int) -> _Jax:
    """The contender. It takes as many threads as the process has cores."""
    return _Jax(threads)


@form("matmul")
def matmul(x: Values) -> Callable[..., Any]:
    return lambda A, B: A @ B


@form("tmm", name="matmul")
def tmm(x: Values) -> Callable[..., Any]:
    return lambda A, B: A @ B.T


@form("c3", name="matmul")
def c3(x: Values) -> Callable[..., Any]:
    return lambda I, W: I @ W.T


@form("batch_matmul", name="matmul")
def batch_matmul(x: Values) -> Callable[..., Any]:
    return lambda X, Y: X @ Y


@form("kronecker3_1", name="matmul")
def kronecker(x: Values) -> Callable[..., Any]:
    return lambda W2, X: X @ W2.T


@form("mlp1", name="matmul, maximum")
def mlp1(x: Values) -> Callable[..., Any]:
    return lambda I, W1, B1: jnp.maximum(I @ W1 + B1, 0)


@form("mlp3", name="matmul, maximum")
def mlp3(x: Values) -> Callable[..., Any]:
    def function(I: Any, W2: Any, B2: Any, W3: Any, B3: Any, W4: Any, B4: Any) -> Any:
        o2 = jnp.maximum(I @ W2.T + B2, 0)
        return jnp.maximum(jnp.maximum(o2 @ W3.T + B3, 0) @ W4.T + B4, 0)

    return function


@form("convolution", "group_convolution", name="conv")
def convolution(x: Values) -> Callable[..., Any]:
    s = x.sizes
    groups = getattr(s, "G", 1)

    def function(I: Any, W1: Any, B: Any) -> Any:
        found = jax.lax.conv_general_dilated(
            I.reshape(s.N, -1, s.H, s.W),
            W1.reshape(-1, s.C, s.KH, s.KW),
            (1, 1),
            "VALID",
            feature_group_count=groups,
        )
        found = found.reshape(*I.shape[:-3], s.F, *found.shape[-2:])
        return found + B[..., None, None]

    return function


@form("masked_convolution", name="matmul")
def masked(x: Values) -> Callable[..., Any]:
    s = x.sizes

    def function(I: Any, Weights: Any, Mask: Any) -> Any:
        weights = Weights.reshape(s.F, s.C) * (Mask == 1)
        return (weights @ jnp.maximum(I, 0).reshape(s.B, s.C, -1)).reshape(s.B, s.F, s.H, s.W)

    return function


def _normalise(values: Any, axes: tuple[int, ...], eps: Any) -> Any:
    centered = values - values.mean(axes, keepdims=True)
    return centered * jax.lax.rsqrt((centered * centered).mean(axes, keepdims=True) + eps)


@form("group_normalization_single", name="group norm")
def group_norm(x: Values) -> Callable[..., Any]:
    def function(I: Any, gamma: Any, beta: Any) -> Any:
        return _normalise(I, (2, 3, 4), 1e-5) * gamma[..., None, None] + beta[..., None, None]

    return function


@form("layernorm")
def layernorm(x: Values) -> Callable[..., Any]:
    return lambda I, gamma, beta, eps: _normalise(I, (1,), eps) * gamma + beta


@form("moments", name="sums")
def moments(x: Values) -> Callable[..., Any]:
    def function(I: Any) -> Any:
        mean = I.sum(1) / I.shape[1]
        return mean, (I * I).sum(1) / I.shape[1] - mean * mean

    return function


@form("softmax_twice", name="softmax")
def softmax(x: Values) -> Callable[..., Any]:
    return lambda I: jax.nn.softmax(I, axis=1)


@form("attention_scores", name="matmul, softmax")
def attention(x: Values) -> Callable[..., Any]:
    scale = x.sizes.D**-0.5
    return lambda Q, K: jax.nn.softmax(Q @ K.swapaxes(1, 2) * scale, axis=2)


@form("bias_relu_scale")
def bias_relu_scale(x: Values) -> Callable[..., Any]:
    return lambda I, bias, scale: jnp.maximum(I + bias, 0) * scale


@form("stencil", name="slices")
def stencil(x: Values) -> Callable[..., Any]:
    def function(I: Any) -> Any:
        mid = I[1:-1, 1:-1] + I[:-2, 1:-1] + I[2:, 1:-1]
        return 0.2 * (mid + I[1:-1, :-2] + I[1:-1, 2:])

    return function


@form("wavenet", name="matmul")
def wavenet(x: Values) -> Callable[..., Any]:
    d, c, t = x.sizes.DILATION, x.sizes.DILATION_C, x.sizes.RECEPTIVE_FIELD

    def function(
        Data: Any, FilterWeight: Any, FilterBias: Any, GateWeight: Any, GateBias: Any,
        ResWeight: Any, ResBias: Any, SkipWeight: Any, SkipBias: Any, Dilation: Any,
    ) -> Any:  # fmt: skip
        taps = jnp.concatenate([FilterWeight, GateWeight])
        taps = jnp.concatenate([taps[:, :, 1], taps[:, :, 0]], axis=1)
        bias = jnp.concatenate([FilterBias, GateBias])
        past = jnp.pad(Data, ((0, 0), (0, 0), (d, 0)))[:, :, :t]
        both = taps @ jnp.concatenate([Data, past], axis=1) + bias[:, None]
        units = jnp.tanh(both[:, :c]) * jax.nn.sigmoid(both[:, c:])
        res = Data + (ResWeight @ units + ResBias[:, None])
        return res, SkipWeight @ units + SkipBias[:, None]

    return function


@form("row_sum", name="sum")
def row_sum(x: Values) -> Callable[..., Any]:
    return lambda I: I.sum(1)


@form("column_sum", name="sum")
def column_sum(x: Values) -> Callable[..., Any]:
    return lambda I: I.sum(0)


@form("column_sum", name="gemv")
def column_sum_gemv(x: Values) -> Callable[..., Any]:
    return lambda I: jnp.ones(I.shape[0], I.dtype) @ I


@form("one_lut", name="take, sum")
def lut(x: Values) -> Callable[..., Any]:
    return lambda LUT1, I1: jnp.take(LUT1, I1, axis=0, mode="clip").sum(1)


@form("argmin")
def argmin(x: Values) -> Callable[..., Any]:
    def function(Distance: Any) -> Any:
        best = jnp.argmin(Distance)
        return best, Distance[best]

    return function
