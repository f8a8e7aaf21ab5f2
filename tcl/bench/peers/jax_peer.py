"""JAX, jitted. It always returns new arrays: there is no form that writes into existing ones."""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from tcl.bench.peers.library import (
    NARROW_FLOATS,
    PeerLibrary,
    add_products_of_integers,
    add_shared,
    exact_blocks,
    largest_term,
)
from tcl.bench.task import Array, Builder, PeerForm, Registry, Task, Values

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

forms = Registry()
form, formula = forms.form, forms.formula


class _Jax(PeerLibrary):
    def versions(self) -> dict[str, str]:
        return {"jax": jax.__version__}

    def own(self, array: Array) -> Any:
        return jnp.asarray(array)

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        # Without this, JAX makes float32 of float64.
        wide = any(array.dtype == "float64" for array in inputs.values())
        jax.config.update("jax_enable_x64", wide)
        return super().forms(task, inputs)

    def made(self, builder: Builder, arrays: dict[str, Any], given: Values) -> PeerForm:
        compiled = jax.jit(builder(given))
        return self.form(lambda: jax.block_until_ready(compiled(**arrays)))


make = partial(_Jax, forms)
"""It takes as many threads as the process has cores."""


add_shared(forms, "matmul")
add_products_of_integers(forms, jnp.float32, jnp.int32, lambda array, type_: array.astype(type_))
formula("matmul_int8", "matmul_uint8", name="dot")(
    lambda A, B: jnp.matmul(A, B, preferred_element_type=jnp.int32)
)
formula("batch_matmul_int8", name="dot")(
    lambda X, Y: jnp.matmul(X, Y, preferred_element_type=jnp.int32)
)
formula("matmul", name="in float32", types=NARROW_FLOATS)(
    lambda A, B: jnp.matmul(A, B, preferred_element_type=jnp.float32).astype(A.dtype)
)
formula("batch_matmul", name="in float32", types=NARROW_FLOATS)(
    lambda X, Y: jnp.matmul(X, Y, preferred_element_type=jnp.float32).astype(X.dtype)
)
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


@formula("convolution_int8", name="conv")
def convolution_int8(I: Any, W1: Any) -> Any:
    return jax.lax.conv_general_dilated(I, W1, (1, 1), "VALID", preferred_element_type=jnp.int32)


@formula("convolution_int8", name="conv in float32")
def convolution_counted(I: Any, W1: Any) -> Any:
    cuts = exact_blocks(I.shape[1], W1.shape[2] * W1.shape[3] * largest_term("int8"))
    parts = [
        jax.lax.conv_general_dilated(
            I[:, c].astype(jnp.float32), W1[:, c].astype(jnp.float32), (1, 1), "VALID"
        ).astype(jnp.int32)
        for c in cuts
    ]
    return sum(parts[1:], parts[0])


@formula("convolution", name="conv in float32", types=NARROW_FLOATS)
def convolution_rounded(I: Any, W1: Any, B: Any) -> Any:
    wide = [a.astype(jnp.float32) for a in (I, W1)]
    found = jax.lax.conv_general_dilated(*wide, (1, 1), "VALID")
    return (found + B.astype(jnp.float32)[:, None, None]).astype(I.dtype)


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
