"""Gradients of operators, by defs that their authors wrote or that are derived."""

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
    X = leaf(3)
    gamma = tcl.torch.op("def gamma(float(N) X) -> (O) { O(n) = lgamma(X(n)) }", "gamma")
    sentence = r"gamma has no gradient that can be derived: lgamma .*; name a def that computes the"
    with pytest.raises(tcl.ArgumentError, match=sentence):
        gamma(X).sum().backward()
    compiled = torch.compile(gamma, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=sentence):
        compiled(X)
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), torch.lgamma(X))
    text = "def rough(float(N) X, float(N) Y) -> (O) { O(n) = floor(X(n)) * Y(n) }"
    rough, Y = tcl.torch.op(text, "rough"), leaf(3)
    rough(X.detach(), Y).sum().backward()
    torch.testing.assert_close(Y.grad, X.floor())
    for run in (rough, torch.compile(rough, backend="aot_eager")):
        with pytest.raises(tcl.ArgumentError, match=r"smoothly on 'X' .*; give it X.detach\(\)"):
            run(X, Y).sum().backward()
    A, B = leaf(3, 4), torch.rand(4, 5)
    with pytest.raises(NotImplementedError, match="forward mode AD"):
        torch.func.jvp(lambda a: mm(a, B), (A.detach(),), (A.detach(),))


CUBE = """def cube(double(N) X, double(N) Y) -> (O, On_the_way) {
    On_the_way(n) = exp(X(n)) / (1 + Y(n) * Y(n))
    O(n) = On_the_way(n) * X(n)
}
def by_hand(double(N) X, double(N) Y, double(N) On_the_way, double(N) d_O) -> (d_X, d_Y) {
    d_X(n) = d_O(n) * On_the_way(n) * (X(n) + 1)
    d_Y(n) = -2 * d_O(n) * On_the_way(n) * X(n) * Y(n) / (1 + Y(n) * Y(n))
}"""


@pytest.mark.parametrize(("backward", "wanted"), [(None, None), (None, "O"), ("by_hand", "O")])
def test_gradients_that_are_derived(backward: str | None, wanted: str | None) -> None:
    """Twice, also through what a call does not return."""
    run = tcl.torch.op(CUBE, "cube", backward=backward, wanted=wanted)
    X, Y = (torch.rand(4, dtype=torch.double).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(run, (X, Y))
    assert torch.autograd.gradgradcheck(run, (X, Y))
    assert torch.autograd.gradgradcheck(lambda x: run(x, Y.detach()), (X,))

    def loss(f: Any) -> Any:
        return lambda x: ((f(x, Y.detach()) if wanted else f(x, Y.detach())[0]) ** 2).sum()

    def theirs(x: Any, y: Any) -> Any:
        made = x * x.exp() / (1 + y * y)
        return made if wanted else (made,)

    for transform in (torch.func.grad, lambda f: torch.func.jacrev(torch.func.jacrev(f))):
        torch.testing.assert_close(transform(loss(run))(X), transform(loss(theirs))(X))
    compiled = torch.compile(loss(run), fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(X), X)
    torch.testing.assert_close(found, torch.func.grad(loss(theirs))(X.detach()))


def test_second_derivatives_that_need_what_is_not_kept() -> None:
    text = """def f(double(N) X, double(N) Z) -> (O, S) { S(n) = sin(Z(n))  O(n) = X(n) * S(n) }
    def g(double(N) X, double(N) S, double(N) d_O) -> (d_X, d_Z) {
        d_X(n) = d_O(n) * S(n)
        d_Z(n) = d_O(n) * X(n) * sqrt(1 - S(n) * S(n))
    }"""
    run = tcl.torch.op(text, "f", backward="g", wanted="O")
    X, Z = (torch.rand(4, dtype=torch.double).requires_grad_() for _ in range(2))
    (first,) = torch.autograd.grad(run(X, Z).sum(), X, create_graph=True)
    with pytest.raises(tcl.ArgumentError, match="second derivatives of f need 'Z', which g does"):
        first.sum().backward()


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
            r"inputs, its outputs and their gradients \(4\), but takes 1; or any of these by "
            r"name, but 'go' is not one of them: A, J, O, d_O$",
        ),
        (
            with_gradient("(float(N) A) -> (d_A)", "d_A(i) = A(i)"),
            "g has to take d_O, else the gradient through 'O' of f is lost$",
        ),
        (
            with_gradient("(float(N) J, int32(N) A, float(N) go) -> (d_A)", "d_A(i) = go(i)"),
            "'J' of g is at the position of A of f; use the names A, J, d_O, or that order$",
        ),
        (
            "def f(float(N) A, float(N) J) -> (O) { O(i) = A(i) * J(i) }\n"
            "def g(float(N) d_O) -> (x, d_A) { d_A(i) = d_O(i) x(i) = d_O(i) }",
            "'d_A' of g is at the position of d_J of f; use the names d_A, d_J, or that order$",
        ),
        (
            with_gradient("(float(N) d_O) -> (x, y)", "x(i) = d_O(i) y(i) = x(i)"),
            "g returns 2 tensors, of which d_A would be the gradients of f, but none is named "
            "d_A; give the gradients these names, and intermediate results other names$",
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
            "g has to take d_S, else the gradient through 'S' of f is lost, or do not return 'S', "
            "by wanted=$",
        ),
        (
            with_gradient("(float(N) A, int64(N) J, float(N) d_O) -> (d_A)"),
            "'J' of g is int64 with 1 dimension, but 'J' of f, its counterpart, is int32 with",
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
