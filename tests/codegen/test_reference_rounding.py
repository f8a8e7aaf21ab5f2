"""The reference's own rounding, by which results may differ more than depth explains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.rounding import UNKNOWN, Rounding
from tcl.codegen.reference import compile_reference, roundings
from tcl.codegen.reference import rounding as rounding_runs
from tcl.codegen.reference.numbers import nudged
from tcl.codegen.reference.rounding import in_float64
from tcl.codegen.reference.sample import WHOLE, all_operations
from tcl.codegen.reference.whole_array import nudged as moved_arrays
from tcl.executors.call_kernels import size
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.types import SCALAR_TYPES
from tcl.grammar.tree.checked import Const
from tcl.grammar.tree.traverse import walk
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

Array = np.ndarray[Any, Any]

SQUASHED = """
def f(float(M, K) A, float(K, N) B) -> (S, T, Place) {
    S(m, n) +=! A(m, k) * B(k, n)
    T(m, n) = 0.1 * tanh(S(m, n))
    Place(m, n) = (S(m, n) > 0) ? 1 : 0
}
"""
"""Sums of which many cancel, though what they are made of is large."""
DTYPES = {"float": np.float32, "double": np.float64}
ONES = np.linspace(1, 2, 100, dtype=np.float32)


def run(source: str, *inputs: Array) -> tuple[Any, list[Array], list[Array]]:
    """The sized def, its zeroed outputs, and what the reference makes of them."""
    sized = size(check(source)["f"], inputs)
    outputs = sized.checked.outputs
    zeros = [np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in outputs]
    expected = [each.copy() for each in zeros]
    compile_reference(sized)(inputs, expected)
    return sized, zeros, expected


@pytest.fixture(params=[False, True], ids=["compiled", "on arrays"], autouse=True)
def by_arrays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of moving everything find the same."""
    if not request.param:
        monkeypatch.setattr(rounding_runs, "_BY_ARRAYS", -1)


@pytest.fixture
def inputs() -> tuple[Array, Array]:
    draw = np.random.default_rng(0)
    a, b = draw.normal(0, 10, (20, 64)), draw.normal(0, 10, (64, 20))
    return a.astype(np.float32), b.astype(np.float32)


def test_the_error_of_a_sum_passes_through_a_saturating_function(
    inputs: tuple[Array, Array],
) -> None:
    """As much is allowed as sums in another order differ by, and no more."""
    sized, zeros, expected = run(SQUASHED, *inputs)
    depth = accumulation_depths(sized)["T"]
    sums, squashed, places = (each.error for each in roundings(sized, inputs, zeros))
    assert sums > squashed > 0
    assert places == 0  # an integer has no rounding
    error = 1e-5  # as of sums that are ten times as large
    other = expected[1] + np.float32(10 * error)
    assert mismatch("T", other, expected[1], depth) is not None
    assert mismatch("T", other, expected[1], depth, Rounding(error)) is None
    wrong = mismatch("T", expected[1] + np.float32(20 * error), expected[1], depth, Rounding(error))
    assert wrong is not None
    assert "(400 of 400 elements differ; " in wrong


