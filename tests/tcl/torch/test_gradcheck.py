"""torch's own checks of derived gradients and of the gradients of these, in float64; and torch's
layers beside them in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from comparing_gradients import (
    STEPWISE,
    differentiable_examples,
    example_inputs,
    in_double,
    stepwise,
    stepwise_inputs,
)
from places import EXAMPLES
from sampling import sampled
from torch.nn import functional

import tcl

SHAPES = ("constant_fill", "wavenet")
"""Those with an input that says a shape alone."""
EXAMPLE_DEFS = [each for each in differentiable_examples() if each[1] not in SHAPES]
SMOOTH = {
    "acosh": "acosh(X(i) * X(i) + 1.5) * W(i)",
    "atan2": "atan2(X(i), W(i))",
    "cumulated": "j <= i ? X(j) * W(j) : 0",
    "erf": "erf(X(i)) * erfc(W(i))",
    "every second": "X(2 * i) * W(i)",
    "from behind": "X(N - 1 - i) * W(i)",
    "gathered": "X(At(i)) * W(i)",
    "hypot": "hypot(X(i), W(i))",
    "lets": "a * a * W(i) where a = sin(X(i))",
    "log1p": "log1p(X(i) * X(i)) / (2 + W(i))",
    "pow": "pow(X(i) * X(i) + 1, W(i))",
    "select": "X(i) > W(0) ? exp(X(i)) : X(i) * W(i)",
    "tanh": "tanh(X(i) * W(i)) * rsqrt(X(i) * X(i) + 1)",
    "trigonometric": "cos(X(i)) * tan(W(i) / 2)",
    "window": "X(i + k) * W(k) where k in 0:3",
}


def _check(op: Any, inputs: list[Any]) -> None:
    assert torch.autograd.gradcheck(op, inputs, fast_mode=True)
    # A second derivative may be infinite where two directions meet a kink: none of these does.
    assert torch.autograd.gradgradcheck(op, inputs, fast_mode=True)


@pytest.mark.parametrize(("file", "name"), sampled(EXAMPLE_DEFS, 16))
def test_examples_in_double(file: str, name: str) -> None:
    source = (EXAMPLES / f"{file}.tc").read_text(encoding="utf-8")
    inputs = [torch.tensor(a) for a in example_inputs(source, name).values()]
    inputs = [a.requires_grad_() if a.is_floating_point() else a for a in inputs]
    _check(tcl.torch.op(in_double(source), name), inputs)


@pytest.mark.parametrize("name", sampled([*SMOOTH], 5))
def test_expressions_in_double(name: str) -> None:
    body = SMOOTH[name]
    summed = "j <= i" in body or "k in" in body
    ranges = {"every second": "0:N/2", "window": "0:N-2"}.get(name, "0:N")
    where = f", i in {ranges}" if " where " in body else f" where i in {ranges}"
    text = f"""def f(double(N) X, double(N) W, int32(N) At) -> (O) {{
        O(i) {"+=!" if summed else "="} {body}{where}
    }}"""
    X, W = (torch.rand(6, dtype=torch.double) * 2 - 1 for _ in range(2))
    at = torch.tensor([0, 3, 3, 5, 1, 3], dtype=torch.int32)
    _check(tcl.torch.op(text, "f"), [X.requires_grad_(), W.requires_grad_(), at])


@pytest.mark.parametrize("name", STEPWISE)
def test_inputs_that_a_gradient_only_compares(name: str) -> None:
    inputs = [torch.tensor(a) for a in stepwise_inputs(name)]
    inputs = [a.requires_grad_() if a.is_floating_point() else a for a in inputs]
    op = tcl.torch.op(stepwise(name), "f")
    _check(op, inputs)
    _check(lambda x: op(x, *(a.detach() for a in inputs[1:])), inputs[:1])
    (found,) = torch.autograd.grad((op(*inputs) ** 3).sum(), inputs[0], create_graph=True)
    (found**2).sum().backward()
    assert inputs[0].grad.abs().sum() > 0


def _convolved(**how: Any) -> Callable[..., Any]:
    return lambda x, w, b: functional.conv2d(x, w, b, **how)


def _grouped(x: Any, w: Any, b: Any) -> Any:
    found = functional.conv2d(x.flatten(1, 2), w.flatten(0, 1), b.flatten(), groups=x.shape[1])
    return found.unflatten(1, b.shape)


def _group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    found = functional.group_norm(
        x.flatten(1, 2), x.shape[1], gamma.flatten(), beta.flatten(), 1e-5
    )
    return found.reshape(x.shape)


LAYERS: dict[tuple[str, str], Callable[..., Any]] = {
    ("convolution", "convolution"): _convolved(),
    ("convolution", "convolution_padded"): _convolved(padding=1),
    ("convolution", "convolution_strided"): _convolved(stride=2),
    ("convolution", "convolution_dilated"): _convolved(dilation=3),
    ("group_convolution", "group_convolution"): _grouped,
    ("group_normalization", "group_normalization_single"): _group_norm,
    ("softmax", "softmax"): lambda x: functional.softmax(x, 1),
    ("softmax", "softmax_twice"): lambda x: functional.softmax(x, 1),
    ("softmax", "log_softmax"): lambda x: functional.log_softmax(x, 1),
    ("layers", "gelu"): functional.gelu,
    ("layers", "sigmoid"): torch.sigmoid,
    ("layers", "hyperbolic_tangent"): torch.tanh,
    ("attention_scores", "attention"): functional.scaled_dot_product_attention,
    ("matmul", "matmul"): torch.matmul,
    ("lut", "one_lut"): lambda table, at: functional.embedding(at, table).sum(1),
}


@pytest.mark.parametrize(("file", "name"), sampled([*LAYERS], 5))
def test_beside_torchs_layers(file: str, name: str) -> None:
    source = (EXAMPLES / f"{file}.tc").read_text(encoding="utf-8")
    first = tcl.torch.op(source, name).checked.outputs[0].name
    op = tcl.torch.op(source, name, wanted=first)
    arrays = example_inputs(source, name).values()
    inputs = [torch.tensor(a.astype("f") if a.dtype == np.float64 else a) for a in arrays]
    inputs = [a.requires_grad_() if a.is_floating_point() else a for a in inputs]
    leaves = [a for a in inputs if a.requires_grad]
    ours, theirs = op(*inputs), LAYERS[file, name](*inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    seed = torch.randn(ours.shape)
    found, expected = (torch.autograd.grad(out, leaves, seed) for out in (ours, theirs))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
