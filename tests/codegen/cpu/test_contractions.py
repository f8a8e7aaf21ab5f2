"""Sums of products in all shapes, with random tiles, register tiles and panels."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import NAIVE, Array, poisoned, random_options, reference, sized_of
from sampling import sampled

CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "matmul": ("A(M, K) B(K, N) | C(m, n) +=! A(m, k) * B(k, n)", ((37, 29), (29, 53))),
    "transposed": ("A(M, K) B(N, K) | C(m, n) +=! A(m, k) * B(n, k)", ((19, 33), (41, 33))),
    "batched": ("A(B, M, K) D(B, K, N) | C(b, m, n) +=! A(b, m, k) * D(b, k, n)",
                ((3, 13, 17), (3, 17, 21))),
    "vector": ("A(M, K) x(K) | C(m) +=! A(m, k) * x(k)", ((35, 27), (27,))),
    "outer": ("x(M) y(N) | C(m, n) +=! x(m) * y(n)", ((35,), (27,))),
    "kronecker": ("W(D, L) X(M, P, Q, L) | C(m, p, q, d) +=! X(m, p, q, l) * W(d, l)",
                  ((7, 11), (3, 2, 5, 11))),
    "three": ("A(M, K) B(K, N) D(K) | C(m, n) +=! A(m, k) * D(k) * B(k, n)",
              ((9, 31), (31, 18), (31,))),
    "squares": ("A(M, K) | C(m, n) +=! A(m, k) * A(n, k)", ((21, 14),)),
    "convolution": ("I(N, C, H, W) K(F, C, R, S) | "
                    "O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s)",
                    ((2, 3, 8, 21), (5, 3, 3, 3))),
    "strided": ("I(C, H) K(F, C, R) | O(f, h) +=! I(c, 2 * h + 3 * r - 1) * K(f, c, r) "
                "where h in 1:19", ((3, 47), (6, 3, 3))),
    "grouped": ("I(N, G, C, H, W) K(G, F, C, R, S) | "
                "O(n, g, f, h, w) +=! I(n, g, c, h + r, w + s) * K(g, f, c, r, s)",
                ((1, 3, 4, 6, 9), (3, 4, 4, 3, 3))),
    "added to": ("A(M, K) B(K, N) | C(m, n) += A(m, k) * B(k, n)", ((18, 9), (9, 35))),
    "largest": ("A(M, K) B(K, N) | C(m, n) max=! A(m, k) * B(k, n)", ((18, 9), (9, 35))),
}  # fmt: skip


def text_of(case: str, type_: str) -> str:
    declared, body = CASES[case][0].split(" | ")
    names = [part.strip() + ")" for part in declared.split(")") if part.strip()]
    parts = (name.replace("(", " ", 1).rstrip(")").split(" ", 1) for name in names)
    inputs = ", ".join(f"{type_}({sizes}) {name}" for name, sizes in parts)
    return f"def f({inputs}) -> ({body[0]}) {{ {body} }}"


def inputs_of(case: str, dtype: type) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.integers(-4, 5, shape).astype(dtype) for shape in CASES[case][1]]


TYPES = {"float": np.float32, "double": np.float64, "int32": np.int32, "half": np.float16}


@pytest.mark.parametrize(("case", "type_"), sampled(product(CASES, TYPES), 5))
def test_any_options_give_what_the_reference_gives(case: str, type_: str) -> None:
    """Small integers: every order of summing is exact."""
    text, inputs = text_of(case, type_), inputs_of(case, TYPES[type_])
    (expected,) = reference(text, *inputs)
    sized = sized_of(text, *inputs)
    rng = random.Random(f"{case} {type_}")
    for _ in range(4):
        options = random_options(rng, sized)
        (got,) = outputs = poisoned(sized)
        compile_cpu(sized, options)(inputs, outputs)
        np.testing.assert_array_equal(got, expected, err_msg=str(options))


def test_products_are_accumulated_by_fma() -> None:
    """Only where a reduction allows it, as it rounds once instead of twice."""
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    assert "fmuladd" in compile_cpu(sized_of(text_of("matmul", "float"), a, b), NAIVE).llvm
    for other in ("O(i) = A(i) * A(i) + A(i)", "O(i) max=! A(i) * A(i)", "O(i) += A(i)"):
        text = f"def f(float(N) A) -> (O) {{ {other} }}"
        assert "fmuladd" not in compile_cpu(sized_of(text, a[0]), NAIVE).llvm


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 23, 40])
def test_lanes_behind_the_end_of_a_reduction_add_nothing(columns: int) -> None:
    a = -np.random.default_rng(4).integers(1, 3, (5, columns)).astype(np.float64)
    text = """def f(double(M, N) A) -> (P, Q, R, S) {
        P(m) +=! A(m, n) + 1
        Q(m) *=! A(m, n)
        R(m) max=! A(m, n)
        S(m) min=! 0 - A(m, n)
    }"""
    sized = sized_of(text, a)
    for sizes in ((), (0, 2), (2, 3)):
        outputs = poisoned(sized)
        compile_cpu(sized, NAIVE.vectorize(8, 1).register(*sizes))([a], outputs)
        expected = ((a + 1).sum(1), a.prod(1), a.max(1), (-a).min(1))
        for got, want in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(got, want)


PRODUCTS = {
    "A(k, n) * W(k) + A(k, n + 1) * W(k)": 2,
    "A(k, n) * W(k) - (A(k, n + 1) * W(k) - A(k, n) * A(k, n))": 3,
    "A(k, n) * W(k) + (n + k >= 5 ? A(k, n + 1) * W(k) : 0)": 4,
    "Mask(k, n) == 1 ? A(k, n) * W(k) - A(k, n + 1) * W(k) : 0": 2,
    "Mask(k, 0) == 1 ? A(k, n) * W(k) - (n > 3 ? W(k) * 2 : 0) : 0": 2,
    "A(k, n) * W(k) + W(k)": 0,
    "A(k, n) - A(k, n + 1)": 0,
}
"""What is added → how many products of it are accumulated on their own: where a condition asks for
bounds of indices, in a version of the loops for points at which it holds, too."""


@pytest.mark.parametrize("added", PRODUCTS)
def test_a_sum_of_products_is_added_product_by_product(added: str) -> None:
    rng = np.random.default_rng(6)
    a, w = rng.integers(-3, 4, (9, 36)), rng.integers(-3, 4, 9)
    mask = rng.integers(0, 2, (9, 35)).astype(np.uint8)
    inputs = (a.astype(np.float32), w.astype(np.float32), mask)
    text = f"""def f(float(K, L) A, float(K) W, uint8(K, N) Mask) -> (O) {{
        O(n) +=! {added} where n in 0:N
    }}"""
    sized, expected = sized_of(text, *inputs), reference(text, *inputs)
    for options in (NAIVE, NAIVE.vectorize(8).register(2), NAIVE.vectorize(8, 1), NAIVE.tile(5, 2)):
        kernel, outputs = compile_cpu(sized, options), poisoned(sized)
        kernel(inputs, outputs)
        np.testing.assert_array_equal(outputs[0], expected[0], err_msg=str(options))
    # Mixed sums stay whole: a small difference of large numbers must not be lost.
    assert compile_cpu(sized, NAIVE).llvm.count("= call float @llvm.fmuladd") == PRODUCTS[added]
