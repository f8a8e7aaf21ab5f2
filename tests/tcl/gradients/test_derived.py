"""Derived backward defs beside the adjoints of the def itself, and what they say."""

from __future__ import annotations

import itertools
import re
import textwrap
from typing import Any

import numpy as np
import pytest
import torch
from comparing_gradients import (
    NO_GRADIENT,
    called,
    check_direction,
    check_gradients,
    differentiable_examples,
    example_inputs,
    in_double,
)
from places import EXAMPLES
from sampling import sampled

import tcl
from tcl.arrays.annotations import read_annotations
from tcl.codegen.loopir.lower import lower
from tcl.common.errors import ArgumentError
from tcl.gradients.builtins import DERIVATIVES, REFUSED
from tcl.gradients.grad import grad
from tcl.gradients.trees import size_of
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.parser import parse

HOW = ("any sizes", "these sizes", "nothing saved")

LINEAR = """batch_matmul bias_relu_scale c3 convolution convolution_padded convolution_strided
convolution_dilated convolution_grad group_convolution group_convolution_strided kronecker3
fully_connected fcrelu tensordot transpose stack concat indexing lut_columns one_lut two_lut matmul
matmul_grad matmul_half mlp3 layer row_sums sum_and_squares nearest_code table_sums column_sum
row_and_column_sums tmm""".split()
"""Defs of the examples whose gradients of whole numbers are whole: linear in an input, mostly."""


@pytest.mark.parametrize(
    ("file", "name", "how"),
    sampled([(f, n, how) for f, n in differentiable_examples() for how in HOW], 2),
)
def test_examples(file: str, name: str, how: str) -> None:
    source = (EXAMPLES / f"{file}.tc").read_text(encoding="utf-8")
    sizes = dict(read_annotations(check(source)[name]).sizes["test"])
    options: dict[str, dict[str, Any]]
    options = {"any sizes": {}, "these sizes": {"sizes": sizes}, "nothing saved": {"save": ()}}
    arrays, text = example_inputs(source, name), in_double(source)
    check_direction(text, name, arrays, check_gradients(text, name, arrays, **options[how]))


@pytest.mark.parametrize("name", sampled(LINEAR, 3))
def test_examples_of_whole_numbers(name: str) -> None:
    (file,) = (f for f, n in differentiable_examples() if n == name)
    source = (EXAMPLES / f"{file}.tc").read_text(encoding="utf-8")
    arrays = example_inputs(source, name)
    whole = {n: np.round(4 * a) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    assert check_gradients(in_double(source), name, whole).exact


@pytest.mark.parametrize("name", sorted(NO_GRADIENT))
def test_examples_of_integers(name: str) -> None:
    (text,) = (t for t in (p.read_text("utf-8") for p in EXAMPLES.glob("*.tc")) if name in check(t))
    with pytest.raises(ArgumentError, match="no gradient"):
        grad(text, name)


def _body(text: str, name: str = "f", **options: object) -> str:
    """The statements of the derived def, one a line."""
    body = grad(text, name, **options).partition("{")[2].rpartition("}")[0]  # type: ignore[arg-type]
    return re.sub(r"\n +", " ", textwrap.dedent(body).strip("\n"))


def test_product() -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    assert _body(text) == (
        "    d_A(m, k) +=! d_C(m, n) * B(k, n)\n    d_B(k, n) +=! d_C(m, n) * A(m, k)"
    ).replace("    ", "")
    assert "d_B" not in grad(text, "f", wrt="A")
    assert "float(M, K) A" not in grad(text, "f", wrt=["A"])


def test_convolution_is_a_gather() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k) * W(k) }"
    assert _body(text) == (
        "d_X(n) +=! n - k >= 0 && n - k < NO ? d_Y(n - k) * W(k) : 0\nd_W(k) +=! d_Y(n) * X(n + k)"
    )


def test_strides_have_no_remainder_in_a_sum() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(2 * n + k) * W(k) }"
    one, two, spread, weights = re.split(r"\n(?! )", _body(text))
    for phase in (one, two):
        assert "%" not in phase and "/" not in phase.partition(" where ")[0]
    assert two.startswith(
        "d_X_phase1(n) +=! n - k >= 0 && n - k < NO ? d_Y(n - k) * W(2 * k + 1) : 0 where"
    )
    assert spread == "d_X(n) = n % 2 == 0 ? d_X_phase0(n / 2) : d_X_phase1(n / 2)"
    assert weights.startswith("d_W(k) +=! d_Y(n) * X(2 * n + k)")


def test_many_phases_are_a_dimension() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(5 * n + k) * W(k) }"
    phases, spread = re.split(r"\n(?! )", _body(text, wrt="X"))
    assert spread == "d_X(n) = d_X_phases(n % 5, n / 5)"
    assert "5 * k + p < K ? d_Y(n - k) * W(5 * k + p) : 0" in phases
    text = "def f(float(N) X) -> (Y) { Y(n) +=! X(2 * n + k) where k in 0:2 }"  # alike, all of them
    assert "d_X_phases(n % 2, n / 2)" in _body(text)


