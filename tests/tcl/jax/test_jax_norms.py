"""Gradients that take what the forward def made on the way, and make something on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from norm_defs import LAYER_NORM, RMS_NORM, SOFTMAX

import tcl
import tcl.jax


def rms_norm(X: Any, G: Any) -> Any:
    return X * jax.lax.rsqrt((X**2).mean(1, keepdims=True) + 1e-5) * G


def layer_norm(X: Any, G: Any, B: Any) -> Any:
    centred = X - X.mean(1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(1, keepdims=True) + 1e-5) * G + B


CASES = [
    (SOFTMAX, "softmax", 1, lambda X: jax.nn.softmax(X, 1)),
    (RMS_NORM, "rms_norm", 2, rms_norm),
    (LAYER_NORM, "layer_norm", 3, layer_norm),
]


@pytest.mark.parametrize(
    ("source", "name", "count", "theirs"), CASES, ids=[case[1] for case in CASES]
)
def test_gradients_of_a_norm(
    source: str, name: str, count: int, theirs: Callable[..., Any]
) -> None:
    run = tcl.jax.call(source, name, backward=f"{name}_grad", wanted="O")
    random = np.random.default_rng(0)
    given = [jnp.asarray(random.random((3, 5)[k > 0 :], "f")) for k in range(count)]
    weights = random.random((3, 5), "f")

    def gradients(f: Any) -> Any:
        return jax.grad(lambda *each: (f(*each) * weights).sum(), tuple(range(count)))

    np.testing.assert_allclose(run(*given), theirs(*given), rtol=1e-5, atol=1e-6)
    expected = jax.jit(gradients(theirs))(*given)
    for transform in (gradients(run), jax.jit(gradients(run)), gradients(jax.checkpoint(run))):
        for mine, other in zip(transform(*given), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    batch = [jnp.stack([each, 2 * each]) for each in given]
    others = jax.jit(jax.vmap(gradients(theirs)))(*batch)
    pairs = zip(jax.vmap(gradients(run))(*batch), others, strict=True)
    for mine, other in pairs:
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "name", "count", "theirs"), CASES, ids=[case[1] for case in CASES]
)
def test_gradients_that_are_derived(
    source: str, name: str, count: int, theirs: Callable[..., Any]
) -> None:
    """Of the norm, and of its gradient."""
    run = tcl.jax.call(source, name, wanted="O")
    random = np.random.default_rng(0)
    given = [jnp.asarray(random.random((3, 5)[k > 0 :], "f")) for k in range(count)]
    weights = random.random((3, 5), "f")

    def loss(f: Any) -> Any:
        return lambda *each: (f(*each) * weights).sum()

    def twice(f: Any) -> Any:
        first = jax.grad(loss(f), tuple(range(count)))
        return jax.grad(lambda *each: sum((g**2).sum() for g in first(*each)), 0)

    def once(f: Any) -> Any:
        return jax.grad(loss(f))

    for transform in (once, twice):
        of_ours, of_theirs = transform(run), transform(theirs)
        expected = jax.jit(of_theirs)(*given)
        for each in (of_ours, jax.jit(of_ours), jax.jit(jax.checkpoint(of_ours))):
            np.testing.assert_allclose(each(*given), expected, rtol=2e-3, atol=2e-4)
        batch = [jnp.stack([each, 2 * each]) for each in given]
        mine, other = (jax.jit(jax.vmap(each))(*batch) for each in (of_ours, of_theirs))
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=2e-4)


def test_nothing_is_made_on_the_way_that_no_gradient_takes() -> None:
    run = tcl.jax.call(RMS_NORM, "rms_norm", backward="rms_norm_grad", wanted="O")
    X, G = jnp.ones((2, 3)), jnp.ones(3)

    def made(f: Any) -> list[int]:
        calls = str(jax.make_jaxpr(f)(X, G)).split("= tcl[")[:-1]
        return [call.split("\n")[-1].count(":f32[") for call in calls]

    assert made(run) == [1]
    assert made(jax.grad(lambda X, G: run(X, G).sum(), (0, 1))) == [2, 2]