@pytest.mark.parametrize("type_", ["float", "double"])
def test_errors_are_known_before_anything_is_compiled(
    type_: str, inputs: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many operations as cepstra of a second of speech take, which Numba compiled for seconds
    and did 25 times with everything moved before a search knew that its first kernel is right."""
    source = SQUASHED.replace("float(", f"{type_}(")
    given = tuple(np.tile(a, (12, 12)).astype(DTYPES[type_]) for a in inputs)
    sized, zeros, expected = run(source, *given)
    wanted = [each.error for each in roundings(sized, given, zeros, expected)]
    monkeypatch.setattr(rounding_runs, "_BY_ARRAYS", 100_000_000)
    monkeypatch.setattr(
        rounding_runs, "compute", lambda *given, **settings: pytest.fail("compiled")
    )
    found = roundings(sized, given, zeros, expected, briefly=True)
    assert not any(each.places.size for each in found)
    for each, error in zip(found, wanted, strict=True):
        # Float64 is known from float32, of which NumPy adds up more terms in a row.
        times = 4 if type_ == "double" else 1 + 1e-6
        assert error / times <= each.error <= error * times


def test_what_numpy_cannot_do_is_known_briefly_too() -> None:
    sized, zeros, expected = run("def f(float(N) A) -> (O) { O(i) = lgamma(A(i)) * 3.3 }", ONES)
    (found,), (wanted,) = (
        roundings(sized, [ONES], zeros, expected, briefly=briefly) for briefly in (True, False)
    )
    assert found.error == wanted.error > 0


def test_runs_are_as_many_as_what_moves_everything_affords(
    inputs: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moves take most of the time of a sum: by the operations of the def there were six pairs."""
    sized, zeros, expected = run(SQUASHED, *inputs)
    monkeypatch.setattr(rounding_runs, "_AFFORDED", 13 * all_operations(sized))
    seeds = set[float]()
    moved = rounding_runs._Runs._moved

    def noted(self: Any, seed: float, offs: Any) -> Any:
        seeds.add(seed)
        return moved(self, seed, offs)

    monkeypatch.setattr(rounding_runs._Runs, "_moved", noted)
    roundings(sized, inputs, zeros, expected)
    assert len(seeds - {0.0}) == 4


def test_an_error_is_that_of_float32_against_float64(inputs: tuple[Array, Array]) -> None:
    sized, zeros, expected = run(SQUASHED, *inputs)
    exact = inputs[0].astype(np.float64) @ inputs[1].astype(np.float64)
    wanted = np.quantile(np.abs(expected[0] - exact), 0.99)
    assert roundings(sized, inputs, zeros)[0].error == pytest.approx(wanted, rel=1e-6)


def test_all_floats_are_wide_and_literals_keep_their_values(inputs: tuple[Array, Array]) -> None:
    wide = in_float64(run(SQUASHED, *inputs)[0])
    checked = wide.checked
    types = [t.type.name for t in (*checked.inputs, *checked.outputs)]
    assert types == ["float64"] * 4 + ["int32"]
    for sized in wide.statements:
        assert sized.statement in checked.statements
        for node in walk(sized.statement.rhs):
            assert node.type.name != "float32"
            if isinstance(node, Const) and node.type.is_float and node.value:
                assert node.value == float(np.float32(0.1))


def test_what_is_little_but_rounding_is_not_right_whatever_it_is(
    inputs: tuple[Array, Array],
) -> None:
    sized, zeros, expected = run(
        "def f(float(M, K) A, float(K, N) B) -> (S, O) "
        "{ S(m, n) +=! A(m, k) * B(k, n)  O(m, n) = sin(1000.0 * S(m, n)) }",
        *inputs,
    )
    depth, rounding = accumulation_depths(sized)["O"], roundings(sized, inputs, zeros)[-1]
    assert rounding.error > 0.02  # 16 times as much would allow zeros
    right = expected[-1]
    for wrong in (zeros[-1], np.roll(right, 1, axis=1), -right, right + np.float32(0.3)):
        assert mismatch("O", wrong, right, depth, rounding) is not None


@pytest.mark.parametrize(
    ("source", "array"),
    [
        ("def f(int32(N) A) -> (O) { O(i) = A(i) * 2 }", np.arange(4, dtype=np.int32)),
        ("def f(half(N) A) -> (O) { O(i) = A(i) * A(i) }", np.arange(4, dtype=np.float16)),
    ],
)
def test_of_other_types_nothing_is_known(source: str, array: Array) -> None:
    sized, zeros, _ = run(source, array)
    assert roundings(sized, (array,), zeros) == (UNKNOWN,)


def test_a_quotient_of_what_cancels_is_right_in_float64() -> None:
    """Products of a kernel are fused with sums: where a determinant is near 0, its reciprocal
    differs by more than sums do."""
    source = """
    def f(double(N, 2, 2) A) -> (O) {
        O(n) = 1 / (A(n, 0, 0) * A(n, 1, 1) - A(n, 0, 1) * A(n, 1, 0))
    }
    """
    a = np.random.default_rng(5).normal(0, 1, (20_000, 2, 2))
    sized, zeros, (right,) = run(source, a)
    (rounding,) = roundings(sized, (a,), zeros)
    assert 0 < rounding.error < 1e-12
    exact = a.astype(np.longdouble)
    determinant = exact[:, 0, 0] * exact[:, 1, 1] - a[:, 0, 1] * a[:, 1, 0]
    fused = np.asarray(1 / determinant, np.float64)
    assert mismatch("O", fused, right, 1) is not None
    assert mismatch("O", fused, right, 1, rounding) is None
    assert mismatch("O", right * (1 + 1e-9), right, 1, rounding) is not None


def fused(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c``, rounded about once."""
    return np.asarray(a.astype(np.longdouble) * b + c, np.float64)


def inverses(a: Array, draw: np.random.Generator) -> Array:
    """1 over the determinant of ``a`` times its transpose (N x 2 x 3), as a kernel may compute it:
    sums in any order, products fused with sums or not."""

    def dot(x: Array, y: Array) -> Array:
        i, j, k = draw.permutation(3)
        two = fused(x[:, j], y[:, j], x[:, i] * y[:, i])
        return fused(x[:, k], y[:, k], two) if draw.random() < 0.5 else two + x[:, k] * y[:, k]

    s, t, u = (dot(a[:, m], a[:, p]) for m, p in ((0, 0), (1, 1), (0, 1)))
    forms = (fused(s, t, -(u * u)), fused(-u, u, s * t), s * t - u * u)
    return np.asarray(1 / forms[draw.integers(3)])


@pytest.mark.parametrize("mixed", [False, True])
def test_every_order_of_what_nearly_cancels_is_right_in_float64(mixed: bool) -> None:
    """Rows that are nearly parallel: all sums are moved alike by what cancels. 200 kernels times
    2,000 elements, none of which is called wrong, also if the def has float32 elsewhere."""
    source = f"""
    def f(double(N, 2, 3) A{", float(N) B" if mixed else ""}) -> (S, O{", P" if mixed else ""}) {{
        S(n, m, p) +=! A(n, m, j) * A(n, p, j)
        O(n) = 1 / (S(n, 0, 0) * S(n, 1, 1) - S(n, 0, 1) * S(n, 0, 1))
        {"P(n) = B(n) * B(n)" if mixed else ""}
    }}
    """
    draw = np.random.default_rng(6)
    a = draw.normal(0, 1, (2_000, 2, 3))
    a[:, 1] = a[:, 0] + a[:, 1] * 10 ** draw.uniform(-3, 0, (2_000, 1))
    more = [a[:, 0, 0].astype(np.float32)] if mixed else []
    sized, zeros, (_, right, *_) = run(source, a, *more)
    depth, rounding = accumulation_depths(sized)["O"], roundings(sized, (a, *more), zeros)[1]
    kernels = [inverses(a, draw) for _ in range(200)]
    assert sum(mismatch("O", each, right, depth) is not None for each in kernels) > 20
    assert [mismatch("O", each, right, depth, rounding) for each in kernels] == [None] * 200
    # Power: an element is wrong by a thousand times what rounding does to it.
    error = np.max(np.abs(np.array(kernels) - right), axis=0)
    error = np.maximum(error, 16 * rounding.error)
    for place in draw.integers(right.size, size=100):
        wrong = right.copy()
        wrong[place] += 1e3 * error[place]
        assert mismatch("O", wrong, right, depth, rounding) is not None


def test_of_a_sample_the_error_is_that_of_its_elements() -> None:
    """Runs that move everything take more operations, so that they sample other elements."""
    draw = np.random.default_rng(9)
    a, b = (draw.normal(0, 1, (720, 720)).astype(np.float32) for _ in "ab")
    source = "def f(float(M, K) A, float(K, N) B) -> (O) { O(m, n) +=! A(m, k) * B(k, n) }"
    sized = size(check(source)["f"], (a, b))
    assert all_operations(sized) > WHOLE
    (rounding,) = roundings(sized, (a, b), [np.zeros((720, 720), np.float32)])
    assert 1e-6 < rounding.error < 1e-4  # of numbers of about 27
    assert len(rounding.places) < 720 * 720 / 100


@pytest.mark.parametrize("type_", ["bfloat16", "float16"])
def test_floats_of_16_bits_may_come_as_their_bits(type_: str) -> None:
    source = f"""
    def f({type_}(N) A, {type_}(N) B) -> ({type_}(N) O, S) {{
        O(i) = {type_}(float(A(i)) * float(B(i)) - 1.0)
        S(i) = tanh(float(O(i)) - float(A(i)))
    }}
    """
    draw, dtype = np.random.default_rng(4), numpy_dtype(SCALAR_TYPES[type_])
    given = [draw.normal(0, 3, 300).astype(dtype) for _ in "AB"]
    zeros = [np.zeros(300, dtype), np.zeros(300, np.float32)]
    sized = size(check(source)["f"], given)
    found = roundings(sized, given, zeros)
    bits = roundings(
        sized, [a.view(np.uint16) for a in given], [zeros[0].view(np.uint16), zeros[1]]
    )
    for one, other in zip(found, bits, strict=True):
        assert one.error == other.error < 1e-5
        np.testing.assert_array_equal(one.places, other.places)


@pytest.mark.parametrize("seed", [0.0, 3e7, -3e7, 1.7e7])
def test_arrays_are_moved_as_numbers_are(seed: float) -> None:
    x = np.random.default_rng(6).normal(0, 1, 100)
    x[:9] = 0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e300, 1, np.float32(0.1)
    with np.errstate(all="ignore"):
        moved = moved_arrays(x, *(np.full(1, each) for each in (1e-9, 1e-10, seed)))
        expected = [nudged(each, 1e-9, 1e-10, seed) for each in x]
    np.testing.assert_array_equal(moved, expected)
    scalars = (np.array(each) for each in (2.5, 1e-9, 0.0, seed))
    assert np.ndim(moved_arrays(*scalars)) == 0


def test_what_is_rounded_is_moved_up_by_one_run_and_down_by_the_next() -> None:
    x = np.random.default_rng(7).normal(0, 1, 1_000)
    moved = np.array([[nudged(each, 1e-9, 0.0, seed) for each in x] for seed in (3e7, -3e7)])
    times = (moved / x - 1) / 1e-9
    assert np.allclose(times[0], -times[1], atol=1e-5)
    assert np.all((np.abs(times) > 2 - 1e-5) & (np.abs(times) < 6 + 1e-5))
    assert abs(np.mean(np.sign(times[0]))) < 0.1
    assert nudged(np.float64(0.5), 1e-9, 0.0, 3e7) == 0.5  # nothing rounds it
    assert 1.9e-9 <= abs(nudged(np.float64(0.5), 0.0, 1e-9, 3e7) - 0.5) <= 6.1e-9
    assert nudged(x[0], 1e-9, 1e-9, 0.0) == x[0]


def test_what_cancels_is_moved_by_other_numbers() -> None:
    """Else the sum of both would be moved by nothing; likewise powers of two by different seeds."""
    x = np.abs(np.random.default_rng(9).normal(0, 1, 1_000))
    left = np.array([nudged(each, 1e-9, 0.0, 3e7) + nudged(-each, 1e-9, 0.0, 3e7) for each in x])
    assert np.mean(np.abs(left) > 1e-9 * x) > 0.9
    seeds = 1e7 * np.sqrt(np.arange(2, 102))
    moves = {round(abs(nudged(np.float64(4.0), 0.0, 1e-9, s) - 4.0) / 1e-11) for s in seeds}
    assert len(moves) > 50


def test_six_pairs_of_runs_leave_few_elements_unexplained() -> None:
    """Of two equal roundings that cancel, the worst case: the part of elements that are further off
    than what rounding is said to explain, by number of pairs."""
    draw, count = np.random.default_rng(8), 1_000_000
    off = (draw.uniform(-0.5, 0.5, (count, 4)) * 2 ** -draw.random((count, 4))).sum(axis=1)
    most, missed = np.zeros(count), []
    for _ in range(6):
        times = draw.uniform(2, 6, (count, 2)) * draw.choice([-1, 1], (count, 2))
        most = np.maximum(most, np.abs(times.sum(axis=1)))
        missed.append(np.mean(np.abs(off) > 2 * most))
    assert 0.03 < missed[0] < 0.05
    assert 0.002 < missed[1] < 0.004
    assert missed[5] < 1e-5  # 0 of 4 million were found


def test_data_that_lead_elsewhere_in_float64_tell_nothing() -> None:
    """A sum that is less than 1 in float32, and 1 in float64, is another element: here none."""
    source = """
    def f(float(N) A, float(M) B) -> (S, O) {
        S(i) +=! A(j) where i in 0:1
        O(i) = B(int32(S(i) * 3)) where i in 0:1
    }
    """
    a = np.array([1 - 2**-24, *[2**-26] * 4], np.float32)
    b = np.arange(3, dtype=np.float32)
    sized, zeros, expected = run(source, a, b)
    assert expected[1] == 2
    assert roundings(sized, (a, b), zeros) == (UNKNOWN, UNKNOWN)


def two_decimals(draw: np.random.Generator, *shape: int) -> Array:
    return np.round(draw.normal(0, 1, shape), 2).astype(np.float32)


DECIDED = {
    "floor of a function": """
        def f(float(N, M) A, float(N, M) B) -> (O) { O(i, j) = floor(exp(B(i, j)) * 100.0) }""",
    "sign of a sum": """
        def f(float(N, M) A, float(N, M) B) -> (S, O) {
            S(i) +=! A(i, j)
            O(i) = (S(i) > 0.0) ? 1.0 : -1.0
        }""",
    "reciprocal of a sum": """
        def f(float(N, M) A, float(N, M) B) -> (S, O) { S(i) +=! B(i, j)  O(i) = 1.0 / S(i) }""",
    "products": """
        def f(float(N, M) A, float(N, M) B) -> (O) {
            O(i, j) = (A(i, j) * A(i, 0) > A(i, 1) * A(i, 2)) ? 1 : 0
        }""",
}
"""Functions that jump, or have a pole: of some elements rounding decides."""


@pytest.mark.parametrize(
    ("name", "type_"),
    [(name, "float") for name in DECIDED] + [(name, "double") for name in [*DECIDED][1:]],
)
def test_what_rounding_decides_may_be_either(name: str, type_: str) -> None:
    draw, dtype = np.random.default_rng(1), DTYPES[type_]
    a = np.round(draw.normal(0, 1, (20_000, 8)), 2).astype(dtype)
    b = draw.normal(0, 1, (20_000, 8)).astype(dtype)
    sized, zeros, expected = run(DECIDED[name].replace("float(", f"{type_}("), a, b)
    depth, right = accumulation_depths(sized)["O"], expected[-1]
    rounding = roundings(sized, (a, b), zeros)[-1]
    assert 0 < len(rounding.places) <= right.size / 20
    other = right.copy()
    other.flat[rounding.places] += (rounding.off / 2).astype(other.dtype)
    assert mismatch("O", other, right, depth) is not None
    assert mismatch("O", other, right, depth, rounding) is None
    other.flat[rounding.places[0]] += other.dtype.type(
        2 * rounding.off[0] + 1
    )  # more than rounding explains
    assert "(1 of " in str(mismatch("O", other, right, depth, rounding))
    elsewhere = np.setdiff1d(np.arange(right.size), rounding.places)[0]
    other = right.copy()
    other.flat[elsewhere] += 1 + np.abs(right).max()
    assert "(1 of " in str(mismatch("O", other, right, depth, rounding))


def test_the_other_order_of_a_sum_is_right_where_rounding_decides() -> None:
    """As a kernel with lanes computes it: that is refused where the reference alone counts."""
    a = two_decimals(np.random.default_rng(2), 50_000, 8)
    sized, zeros, expected = run(DECIDED["sign of a sum"], a, a)
    lanes = (a[:, :4] + a[:, 4:]).sum(axis=1, dtype=np.float32)
    signs = np.where(lanes > 0, 1, -1).astype(np.float32)
    assert mismatch("O", signs, expected[1], 8) is not None
    assert mismatch("O", signs, expected[1], 8, roundings(sized, (a, a), zeros)[1]) is None


def test_what_nothing_rounds_is_not_decided_by_rounding() -> None:
    """Halves of whole numbers: ``floor`` of them is what it is."""
    whole = np.random.default_rng(3).integers(0, 300, 20_000).astype(np.float32)
    source = "def f(float(N) A) -> (S, O) { S(i) = A(i) * 3  O(i) = floor(S(i) / 256.0) }"
    sized, zeros, _ = run(source, whole)
    assert not any(r.places.size for r in roundings(sized, (whole,), zeros))


@pytest.mark.parametrize("scale", [0.2, 65536.0])
def test_rounded_sums_are_right_one_step_beside_where_rounding_decides(scale: float) -> None:
    """Of integers as large as these rounding may decide about most: a kernel with another order of
    the sum was called wrong. It differs in few; one that truncates differs in half of them."""
    draw = np.random.default_rng(5)
    a = draw.integers(-32768, 32768, (20_000, 24)).astype(np.float32) * np.float32(0.2 / scale)
    b = draw.normal(0, 1, 24).astype(np.float32)
    source = f"""
    def f(float(N, K) A, float(K) B) -> (S, O) {{
        S(n) +=! A(n, k) * B(k)
        O(n) = int32(round({scale} * S(n)))
    }}
    """
    sized, zeros, expected = run(source, a, b)
    rounding, right = roundings(sized, (a, b), zeros)[1], expected[1]
    assert right.size / 100 < len(rounding.places)
    sums = (a[:, :12] * b[:12]).sum(1, dtype=np.float32) + (a[:, 12:] * b[12:]).sum(1)
    scaled = np.float32(scale) * sums
    other = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled).astype(np.int32)
    assert mismatch("O", other, right, 24) is not None
    assert mismatch("O", other, right, 24, rounding) is None
    for wrong in (scaled.astype(np.int32), right + 1, np.where(np.arange(20_000) == 7, 9, right)):
        found = str(mismatch("O", wrong.astype(np.int32), right, 24, rounding))
        assert f"instead of {right[int(found.split('(')[1].split(')')[0])]}" in found


def test_what_rounding_decides_about_many_elements_is_judged_as_all_else() -> None:
    a = two_decimals(np.random.default_rng(4), 5_000, 8)
    source = "def f(float(N, M) A) -> (O) { O(i, j) = int32(A(i, j) * 100.0) }"
    sized, zeros, expected = run(source, a)
    (rounding,) = roundings(sized, (a,), zeros)
    assert not rounding.places.size
    other = expected[0].copy()
    other[0, 0] -= 1
    assert mismatch("O", other, expected[0], 1, rounding) is not None


def test_the_error_of_few_that_are_large_is_not_that_of_all() -> None:
    """Quotients of sums of exponentials, some of which cancel, in rows that differ by orders of
    magnitude: most are off by far less than the largest are."""
    source = """
    def f(double(N, T) X, double(T) W, double(T) V) -> (E, Below, Above, O) {
        E(n, t) = exp(X(n, t))
        Below(n) +=! W(t) * E(n, t)
        Above(n) +=! V(t) * E(n, t)
        O(n) = 1e4 * Above(n) / Below(n)
    }
    """
    draw = np.random.default_rng(7)
    inputs = (draw.normal(0, 1, (2_000, 40)).cumsum(1), *draw.normal(0, 1, (2, 40)))
    sized, zeros, (e, *_, right) = run(source, *inputs)
    depth, rounding = accumulation_depths(sized)["O"], roundings(sized, inputs, zeros)[3]
    below, above = (e * each for each in inputs[1:])
    orders = [draw.permutation(40) for _ in range(100)]
    kernels = [1e4 * above[:, p].sum(1) / below[:, p].sum(1) for p in orders]
    assert any(mismatch("O", each, right, depth) is not None for each in kernels)
    assert [mismatch("O", each, right, depth, rounding) for each in kernels] == [None] * 100


def test_a_value_that_is_written_over_is_moved_by_its_own_error() -> None:
    """A small sum in 200 is off by a part of itself that its logarithm shows; the logarithm's own
    error, as an error of the sum, would be larger than the sum."""
    draw = np.random.default_rng(0)
    a = draw.normal(0, 1e-3, (2000, 201)).astype(np.float32)
    b = draw.normal(0, 1e-3, 201).astype(np.float32)
    source = """
def f(float(M, K) A, float(K) B) -> (L) {
    L(m) +=! A(m, k) * B(k)
    L(m) = log(fmax(L(m), 1e-10))
}
"""
    sized, zeros, (expected,) = run(source, a, b)
    sums = np.zeros(2000, np.float32)
    for k in reversed(range(201)):
        sums += a[:, k] * b[k]
    actual = np.log(np.maximum(sums, np.float32(1e-10)))
    (found,) = roundings(sized, (a, b), zeros, [expected])
    depth = accumulation_depths(sized)["L"]
    assert mismatch("L", actual, expected, depth) is not None
    assert mismatch("L", actual, expected, depth, found) is None
    actual[np.argmax(expected)] *= 1.001
    assert mismatch("L", actual, expected, depth, found) is not None


def test_values_that_are_written_over_are_found_wherever_they_are() -> None:
    draw = np.random.default_rng(1)
    a = draw.normal(0, 1, (30, 20)).astype(np.float32)
    source = """
def f(float(M, N) A) -> (S, T) {
    S(m) += A(m, n)
    S(m) = exp(S(m))
    T(m, n) = A(m, n) / S(m)
    T(m, n) = T(m, n) * T(m, n) - S(m)
    T(m, n) = sqrt(fabs(T(m, n)))
}
"""
    sized = size(check(source)["f"], (a,))
    begun = [np.ones(30, np.float32), np.zeros((30, 20), np.float32)]
    expected = [each.copy() for each in begun]
    compile_reference(sized)((a,), expected)
    found = roundings(sized, (a,), begun, expected)
    assert len(found) == 2
    for rounding, values in zip(found, expected, strict=True):
        assert 0 < rounding.error < 1e-4 * np.abs(values).max()