def test_a_phase_without_terms() -> None:
    text = "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(2 * n + k) * W(k) }"
    body = _body(text, sizes={"N": 9, "K": 1}, wrt="X")
    assert body.endswith("d_X(n) = n % 2 == 0 ? d_X_phase0(n / 2) : 0")
    x = np.arange(9.0)
    check_gradients(in_double(text), "f", {"X": x, "W": x[1:2]})


def test_a_diagonal_is_an_equality() -> None:
    text = "def f(float(N, N) X) -> (Y) { Y(i) = 2 * X(i, i) }"
    assert _body(text) == "d_X(i, j) = i == j ? d_Y(i) * 2 : 0"
    check_gradients(in_double(text), "f", {"X": np.ones((3, 3))})


def test_a_sum_with_one_term_is_none() -> None:
    text = "def f(float(N) A, float(N) B) -> (O) { O(n, i) = i == 0 ? A(n) : B(n) where i in 0:2 }"
    assert _body(text).startswith("d_A(n) = d_O(n, 0)\n")
    text = "def f(double(N) X) -> (Y) { Y(i, j) = (i == j + 1) ? X(j) : 0 where i in 1:N }"
    check_gradients(text, "f", {"X": np.arange(5.0)})


UNARY_DOMAINS = {
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv"), (-0.9, 0.9)),
    "acosh": (1.1, 3.0),
    "erfcinv": (0.1, 1.9),
    "normcdfinv": (0.1, 0.9),
    "fabs": (0.1, 2.0),
    "log1p": (-0.9, 2.0),
    **dict.fromkeys(("log", "log10", "log2", "sqrt", "rsqrt", "y0", "y1", "rcbrt"), (0.2, 3.0)),
}


@pytest.mark.parametrize("name", sorted(set(BUILTINS) - set(REFUSED)))
def test_functions_beside_differences(name: str) -> None:
    arity = BUILTINS[name]
    arguments = ", ".join(f"{letter}(i)" for letter in "XYZW"[:arity])
    params = ", ".join(f"double(N) {letter}" for letter in "XYZW"[:arity])
    text = f"def f({params}) -> (O) {{ O(i) = {name}({arguments}) }}"
    if name in ("ceil", "floor", "round", "trunc"):
        with pytest.raises(ArgumentError, match="no gradient"):
            grad(text, "f")
        return
    rng = np.random.default_rng(0)
    low, high = UNARY_DOMAINS.get(name, (0.2, 2.0) if arity > 1 else (-2.0, 2.0))
    points = {letter: rng.uniform(low, high, 20) for letter in "XYZW"[:arity]}
    (derived,) = check(grad(text, "f", save=())).values()
    forward = check(text)["f"]
    ours = called(derived, {**points, "d_O": np.ones(20)})
    for letter in points:
        if f"d_{letter}" not in ours:
            assert (name, letter) == ("copysign", "Y")
            continue
        step = 1e-6
        up = called(forward, {**points, letter: points[letter] + step})["O"]
        down = called(forward, {**points, letter: points[letter] - step})["O"]
        there = (up - down) / (2 * step)
        np.testing.assert_allclose(ours[f"d_{letter}"], there, rtol=1e-5, atol=1e-6)


def test_all_functions_have_a_rule() -> None:
    assert set(BUILTINS) == set(DERIVATIVES) | set(REFUSED) | {"fmin", "fmax"}
    for name in REFUSED:
        call = f"{name}(X(i){', X(i)' * (BUILTINS[name] - 1)})"
        with pytest.raises(ArgumentError, match=f"{name} cannot be differentiated"):
            grad(f"def f(float(N) X) -> (Y) {{ Y(i) = {call} }}", "f")


def test_powers_with_a_literal() -> None:
    x = np.array([-1.5, 0.0, 2.0])
    for power in ("2", "3.0", "1"):
        check_gradients(f"def f(double(N) X) -> (Y) {{ Y(i) = pow(X(i), {power}) }}", "f", {"X": x})
    text = "def f(double(N) X) -> (Y) { Y(i) = pow(0.1, X(i)) }"
    check_gradients(text, "f", {"X": x}, 1e-12)


# --- ties, guards, products ---


@pytest.mark.parametrize("op", ["min", "max"])
def test_ties_are_split_evenly(op: str) -> None:
    text = f"def f(double(M, N) X) -> (Y) {{ Y(m) {op}=! X(m, n) }}"
    x = np.array([[1.0, 1, 0], [2, 2, 2], [0, 1, 2]]) * (1 if op == "max" else -1)
    derived = check_gradients(text, "f", {"X": x}).text
    (checked,) = check(derived).values()
    known = {"X": x, "Y": x.max(1) if op == "max" else x.min(1), "d_Y": np.ones(3)}
    expected = np.array([[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]])
    np.testing.assert_allclose(called(checked, known)["d_X"], expected)


