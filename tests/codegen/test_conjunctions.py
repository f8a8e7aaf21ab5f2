"""Counts of conjunctions: products of their sides are added, where these are operands apart."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import Array, reference, run, same_bits
from nests import sized

from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan

INPUTS = "bool(B, I) X, bool(B, J) Y, bool(B) M, uint8(B, I) U, bool(I, J) W"
SHAPES = (37, 19), (37, 23), (37,), (37, 19), (19, 23)


def added(value: str) -> ir.Value:
    text = f"{INPUTS}) -> (int32(I, J) O) {{ O(i, j) +=! {value} }}"
    program = lower(sized(text, *SHAPES))
    return program.nests[0].point.value


@pytest.mark.parametrize(
    ("value", "factors"),
    [
        ("X(b, i) && Y(b, j)", ("X(b, i)", "Y(b, j)")),
        ("X(b, i) && Y(b, j) ? 1 : 0", ("X(b, i)", "Y(b, j)")),
        ("M(b) && X(b, i) && Y(b, j)", ("M(b) && X(b, i)", "Y(b, j)")),
        ("X(b, i) && (!Y(b, j) && M(b))", ("X(b, i) && M(b)", "!Y(b, j)")),
        ("U(b, i) > 3 && Y(b, j) && U(b, i) < 99", ("U(b, i) > 3 && U(b, i) < 99", "Y(b, j)")),
    ],
)
def test_sides_with_dimensions_of_their_own_are_multiplied(
    value: str, factors: tuple[str, str]
) -> None:
    one, other = (f"int32({f})" for f in factors)
    assert added(value) == added(f"{one} * {other}")


@pytest.mark.parametrize(
    "value",
    [
        "X(b, i) && M(b) && Y(0, j) ? b : 0",  # no count
        "X(b, i) && W(i, j)",  # only one side is reduced
        "X(b, i) && Y(b, j) && W(i, j)",  # one side has the dimensions of both
        "i < j && X(b, i) && Y(b, j)",  # loops may go by indices
        "X(b, i) && (j > 0 ? Y(b, j - 1) : M(b))",  # a read that may be outside
        "X(b, i) && exp(float(U(b, j > 9 ? 9 : j))) < 2",  # a call may be left out
        "X(b, i) || Y(b, j)",
    ],
)
def test_other_counts_stay_what_they_are(value: str) -> None:
    found = added(value)
    assert not (isinstance(found, ir.Binary) and found.op == "*")


@pytest.mark.parametrize("rows", [False, True])
def test_counts_have_dot_products(rows: bool) -> None:
    x, y = ("X(i, b)", "Y(j, b)") if rows else ("X(b, i)", "Y(b, j)")
    inputs = "bool(I, B) X, bool(J, B) Y" if rows else "bool(B, I) X, bool(B, J) Y"
    shapes = [(2003, 101), (2003, 64)]
    text = f"{inputs}) -> (O) {{ O(i, j) +=! {x} && {y} }}"
    own = sized(text, *(s[::-1] if rows else s for s in shapes))
    device = find("znver4")
    assert device is not None
    made = plan(own, MappingOptions("mlp"), device)
    assert any((options.dot or ())[2:] == (4,) for options in made.options.values())


@pytest.mark.parametrize("preset", ["naive", "mlp"])
@pytest.mark.parametrize("type_", ["int8", "int32", "int64", "uint16", "half", "float", "double"])
@pytest.mark.parametrize("value", ["X(b, i) && Y(b, j)", "M(b) && U(b, i) > 77 && !Y(b, j)"])
def test_counts_of_all_types(value: str, type_: str, preset: str) -> None:
    """And whether there is any."""
    rng = np.random.default_rng(3)
    x, y, m, w = (rng.integers(0, 2, s).astype(bool) for s in (*SHAPES[:3], SHAPES[4]))
    u = rng.integers(0, 256, SHAPES[3], np.uint8)
    text = f"""def f({INPUTS}) -> (O, P, Q) {{
        O(i, j) +=! {type_}({value})
        P(i, j) max=! {type_}({value})
        Q(i, j) max=! {value} }}"""
    found: list[Array] = run(text, x, y, m, u, w, options=MappingOptions(preset))
    expected = reference(text, x, y, m, u, w)
    assert all(map(same_bits, found, expected))
    one, other = (x, y) if value[0] == "X" else (m[:, None] & (u > 77), ~y)
    assert (found[0] == one.T.astype(int) @ other).all()


def test_what_is_added_to_results_that_are_there() -> None:
    """0.0 is, where no condition holds, and makes -0.0 0.0."""
    none, z = np.zeros((5, 9), bool), np.full((9, 9), -0.0, np.float32)
    text = """def f(bool(B, I) X, bool(B, J) Y, float(I, J) Z) -> (O) {
        O(i, j) = Z(i, j)
        O(i, j) += X(b, i) && Y(b, j) ? 1.0 : 0.0 }"""
    found: list[Array] = run(text, none, none, z, options=MappingOptions("mlp"))
    assert all(map(same_bits, found, reference(text, none, none, z)))


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("type_", ["float32", "int32", "float64", "int64"])
@pytest.mark.parametrize("rows", [65, 69])
def test_the_first_of_64_lanes_are_compared_twice(rows: int, type_: str, dimension: int) -> None:
    text = f"""def f({type_}(M, N) X, {type_}(N, M) Y) -> (O, P) {{
        O(m) +=! X(m, n) > 0 && X(m, n) != 2
        P(m) +=! Y(n, m) > 0 && Y(n, m) != 2
    }}"""
    values = np.random.default_rng(1)
    inputs = [values.integers(-2, 4, s).astype(type_) for s in ((rows, 67), (67, rows))]
    options = MappingOptions().vectorize(64, dimension=dimension)
    for actual, expected in zip(
        run(text, *inputs, options=options), reference(text, *inputs), strict=True
    ):
        assert same_bits(actual, expected)
