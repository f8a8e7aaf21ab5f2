"""JAX, jitted. It always returns new arrays: there is no form that writes into existing ones."""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tcl.bench.arrays import Array
from tcl.bench.peers.library import Library, add_shared
from tcl.bench.task import Builder, Form, Registry, Values, values

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

forms = Registry()
form, formula = forms.form, forms.formula


class _Jax(Library):
    def versions(self) -> dict[str, str]:
        return {"jax": jax.__version__}

    def own(self, array: Array) -> Any:
        return jnp.asarray(array)

    def made(self, builder: Builder, arrays: dict[str, Any], sizes: Mapping[str, int]) -> Form:
        compiled = jax.jit(builder(values(arrays, sizes)))
        return self.form(lambda: jax.block_until_ready(compiled(**arrays)))


def make(threads: int) -> _Jax:
    """The contender. It takes as many threads as the process has cores."""
    return _Jax(forms, threads)


add_shared(forms, "matmul")
formula("batch_matmul", name="matmul")(lambda X, Y: X @ Y)
formula("mlp1", name="matmul, maximum")(lambda I, W1, B1: jnp.maximum(I @ W1 + B1, 0))
formula("softmax_twice", name="softmax")(lambda I: jax.nn.softmax(I, axis=1))
formula("bias_relu_scale", name="bias_relu_scale")(
    lambda I, bias, scale: jnp.maximum(I + bias, 0) * scale
)
formula("column_sum", name="gemv")(lambda I: jnp.ones(I.shape[0], I.dtype) @ I)
formula("one_lut", name="take, sum")(
    lambda LUT1, I1: jnp.take(LUT1, I1, axis=0, mode="clip").sum(1)
)


@formula("mlp3", name="matmul, maximum")
def mlp3(I: Any, W2: Any, B2: Any, W3: Any, B3: Any, W4: Any, B4: Any) -> Any:
    o2 = jnp.maximum(I @ W2.T + B2, 0)
    return jnp.maximum(jnp.maximum(o2 @ W3.T + B3, 0) @ W4.T + B4, 0)


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


@formula("group_normalization_single", name="group norm")
def group_norm(I: Any, gamma: Any, beta: Any) -> Any:
    return _normalise(I, (2, 3, 4), 1e-5) * gamma[..., None, None] + beta[..., None, None]


@formula("layernorm", name="layernorm")
def layernorm(I: Any, gamma: Any, beta: Any, eps: Any) -> Any:
    return _normalise(I, (1,), eps) * gamma + beta


@form("attention_scores", name="matmul, softmax")
def attention(x: Values) -> Callable[..., Any]:
    scale = x.sizes.D**-0.5
    return lambda Q, K: jax.nn.softmax(Q @ K.swapaxes(1, 2) * scale, axis=2)


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


@formula("argmin", name="argmin")
def argmin(Distance: Any) -> Any:
    best = jnp.argmin(Distance)
    return best, Distance[best]