@pytest.mark.parametrize("function", ["fmin", "fmax", "min", "max"])
def test_ties_of_two(function: str) -> None:
    text = f"def f(double(N) X, double(N) Y) -> (O) {{ O(i) = {function}(X(i), Y(i)) * X(i) }}"
    whole = {"X": np.array([1.0, 2, 3, -1]), "Y": np.array([1.0, 3, 2, -1])}
    check_gradients(text, "f", whole)


def test_a_computed_maximum_compares_what_is_stored() -> None:
    text = "def f(double(M, N) X, double(N) W) -> (Y) { Y(m) max=! X(m, n) * W(n) + 0.1 }"
    rng = np.random.default_rng(0)
    arrays = {"X": rng.integers(-2, 3, (5, 7)) * 0.1, "W": rng.integers(-2, 3, 7) * 0.1}
    assert "Y_terms(m, n) = X(m, n) * W(n) + 0.1" in check_gradients(text, "f", arrays).text


def test_what_is_computed_again_is_compared_with_what_is() -> None:
    text = """def f(double(M, N) X) -> (Y, Most) {
        Y(m) +=! sin(X(m, n))
        Most max=! Y(m)
        Y(m) = Y(m) * Y(m)
    }"""
    # The derived def computes Y again, in another order: a kept Most equals none of it.
    derived = check_gradients(
        text, "f", {"X": np.random.default_rng(0).uniform(-1, 1, (9, 300))}
    ).text
    assert "Most_2 max=! Y_1(m)" in derived and "double Most," not in derived


def test_nan_on_the_side_that_is_not_taken() -> None:
    text = """def f(double(N) X, double(N) W) -> (Y, Z) {
        Y(i) = X(i) > 0 ? sqrt(X(i)) * W(i) : 3 * X(i)
        Z +=! (X(i) > 0) ? log(X(i)) : 0
    }"""
    x = np.array([-1.0, 4.0, 0.0, -2.0, 9.0])
    w = np.array([np.nan, 1.0, np.inf, np.nan, 2.0])
    derived = check_gradients(text, "f", {"X": x, "W": w}).text
    (checked,) = check(derived).values()
    made = called(checked, {"X": x, "W": w, "d_Y": np.ones(5), "d_Z": np.ones(())})
    assert np.isfinite(made["d_X"]).all() and np.isfinite(made["d_W"]).all()


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("op", ["*=!", "*="])
def test_products(zeros: int, op: str) -> None:
    begin = "Y(m) = A(m) " if op == "*=" else ""
    text = f"def f(double(M, N) X, double(M) A) -> (Y) {{ {begin} Y(m) {op} X(m, n) * A(m) }}"
    x = np.array([[2.0, 3, 4, 5], [1, 2, 3, 4]])
    x[0, :zeros] = 0
    check_gradients(text, "f", {"X": x, "A": np.array([1.0, -2.0])})


# --- statements ---


def test_updates_in_place() -> None:
    text = """def f(double(N) X, double(K) W) -> (Y) {
        Y(i) +=! X(i + k) * W(k)
        Y(i) = Y(i) * Y(i) where i in 1:2
        Y(i) += X(i + 1)
        Y(i) max= X(i + k) * 0.5 where k in 0:2
        Y(i) = X(0) where i in 0:1
        Y(i) *= sin(Y(i))
    }"""
    rng = np.random.default_rng(0)
    check_gradients(text, "f", {"X": rng.uniform(-1, 1, 7), "W": rng.uniform(-1, 1, 3)})


def test_outputs_that_do_not_begin_at_0() -> None:
    text = """def f(double(N) X) -> (Y, Z) {
        Y(i) = X(i + 1) * X(i - 1) where i in 1:N - 1
        Z(i) = exp(Y(i)) * Y(i + 1) where i in 1:N - 2
    }"""
    x = np.random.default_rng(0).uniform(-1, 1, 8)
    check_gradients(text, "f", {"X": x})
    check_gradients(text, "f", {"X": x}, save=())


def test_calls_whose_names_clash() -> None:
    text = """def g(double(N) x, double(N) Y) -> (b) { b(X) = x(X) * Y(X) where c = x(X) }
    def h(double(N) X) -> (N1) { N1(b) = t * t where t = sin(X(b)) }
    def f(double(N) X, double(N) b) -> (Y, c, d) { Y = g(X, b)  c = h(Y)  d = g(c, X) }"""
    rng = np.random.default_rng(0)
    check_gradients(text, "f", {"X": rng.uniform(-1, 1, 5), "b": rng.uniform(-1, 1, 5)})


def test_mixed_types() -> None:
    text = """def f(float(N) X, double(N) Y, int32(N) I, bool(N) B) -> (O, P) {
        O(i) = X(i) * Y(i) + I(i) * X(i)
        P +=! B(i) ? float(O(i)) * X(i) : float(I(i))
    }"""
    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.uniform(-1, 1, 6).astype("float32"),
        "Y": rng.uniform(-1, 1, 6),
        "I": np.arange(6, dtype="int32"),
        "B": np.array([True, False] * 3),
    }
    derived = check_gradients(text, "f", arrays, 1e-6).text
    assert "double(N) d_Y" in derived.replace("float64", "double")


