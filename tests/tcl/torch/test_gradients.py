"""Gradients of operators, by defs that their authors wrote."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_defs import MM, PICK, SOFT

import tcl


@pytest.fixture(autouse=True)
def _afresh() -> None:
    torch._dynamo.reset()


def leaf(*shape: int) -> Any:
    return torch.rand(*shape).requires_grad_()


@pytest.fixture
def mm() -> Any:
    return tcl.torch.op(MM, "mm", backward="mm_grad")


@pytest.mark.parametrize("compiled", [False, True])
def test_both_inputs(mm: Any, compiled: bool) -> None:
    A, B = leaf(3, 4), leaf(4, 5)

    def program(A: Any, B: Any) -> Any:
        return (mm(A.cos(), B) ** 2).sum()

    run = torch.compile(program, fullgraph=True, backend="aot_eager") if compiled else program
    found = torch.autograd.grad(run(A, B), (A, B))
    expected = torch.autograd.grad(((A.cos() @ B) ** 2).sum(), (A, B))
    torch.testing.assert_close(found, expected)


def test_an_input_that_needs_none(mm: Any) -> None:
    A, B = leaf(3, 4), torch.rand(4, 5)
    mm(A, B).sum().backward()  # its gradient is expanded from one number
    torch.testing.assert_close(A.grad, B.sum(1).expand(3, 4))
    assert B.grad is None
    with torch.no_grad():
        assert not mm(A, B).requires_grad
    assert not mm(A.detach(), B).requires_grad


@pytest.mark.parametrize("compiled", [False, True])
def test_of_the_outputs_that_are_wanted(compiled: bool) -> None:
    soft = tcl.torch.op(
        f"{SOFT}def only(float(N) X, float(N) Y, float(N) d_Y) -> (d_X) {{\n"
        "    d_X(n) = Y(n) * d_Y(n)\n    d_X(n) += -Y(n) * Y(m) * d_Y(m)\n}",
        *("soft", "naive"),
        backward="only",
        wanted="Y",
    )
    run = torch.compile(soft, fullgraph=True, backend="aot_eager") if compiled else soft
    X, weights = leaf(7), torch.rand(7)
    found = torch.autograd.grad((run(X) * weights).sum(), X)
    expected = torch.autograd.grad((X.softmax(0) * weights).sum(), X)
    torch.testing.assert_close(found, expected)
    with pytest.raises(tcl.ArgumentError, match=r"soft_grad has to take .* but takes 5"):
        tcl.torch.op(SOFT, "soft", backward="soft_grad", wanted="Y")


def test_inputs_and_outputs_that_are_integers() -> None:
    pick = tcl.torch.op(PICK, "pick", backward="pick_grad")
    X, at = leaf(5), torch.tensor([0, 4, 4], dtype=torch.int32)
    values, after = pick(X, at)
    assert not after.requires_grad
    (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert X.grad.tolist() == [1, 0, 0, 0, 5]


def test_a_backward_def_that_takes_the_outputs() -> None:
    soft = tcl.torch.op(SOFT, "soft", backward="soft_grad")
    X = leaf(6)
    values, total = soft(X)
    (values[2] + 0.5 * total).backward()
    found, X.grad = X.grad, None
    (X.softmax(0)[2] + 0.5 * X.exp().sum()).backward()
    torch.testing.assert_close(found, X.grad)


def test_under_autocast(mm: Any) -> None:
    A, B = leaf(3, 4), leaf(4, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        C = mm(A.bfloat16(), B)
    C.sum().backward()
    expected = B.detach().sum(1).bfloat16().float().expand(3, 4)
    torch.testing.assert_close(A.grad, expected)


def test_functional_transforms(mm: Any) -> None:
    A, B = torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    found = torch.func.vmap(torch.func.grad(lambda a, b: mm(a, b).sum()))(A, B)
    torch.testing.assert_close(found, B.sum(2)[:, None].expand(2, 3, 4))


def test_no_gradient_is_made_up(mm: Any) -> None:
    A, B = leaf(3, 4), leaf(4, 5)
    plain = tcl.torch.op(MM, "mm")
    C = plain(A, B)
    with pytest.raises(tcl.ArgumentError, match=r"mm has no gradient; name a def that computes it"):
        C.sum().backward()
    compiled = torch.compile(plain, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="mm has no gradient; name a def that computes it"):
        compiled(A, B)
    with torch.no_grad():
        torch.testing.assert_close(compiled(A, B), A @ B)
    (first,) = torch.autograd.grad((mm(A, B) ** 2).sum(), A, create_graph=True)
    with pytest.raises(tcl.ArgumentError, match="is mm_grad, which has no gradient of its own"):
        first.sum().backward()
    with pytest.raises(NotImplementedError, match="forward mode AD"):
        torch.func.jvp(lambda a: mm(a, B.detach()), (A.detach(),), (A.detach(),))


def with_gradient(signature: str, body: str = "d_A(i) = d_O(i)") -> str:
    return "def f(float(N) A, int32(N) J) -> (O) { O(i) = A(i) * J(i) }\n" + (
        f"def g{signature} {{ {body} }}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            with_gradient("(float(N) go) -> (d_A)", "d_A(i) = go(i)"),
            r"g has to take the inputs of f and the gradients of its outputs \(3 inputs\), or its "
            r"inputs, its outputs and their gradients \(4\), but takes 1; or any of these by their "
            r"names, and 'go' is none of them: A, J, O, d_O$",
        ),
        (
            with_gradient("(float(N) A) -> (d_A)", "d_A(i) = A(i)"),
            "g has to take d_O, without which what depends on 'O' of f is lost$",
        ),
        (
            with_gradient("(float(N) J, int32(N) A, float(N) go) -> (d_A)", "d_A(i) = go(i)"),
            "'J' of g stands where A of f belongs; use the names A, J, d_O, or that order$",
        ),
        (
            "def f(float(N) A, float(N) J) -> (O) { O(i) = A(i) * J(i) }\n"
            "def g(float(N) d_O) -> (x, d_A) { d_A(i) = d_O(i) x(i) = d_O(i) }",
            "'d_A' of g stands where d_J of f belongs; use the names d_A, d_J, or that order$",
        ),
        (
            with_gradient("(float(N) d_O) -> (x, y)", "x(i) = d_O(i) y(i) = x(i)"),
            "g returns 2 tensors, of which d_A would be the gradients of f, but none is called "
            "d_A; name the gradients so, and what is needed on the way otherwise$",
        ),
        (
            "def f(float(N) A, float(N) B) -> (O) { O(i) = A(i) * B(i) }\n"
            "def g(float(N) d_O) -> (d_A) { d_A(i) = d_O(i) }",
            r"g has to return one gradient for each floating-point input of f \('A', 'B'\), but "
            "returns 1$",
        ),
        (
            "def f(float(N) A) -> (O, S) { O(i) = A(i) S +=! A(i) }\n"
            "def g(float(N) d_O) -> (d_A) { d_A(i) = d_O(i) }",
            "g has to take d_S, without which what depends on 'S' of f is lost, or do not return "
            "'S', by wanted=$",
        ),
        (
            with_gradient("(float(N) A, int64(N) J, float(N) d_O) -> (d_A)"),
            "'J' of g is int64 with 1 dimension, but 'J' of f, which it belongs to, is int32 with",
        ),
        (
            with_gradient(
                "(float(N) A, int32(N) J, float(N) d_O) -> (d_A, d_J)",
                "d_A(i) = d_O(i) d_J(i) = d_O(i)",
            ),
            "g returns d_J, but 'J' of f is int32 and has no gradient; leave it out$",
        ),
    ],
)
def test_defs_that_do_not_fit(text: str, sentence: str) -> None:
    with pytest.raises(tcl.ArgumentError, match=sentence):
        tcl.torch.op(text, "f", backward="g")


def test_gradients_of_other_shapes() -> None:
    text = with_gradient(
        "(float(N) A, int32(N) J, float(N) d_O) -> (d_A)", "d_A(i) = d_O(i) where i in 0:1"
    )
    f = tcl.torch.op(text, "f", backward="g")
    with pytest.raises(tcl.ArgumentError, match=r"g returns a gradient of shape \(1,\) for 'A' of"):
        f(leaf(3), torch.ones(3, dtype=torch.int32)).sum().backward()
