"""Gradients that take what the forward def made on the way, and make something on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from norm_defs import LAYER_NORM, RMS_NORM, SOFTMAX
from torch.nn import functional

import tcl

CASES = [
    (SOFTMAX, "softmax", 1, 1, lambda X: functional.softmax(X, 1)),
    (RMS_NORM, "rms_norm", 2, 3, lambda X, G: functional.rms_norm(X, G.shape, G, 1e-5)),
    (LAYER_NORM, "layer_norm", 3, 4, lambda X, G, B: functional.layer_norm(X, G.shape, G, B, 1e-5)),
]
each = pytest.mark.parametrize(
    ("source", "name", "count", "kept", "theirs"), CASES, ids=[case[1] for case in CASES]
)


def operator(source: str, name: str) -> Any:
    return tcl.torch.op(source, name, backward=f"{name}_grad", wanted="O")


def inputs(count: int, n: int = 6, d: int = 11) -> list[Any]:
    made = [torch.rand(n, d, dtype=torch.double) - 0.5]
    made += [torch.rand(d, dtype=torch.double) + 0.5 for _ in range(count - 1)]
    return [each.requires_grad_() for each in made]


@each
def test_gradients_of_a_norm(
    source: str, name: str, count: int, kept: int, theirs: Callable[..., Any]
) -> None:
    run, given = operator(source.replace("float", "double"), name), inputs(count)
    torch.testing.assert_close(run(*given), theirs(*given))
    assert torch.autograd.gradcheck(run, given)
    weights = torch.rand(6, 11, dtype=torch.double)
    found = torch.autograd.grad((run(*given) * weights).sum(), given)
    torch.testing.assert_close(found, torch.autograd.grad((theirs(*given) * weights).sum(), given))
    # Nothing is kept but what the gradient takes, and nothing where none is recorded.
    assert len(run(*given).grad_fn.saved_tensors) == kept
    with torch.no_grad():
        assert run(*given).grad_fn is None


@each
@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_a_norm_in_a_compiled_program(
    source: str, name: str, count: int, kept: int, theirs: Callable[..., Any], dynamic: bool
) -> None:
    torch._dynamo.reset()
    run = operator(source.replace("float", "double"), name)

    def program(*given: Any) -> Any:
        return (run(*given) ** 2).sum()

    compiled = torch.compile(program, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for shape in ((6, 11), (5, 7)):
        given = inputs(count, *shape)
        found = torch.autograd.grad(compiled(*given), given)
        torch.testing.assert_close(found, torch.autograd.grad((theirs(*given) ** 2).sum(), given))


@each
def test_gradients_of_a_norm_by_functional_transforms(
    source: str, name: str, count: int, kept: int, theirs: Callable[..., Any]
) -> None:
    run, given = operator(source.replace("float", "double"), name), inputs(count)
    given = [torch.stack([each.detach(), each.detach() * 2]) for each in given]

    def gradients(f: Any) -> Any:
        each = torch.func.grad(lambda *one: (f(*one) ** 2).sum(), tuple(range(count)))
        return torch.func.vmap(each)(*given)

    torch.testing.assert_close(gradients(run), gradients(theirs))


def test_names_of_a_gradient_in_any_order() -> None:
    """By their places, tensors of one shape would change roles in silence."""
    source = """
    def f(float(N) A, float(N) B) -> (O, P) { O(i) = A(i) * B(i) P(i) = A(i) + 3 * B(i) }
    def g(float(N) d_P, float(N) B, float(N) A, float(N) d_O) -> (d_B, d_A) {
        d_A(i) = d_O(i) * B(i) + d_P(i)
        d_B(i) = d_O(i) * A(i) + 3 * d_P(i)
    }
    """
    A, B = (torch.rand(5).requires_grad_() for _ in range(2))
    product, total = tcl.torch.op(source, "f", backward="g")(A, B)
    found = torch.autograd.grad((2 * product + 5 * total).sum(), (A, B))
    torch.testing.assert_close(found, (2 * B.detach() + 5, 2 * A.detach() + 15))


def test_places_that_are_kept_for_a_gradient() -> None:
    source = """
    def most(float(N, D) X) -> (M, At) {
        M(n) max=! X(n, d)
        At(n) min=! (X(n, d) == M(n)) ? d : D
    }
    def most_grad(float(N, D) X, int32(N) At, float(N) d_M) -> (d_X) {
        d_X(n, d) = At(n) == d ? d_M(n) : 0 where exists X(n, d)
    }
    """
    most = tcl.torch.op(source, "most", backward="most_grad", wanted="M")
    X = torch.rand(5, 7, requires_grad=True)
    (found,) = torch.autograd.grad((most(X) ** 2).sum(), X)
    (expected,) = torch.autograd.grad((X.amax(1) ** 2).sum(), X)
    torch.testing.assert_close(found, expected)