def test_literals_keep_their_type() -> None:
    text = """def f(double(N) X, double(N) W) -> (double(N) Y, Z) {
        Y(i) = 0.1 where i in 0:N
        Y(i) = Y(i) * X(i)
        Z(i) = Y(i) * sin(Y(i)) * fmax(i < N ? 0.3 : W(i), 0.2)
    }"""
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(-1, 1, 5), "W": rng.uniform(-1, 1, 5)}
    check_gradients(text, "f", arrays, 1e-14, wrt="X", save=())
    check_gradients(text, "f", arrays, 1e-14, wrt="X", save=(), sizes={"N": 5})


def test_half_precision() -> None:
    text = "def f(half(M, K) A, half(K, N) B) -> (half(M, N) C) { C(m, n) +=! A(m, k) * B(k, n) }"
    assert "half(M, N) d_C" in grad(text, "f").replace("float16", "half")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((3, 5), (5, 4)))
    check_gradients(text, "f", {"A": a, "B": b}, 2e-3)


@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "taps"),
    sampled(itertools.product([1, 2, 3, 5], [1, 2, 3], [0, 1, 4], [1, 2, 4]), 5),
)
def test_windows(stride: int, dilation: int, padding: int, taps: int) -> None:
    text = f"""def f(double(N) X, double(K) W) -> (Y) {{
        Y(n) +=! (at >= 0 && at < N) ? X(at) * W(k) : 0
            where at = {stride} * n + {dilation} * k - {padding},
            n in 0:(N + 2 * {padding} - {dilation} * (K - 1) - 1 + {stride}) / {stride}
    }}"""
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(-1, 1, 13), "W": rng.uniform(-1, 1, taps)}
    check_gradients(text, "f", arrays)
    check_gradients(text, "f", arrays, sizes={"N": 13, "K": taps})


def test_two_unknowns_in_one_subscript() -> None:
    text = """def f(double(N) X) -> (Y) {
        Y(i, j) = X(2 * i + 3 * j) * (i + j) where i in 0:3, j in 0:3
    }"""
    check_gradients(text, "f", {"X": np.random.default_rng(0).uniform(-1, 1, 12)})


def test_repeated_and_clamped_borders() -> None:
    text = """def f(double(N) X) -> (Left, Around, Half) {
        Left(i) = X(max(i - 1, 0)) * X(i) where i in 0:N
        Around(i) = X((i - 1 + N) % N) where i in 0:N
        Half(i) = X(i / 2) where i in 0:2 * N
    }"""
    check_gradients(text, "f", {"X": np.random.default_rng(0).uniform(-1, 1, 5)})


def test_gradients_of_gradients() -> None:
    text = "def f(double(M, K) A, double(K) B) -> (C) { C(m) +=! sin(A(m, k)) * B(k) * B(k) }"
    rng = np.random.default_rng(0)
    once = grad(text, "f")
    arrays = {"A": rng.uniform(-1, 1, (3, 4)), "B": rng.uniform(-1, 1, 4)}
    check_gradients(once, "f_grad", {**arrays, "d_C": rng.uniform(-1, 1, 3)})


# --- places that data choose ---

