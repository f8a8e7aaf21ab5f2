"""Programs in the original's style that train: gradients that were written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tcl.tensor_comprehensions as tc

CONVOLUTION = """
def convolution(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(M) Bias) -> (O) {
    O(n, m, h, w) +=! I(n, r_c, h + r_kh, w + r_kw) * W1(m, r_c, r_kh, r_kw)
    O(n, m, h, w)  = O(n, m, h, w) + Bias(m)
}
def convolution_grad(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(M) Bias, float(N,M,H,W) d_O)
    -> (d_I, d_W1, d_Bias)
{
    d_I(n, c, h, w) +=! d_O(n, r_m, h - r_kh, w - r_kw) * W1(r_m, c, r_kh, r_kw)
    d_W1(m, c, kh, kw) +=! d_O(r_n, m, r_h - kh, r_w - kw) * I(r_n, c, r_h, r_w)
    d_Bias(m) +=! d_O(r_n, m, r_h, r_w)
}
def convolution_igrad(float(M,C,KH,KW) W1, float(N,M,H,W) d_O) -> (d_I) {
    d_I(n, c, h, w) +=! d_O(n, r_m, h - r_kh, w - r_kw) * W1(r_m, c, r_kh, r_kw)
}
def convolution_wgrad(float(N,C,H,W) I, float(N,M,H,W) d_O) -> (d_W1) {
    d_W1(m, c, kh, kw) +=! d_O(r_n, m, r_h - kh, r_w - kw) * I(r_n, c, r_h, r_w)
}
def convolution_bgrad(float(N,M,H,W) d_O) -> (d_Bias) { d_Bias(m) +=! d_O(r_n, m, r_h, r_w) }
"""
MATMUL = """
def matmul(float(M,N) A, float(N,K) B) -> (C) { C(m, k) +=! A(m, r_n) * B(r_n, k) }
def matmul_grad(float(M,N) A, float(N,K) B, float(M,K) d_C) -> (d_A, d_B) {
    d_A(m, n) +=! d_C(m, r_k) * B(n, r_k)
    d_B(n, k) +=! d_C(r_m, k) * A(r_m, n)
}
"""


pytestmark = pytest.mark.usefixtures("quiet")


def leaves(*tensors: Any) -> list[Any]:
    return [t.detach().clone().requires_grad_() for t in tensors]


def gradients(out: Any, inputs: list[Any]) -> list[Any]:
    out.sum().backward()
    return [i.grad for i in inputs]


def test_backward_as_one_def() -> None:
    T = tc.define(MATMUL, tc.make_naive_options_factory())
    matmul = tc.make_autograd(T.matmul, T.matmul_grad)
    inputs = leaves(torch.randn(3, 4), torch.randn(4, 5))
    theirs = leaves(*inputs)
    for found, expected in zip(
        gradients(matmul(*inputs), inputs), gradients(torch.mm(*theirs), theirs), strict=True
    ):
        torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(
        tc.make_autograd(*_doubles(T)), [i.double().detach().requires_grad_() for i in inputs]
    )


def _doubles(T: tc.TC) -> tuple[Any, Any]:
    double = tc.define(MATMUL.replace("float", "double"), tc.make_naive_options_factory())
    return double.matmul, double.matmul_grad


def test_backward_of_a_convolution_in_three_kernels() -> None:
    T = tc.define(CONVOLUTION, tc.make_naive_options_factory())

    def backward(I: Any, W: Any, Bias: Any, d_O: Any) -> tuple[Any, ...]:
        # A kernel of 1 x 1: the range of r_h is then all of both of its tensors.
        return T.convolution_igrad(W, d_O), T.convolution_wgrad(I, d_O), T.convolution_bgrad(d_O)

    convolution = tc.make_autograd(forward_fun=T.convolution, backward_fun=backward)
    inputs = leaves(torch.randn(2, 3, 6, 6), torch.randn(4, 3, 1, 1), torch.randn(4))
    theirs = leaves(*inputs)
    for found, expected in zip(
        gradients(convolution(*inputs), inputs),
        gradients(F.conv2d(*theirs), theirs),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_an_input_without_a_gradient() -> None:
    text = """
    def pick(float(E, D) Table, int32(N) I) -> (O) { O(n, d) = Table(I(n), d) }
    def pick_grad(float(E, D) Table, int32(N) I, float(N, D) d_O) -> (d_Table) {
        d_Table(e, d) +=! I(r_n) == e ? d_O(r_n, d) : 0 where e in 0:E
    }
    """
    T = tc.define(text, tc.make_naive_options_factory())
    pick = tc.make_autograd(T.pick, lambda *given: (T.pick_grad(*given), None))
    (table,) = leaves(torch.randn(6, 3))
    I = torch.tensor([0, 5, 5, 2], dtype=torch.int32)
    (pick(table, I) ** 2).sum().backward()
    (theirs,) = leaves(table)
    (F.embedding(I.long(), theirs) ** 2).sum().backward()
    torch.testing.assert_close(table.grad, theirs.grad)


def test_a_single_gradient_need_not_be_a_tuple() -> None:
    text = """
    def relu(float(N) I) -> (O) { O(n) = fmax(I(n), 0) }
    def relu_grad(float(N) I, float(N) d_O) -> (d_I) { d_I(n) = I(n) > 0 ? d_O(n) : 0 }
    """
    T = tc.define(text, tc.make_naive_options_factory())
    I = torch.randn(20, requires_grad=True)
    tc.make_autograd(T.relu, T.relu_grad)(I).sum().backward()
    assert torch.equal(I.grad, (I > 0).float())


def test_a_wrong_number_of_gradients_is_refused() -> None:
    T = tc.define(MATMUL, tc.make_naive_options_factory())
    inputs = leaves(torch.randn(3, 4), torch.randn(4, 5))
    matmul = tc.make_autograd(T.matmul, lambda A, B, d_C: T.matmul_grad(A, B, d_C)[:1])
    with pytest.raises(RuntimeError, match="a gradient for each of 2 inputs, but returned 1"):
        matmul(*inputs).sum().backward()
    with pytest.raises(RuntimeError, match=r"backward function, and can derive one only for a"):
        tc.make_autograd(lambda A, B: A @ B, None)


def test_a_gradient_that_is_derived() -> None:
    text = """
    def f(double(N) A, double(N) C, int32 k) -> (B, D) { B(n) = A(n) * C(n) * k  D +=! B(n) * A(n) }
    """
    f = tc.make_autograd(tc.define(text, tc.make_naive_options_factory()).f)
    A, C = (torch.randn(4, dtype=torch.double, requires_grad=True) for _ in range(2))
    k = torch.tensor(3, dtype=torch.int32)
    assert torch.autograd.gradcheck(f, (A, C, k)) and torch.autograd.gradgradcheck(f, (A, C, k))
    _, D = f(A, C.detach(), k)
    D.backward()
    torch.testing.assert_close(A.grad, 6 * A.detach() * C.detach())
    assert C.grad is None


def test_several_outputs() -> None:
    text = """
    def both(float(N) A) -> (S, P) { S(n) = A(n) + A(n) P(n) = A(n) * A(n) }
    def both_grad(float(N) A, float(N) d_S, float(N) d_P) -> (d_A) {
        d_A(n) = 2 * d_S(n) + 2 * A(n) * d_P(n)
    }
    """
    T = tc.define(text, tc.make_naive_options_factory())
    A = torch.randn(9, requires_grad=True)
    S, P = tc.make_autograd(T.both, T.both_grad)(A)
    (S * P).sum().backward()
    torch.testing.assert_close(A.grad, 6 * A.detach() ** 2)


class Builder:
    """A program's own layer over the compilation cache, which compiles what is missing."""

    def __init__(self, text: str) -> None:
        self.cache = tc.CompilationCache(text)
        self.compiled = 0

    def run(self, entry_point: str, inputs: tuple[Any, ...]) -> Any:
        if not self.cache.is_compiled(entry_point, inputs):
            self.cache.compile(entry_point, inputs, tc.MappingOptions("naive"))
            self.compiled += 1
        return self.cache.unchecked_run(entry_point, inputs, ())


class Product(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, builder: Builder, *inputs: Any) -> Any:
        ctx.builder = builder
        ctx.save_for_backward(*inputs)
        return builder.run("matmul", inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs = tuple(ctx.saved_tensors) + tuple(g.contiguous() for g in grads)
        return (None, *ctx.builder.run("matmul_grad", inputs))


def test_a_function_of_the_program_over_the_compilation_cache() -> None:
    builder = Builder(MATMUL)
    inputs = leaves(torch.randn(3, 4), torch.randn(4, 5))
    theirs = leaves(*inputs)
    for _ in range(3):
        for each in inputs:
            each.grad = None
        found = gradients(Product.apply(builder, *inputs), inputs)
    for mine, expected in zip(found, gradients(torch.mm(*theirs), theirs), strict=True):
        torch.testing.assert_close(mine, expected)
    assert builder.compiled == 2