CHOSEN = {
    "a row": "O(n, d) = X(I(n), d) * X(I(n), d)",
    "an element of a row": "O(n) = X(n, I(n))",
    "twice": "O(n, d) = sin(X(I(n), d)) * X(J(n), d)",
    "with itself": "O(n, d) = X(I(n), d) * X(n, d)",
    "computed": "O(n) = X((I(n) + J(n)) / 2, I(n) * J(n) % 4)",
    "beside a quotient": "O(n) = X(I(n), n / 2) * X(n, I(n))",
    "beside a number": "O(n) = sin(X(I(n), 3))",
    "beside a guarded neighbour": "O(n) = n > 0 ? X(I(n), n - 1) * X(J(n), n) : 0 where n in 0:4",
    "beside indices of others": "O(n, m) = X(I(n), (n + m) / 2) * X(J(m), 3 - m)",
    "through names": "O(n) = X(r, n) * X(n, r) where i = I(n) + J(n), r = i / 2",
    "of some rows": "O(n) = X(n, I(n)) * X(n, J(n)) where n in 1:3",
    "another way": "O(n, i) = X(I(n), 2 * i) where i in 0:2",
    "beside a diagonal": "O(n, m) = X(n, I(n)) * X(m, m)",
    "of what is made": "Y(n, m) = sin(X(n, m))  O(n) = Y(n, I(n)) * X(0, n)",
    "of what is made elsewhere": "Y(n, m) = sin(X(n, m)) where n in 1:4  O(n) = Y(I(n) + 1, J(n))",
    "under a guard": "O(n) = I(n) > 0 ? X(n, I(n)) : X(n, 0)",
    "summed": "O(d) +=! X(I(n), d) * X(n, J(n))",
    "largest": "O(d) max=! X(I(n), d)",
    "a scatter": "H(I(n), d) +=! X(n, d) * X(n, d)",
    "a scatter through names": "H(r, d) +=! X(n, d) * X(r, d) where i = I(n) + J(n), r = i / 2",
    "a scatter beside an index": "H(I(n), n / 2) +=! X(n, d) * X(n, I(n))",
    "a scatter under a guard": "H(I(n), d) +=! J(n) > 0 ? X(n, d) * X(n, J(n)) : 0",
    "a scatter into what is there": "H(n, d) = X(n, d) H(I(n), d) += sin(X(n, d)) * X(I(n), J(n))",
    "a scatter and a gather": "H(I(n), d) +=! exp(X(n, d)) O(n, d) = H(J(n), d) * X(n, d)",
    "a scatter of the largest": "H(I(n), d) max=! X(n, d)",
    "a scatter of the least": "H(I(n), J(n)) min=! X(n, d)",
    "a changed scatter": "H(I(n), d) +=! X(n, d)  H(n, d) = H(n, d) * H(n, d) * X(n, d)",
    "a changed largest": "H(I(n), d) max=! X(n, d)  H(n, d) = I(n) > 9 ? H(n, d) : X(n, d)",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_places_that_data_choose(name: str) -> None:
    outputs = [o for o in ("Y", "float(4, 4) H", "O") if f"{o.split()[-1]}(" in CHOSEN[name]]
    text = f"""def f(double(4, 4) X, int32(4) I, int32(4) J) -> ({", ".join(outputs)}) {{
        {CHOSEN[name]}
    }}""".replace("float(4, 4) H", "double(4, 4) H")
    rng = np.random.default_rng(0)
    for values in (rng.uniform(-1, 1, (4, 4)), rng.integers(-2, 3, (4, 4)).astype(float)):
        for chosen in (rng.integers(0, 4, (2, 4)), np.zeros((2, 4)), [[0, 1, 1, 2], [2, 2, 0, 1]]):
            at = np.asarray(chosen).astype(np.int32) % (3 if "elsewhere" in name else 4)
            arrays = {"X": values, "I": at[0], "J": at[1]}
            check_gradients(text, "f", arrays)
            check_gradients(text, "f", arrays, save=())


def test_what_stands_beside_such_a_place_is_no_condition() -> None:
    """Which would be asked for all elements of its dimension."""
    for at in ("n / 2", "n + 1", "2", "n % 3"):
        text = f"def f(float(A, B) V, int32(N) K) -> (O) {{ O(n) = V(K(n), {at}) where n in 0:N }}"
        assert _body(text, "f") == f"d_V(K(n), {at}) +=! d_O(n)"


def test_gradients_of_places_that_data_choose_twice() -> None:
    text = "def f(double(V, D) T, int32(N) I) -> (O) { O(n, d) = sin(T(I(n), d)) }"
    once = grad(text, "f")
    assert "d_T(I(n), d) +=! d_O(n, d) * cos(T(I(n), d))" in once
    rng = np.random.default_rng(0)
    arrays = {"T": rng.uniform(-1, 1, (4, 2)), "I": np.array([0, 3, 3], np.int32)}
    check_gradients(once, "f_grad", {**arrays, "d_O": rng.uniform(-1, 1, (3, 2))})


# --- as experts write them ---

SOFTMAX = """def softmax(float(N, D) I) -> (O, most, total) {
    most(n) max=! I(n, d)
    total(n) +=! exp(I(n, d) - most(n))
    O(n, d) = exp(I(n, d) - most(n)) / total(n)
}"""


def test_no_gradient_through_what_is_subtracted_from_all() -> None:
    assert _body(SOFTMAX, "softmax", wanted="O") == (
        "d_total_sum(n) +=! d_O(n, d) * O(n, d)\nd_I(n, d) = (d_O(n, d) - d_total_sum(n)) * O(n, d)"
    )
    x = np.random.default_rng(0).integers(-2, 3, (4, 5)).astype(float)
    check_gradients(in_double(SOFTMAX), "softmax", {"I": x}, wanted="O")
    # What is returned itself has one, and so has what depends on it otherwise.
    assert "most_ties" in _body(SOFTMAX, "softmax")
    check_gradients(in_double(SOFTMAX), "softmax", {"I": x})


@pytest.mark.parametrize(
    ("value", "depends"),
    [
        ("exp(I(n, d) - most(n)) / total(n)", False),
        ("log(total(n)) + most(n) - I(n, d)", False),
        ("rsqrt(total(n) * exp(most(n)) * total(n) * exp(most(n)))", False),
        ("d > 0 ? exp(I(n, d) - most(n)) * exp(most(n)) : 0", False),
        ("max(I(n, d) - most(n), log(total(n))) + most(n)", False),
        ("exp(I(n, d) - most(n)) / (1 + total(n))", True),
        ("exp(I(n, d) - 2 * most(n)) / total(n)", True),
        ("exp(I(n, d) - most(0)) / total(n)", True),
        ("total(n) * total(n) * exp(most(n))", True),
        ("I(n, d) - most(n)", True),
        ("most(n) > 0 ? exp(I(n, d) - most(n)) / total(n) : 0", True),
        ("tanh(most(n)) * total(n) * exp(most(n))", True),
    ],
)
def test_what_outputs_do_not_depend_on(value: str, depends: bool) -> None:
    text = in_double(SOFTMAX).rpartition("O(n, d) = ")[0] + f"O(n, d) = {value} where d in 0:D }}"
    x = np.random.default_rng(0).integers(-2, 3, (4, 5)).astype(float)
    derived = check_gradients(text, "softmax", {"I": x}, wanted="O").text
    assert ("most_ties" in derived) == depends


@pytest.mark.parametrize("update", ["O(n) *= W(n, d)", "O(n) += W(n, d)", "O(n) max= W(n, d)"])
def test_a_maximum_that_is_changed_in_place(update: str) -> None:
    text = f"""def f(double(N, D) X, double(N, D) W) -> (O) {{
        O(n) max=! X(n, d)
        {update}
        O(n) = sin(W(n, 0)) where n in 0:1
    }}"""
    rng = np.random.default_rng(0)
    check_gradients(text, "f", {"X": rng.uniform(-1, 1, (4, 3)), "W": rng.uniform(-1, 1, (4, 3))})


def test_factors_stand_in_front_of_sums() -> None:
    text = "def f(float(N, K) X, float(N) W) -> (Y) { Y(n, k) = X(n, k) / W(n) }"
    assert _body(text, wrt="W", save=()) == (
        "d_W_sum(n) +=! d_Y(n, k) * (X(n, k) / W(n))\nd_W(n) = -d_W_sum(n) / W(n)"
    ).replace("(X(n, k) / W(n))", "X(n, k)").replace("/ W(n)", "/ W(n) / W(n)")
    # Not of a float32 and a float64, nor where only whole numbers are left to be added.
    mixed = "def f(float(N, K) X, double(N) W) -> (Y) { Y(n, k) = X(n, k) / W(n) }"
    assert "_sum" not in grad(mixed, "f")
    whole = "def f(int32(N, K) X, float(N) W) -> (Y) { Y(n, k) = X(n, k) * exp(W(n)) }"
    assert "d_W_sum(n) +=! d_Y(n, k) * X(n, k)" in grad(whole, "f")


def test_what_is_computed_once() -> None:
    text = "def f(float(I, J) S, float(J, E) V) -> (O) { O(i, e) +=! exp(S(i, j)) * V(j, e) }"
    body = _body(text)
    assert "exp_S(i, j) = exp(S(i, j))\n" in body and body.count("exp(") == 1
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    check_gradients(in_double(text), "f", {"S": x, "V": x.T.copy()})
    # Where a condition may keep it from being computed, it stays.
    guarded = text.replace("exp(S(i, j))", "(j > 0 ? exp(S(i, j - 1)) : 0)")
    assert "exp_S" not in grad(guarded, "f")


def _chain(count: int, link: str) -> str:
    """A def of many names, each of which uses the one before twice."""
    names = ", ".join(f"t{k} = {link.replace('t', f't{k - 1}')}" for k in range(1, count + 1))
    return (
        "def f(float(M, N) X, float(N) W) -> (O) "
        f"{{ O(m) +=! t{count} where t0 = X(m, n) * W(n), {names} }}"
    )


@pytest.mark.parametrize("link", ["t + t", "t * t", "t * W(n) / (1 + t)"])
def test_names_that_use_each_other_twice_are_differentiated_once(link: str) -> None:
    short, long = (sum(map(size_of, _right_sides(_chain(count, link)))) for count in (14, 28))
    assert long < 2.3 * short
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(0.9, 1, (2, 3)), "W": rng.uniform(0.9, 1, 3)}
    check_gradients(in_double(_chain(7, link)), "f", arrays, sizes={"M": 2, "N": 3})


@pytest.mark.parametrize(
    ("first", "link"),
    [
        ("X(m, n) > 0.95", "(t && W(n) > 0.95) || (!t && W(n) < 0.97)"),
        ("X(m, n) > 0.95", "t != (t && X(m, n) < 0.97)"),
        ("n < 2", "(t && n > 0) || (!t && m > 0)"),
        # What guards the read after it is known of it, wherever it is stored.
        ("n >= 1 && X(m, n - 1) > 0.95", "n >= 1 && t != (t && W(n - 1) < 0.97)"),
    ],
)
def test_conditions_that_use_each_other_twice_are_written_once(first: str, link: str) -> None:
    def chain(count: int) -> str:
        names = _chain(count, link).partition(", t1 = ")[2]
        value = f"t{count} ? X(m, {'n - 1' if 'n - 1' in first else 'n'}) * W(n) : W(n)"
        head = "def f(float(M, N) X, float(N) W) -> (O)"
        return f"{head} {{ O(m) +=! {value} where n in 0:N, t0 = {first}, t1 = {names}"

    short, long = (sum(map(size_of, _right_sides(chain(count)))) for count in (8, 16))
    assert long < 2.3 * short
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(0.9, 1, (5, 7)), "W": rng.uniform(0.9, 1, 7)}
    check_gradients(in_double(chain(8)), "f", arrays, sizes={"M": 5, "N": 7})


@pytest.mark.parametrize("last", ["t7 : W(n)", "(W(n) > 0.1 ? t7 : 0) : W(n)"])
def test_a_long_name_that_a_condition_leaves_out_passes_nothing_on(last: str) -> None:
    """Where it is infinite, too, as sqrt has it at 0: 0 * inf is no 0."""
    links = ", ".join(f"t{k} = t{k - 1} * t{k - 1} * 0.3 + t{k - 1}" for k in range(1, 8))
    names = f"t0 = sqrt(X(n)), {links}"
    text = f"def f(double(N) X, double(N) W) -> (O) {{ O(n) = X(n) > 0 ? {last} where {names} }}"
    arrays = {"X": np.array([0.0, 0.5, 0.25]), "W": np.array([0.1, 0.2, 0.3])}
    check_gradients(text, "f", arrays)


def _right_sides(text: str) -> list[ast.Expr]:
    (derived,) = parse(grad(text, "f")).defs
    return [s.rhs for s in derived.statements if isinstance(s, ast.Assign)]


def test_a_gradient_of_a_running_sum_is_one() -> None:
    text = "def f(double(N) X) -> (O) { O(i) +=! (j <= i) ? X(j) : 0 where i in 0:N }"
    assert _body(text) == "d_X(j) +=! j <= i ? d_O(i) : 0"
    square = text.replace("X(j)", "X(j) * X(j)").replace("j <= i", "j < i")
    assert _body(square) == (
        "d_X_sum(j) +=! j < i ? d_O(i) : 0 where j in 0:N\n"
        "d_X(j) = N - j - 2 >= 0 ? d_X_sum(j) * 2 * X(j) : 0"
    )
    for each in (text, square, square.replace("j < i", "j > i + 1")):
        check_gradients(each, "f", {"X": np.random.default_rng(0).uniform(-1, 1, 7)})
        (derived,) = check(grad(each, "f")).values()
        sized = infer(derived, {t.name: (7,) for t in derived.inputs})
        assert lower(sized).nests[0].running is not None


def test_a_sum_of_what_another_statement_has() -> None:
    text = "def f(float(N, C) X, float(C) B) -> (O) { O(n, c) = fmax(X(n, c) + B(c), 0) }"
    assert _body(text).endswith("\nd_B(c) +=! d_X(n, c)")


def test_what_is_saved_where_nobody_said() -> None:
    text = """def f(double(N, D) X, double(T, D) Y) -> (O, S, E, Most) {
        S(n, t) +=! X(n, d) * Y(t, d)
        E(n, d) = exp(X(n, d))
        Most(n) max=! S(n, t)
        O(n) +=! sin(S(n, t) - Most(n)) * E(n, d)
    }"""

    def taken(**options: Any) -> set[str]:
        (derived,) = check(grad(text, "f", **options)).values()
        return {t.name for t in derived.inputs} & {"O", "S", "E", "Most"}

    assert taken() == {"S", "E", "Most"}
    assert taken(wanted="O") == {"S", "Most"}  # E is quickly computed again
    assert taken(wanted="O", sizes={"N": 50, "T": 50, "D": 4}) == {"Most"}  # S is large
    assert taken(wanted="O", save=("E",)) == {"E"}
    rng = np.random.default_rng(0)
    arrays = {"X": rng.uniform(-1, 1, (5, 2)), "Y": rng.uniform(-1, 1, (6, 2))}
    check_gradients(text, "f", arrays, wanted="O")
    check_gradients(text, "f", arrays, wanted="O", sizes={"N": 5, "T": 6, "D": 2})


def test_integers_that_are_divided() -> None:
    for factor in ("I(i) / 2", "i / 2", "-(I(i) / 2)", "I(i) * I(i)", "k"):
        rhs = f"X(i) * Z(i) * ({factor})" + " where k = I(i) / 3" * (factor == "k")
        text = f"def f(double(N) X, double(N) Z, int32(N) I) -> (Y) {{ Y(i) = {rhs} }}"
        rng = np.random.default_rng(0)
        arrays = {"X": rng.uniform(-1, 1, 6), "Z": rng.uniform(-1, 1, 6)}
        check_gradients(text, "f", {**arrays, "I": np.arange(1, 7, dtype=np.int32)})


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_range_that_begins_below_0_for_some_sizes(size: int) -> None:
    text = """def f(double(N) X, double(P, M) W, double s) -> (O) {
        O(k, i) = W(N - 1 - i, i + k) * (i >= 0 ? s : 3 * s) where k in 2:3
    }"""
    arrays = {"X": np.ones(size), "W": np.arange(21.0).reshape(3, 7), "s": np.array(0.5)}
    assert "i >= 0 ?" in check_gradients(text, "f", arrays).text


@pytest.mark.parametrize(
    "start", ["(N - 9) / 2", "(N - 9) % 4", "(N > 3 ? 0 - 2 : 1)", "min(N, -1)"]
)
def test_a_formula_that_is_below_0(start: str) -> None:
    text = f"""def f(double(N) X, double s) -> (O) {{
        O(i) = s * (i >= 0 ? s : 3 * s) * X(0) where i in {start}:N
    }}"""
    for size in (5, 6, 8):
        check_gradients(text, "f", {"X": np.ones(size), "s": np.array(0.5)})


@pytest.mark.parametrize("range_", ["0:N%3+1", "0:(N > 3 ? 3 : N)", "0:min(N,M)", "0:N*M/9"])
def test_ranges_that_are_formulas(range_: str) -> None:
    text = f"def f(double(N) X, double(M) Z) -> (Y) {{ Y(i) = X(i) * Z(i) where i in {range_} }}"
    rng = np.random.default_rng(0)
    check_gradients(text, "f", {"X": rng.uniform(-1, 1, 7), "Z": rng.uniform(-1, 1, 6)})


# --- what is asked for, what is refused ---


def test_wanted_outputs() -> None:
    text = """def f(float(N) X) -> (Y, Total) {
        Total +=! X(i)
        Y(i) = X(i) / Total
    }"""
    derived = grad(text, "f", wanted="Y")
    assert "d_Total_2 +=!" in derived.replace("d_Total +=!", "d_Total_2 +=!")
    (checked,) = check(derived).values()
    assert "d_Total" not in [t.name for t in checked.inputs]


def test_a_torch_operator_takes_it() -> None:
    text = """def softmax(float(N, D) I) -> (O, most, total) {
        most(n) max=! I(n, d)
        total(n) +=! exp(I(n, d) - most(n))
        O(n, d) = exp(I(n, d) - most(n)) / total(n)
    }"""
    both = f"{text}\n{grad(text, 'softmax', wanted='O')}"
    op = tcl.torch.op(both, "softmax", backward="softmax_grad", wanted="O")
    x = torch.randn(5, 7, requires_grad=True)
    w = torch.randn(5, 7)
    (ours,) = torch.autograd.grad((op(x) * w).sum(), x)
    (theirs,) = torch.autograd.grad((torch.softmax(x, 1) * w).sum(), x)
    torch.testing.assert_close(ours, theirs)


REFUSED_TEXTS = {
    "is a product of terms, into elements that data": ""
    "def f(float(N) X, int32(N) I) -> (float(9) O) { O(I(n)) *=! X(n) }",
    "reduced by min= into elements that data select, and keeps": ""
    "def f(float(N) X, int32(N) I) -> (float(9) O) { O(I(n)) +=! X(n)  O(I(n)) min= X(n) }",
    "is the max of computed terms, into": ""
    "def f(float(N) X, int32(N) I) -> (float(9) O) { O(I(n)) max=! X(n) * X(n) }",
    "no gradient": "def f(int32(N) X) -> (O) { O(n) = X(n) }",
    "do not depend smoothly on 'X'": ""
    "def f(float(N) X, float(N) Y) -> (O) { O(n) = floor(X(n)) * Y(n) }",
    "lgamma cannot be differentiated": "def f(float(N) X) -> (O) { O(n) = lgamma(X(n)) }",
    "depends on the array that the caller": ""
    "def f(float(N) X) -> (O) { O(n) += X(n)  O(n) = O(n) * O(n) }",
}


@pytest.mark.parametrize("message", REFUSED_TEXTS)
def test_refusals(message: str) -> None:
    text = REFUSED_TEXTS[message]
    wrt = "X" if "'X'" in message else None
    with pytest.raises(ArgumentError, match=re.escape(message)):
        grad(text, "f", wrt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": "Z"}, "wrt= names 'Z', which is not one of the floating-point inputs of f: A, B"),
        ({"wanted": ("X",)}, "wanted= names 'X'"),
        ({"save": "X"}, "save= names 'X'"),
        ({"save": 3}, "save= takes a name or a tuple of names, not 3"),
        *(
            ({"sizes": sizes}, "sizes= has to give every size of f a whole number from 0, and ")
            for sizes in ({"N": 3}, {"M": -1, "K": 1, "N": 1}, {"M": 1.5, "K": 1, "N": 1}, 3)
        ),
    ],
)
def test_arguments(options: dict[str, object], message: str) -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        grad(text, "f", **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="there is no def 'g'; there are: f"):
        grad(text, "g")
