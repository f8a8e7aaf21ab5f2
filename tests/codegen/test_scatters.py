"""Scatters: data say where a reduction writes. Beside NumPy's ``ufunc.at``."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import check_equal
from compiled_kernels import compile_cpu
from cpu_kernels import fenced, plain, poisoned, reference, run, sized_of
from cuda_checks import (
    Work,
    case_of,
    check_cases,
    compile_modules,
    run_case,
    why_not,
    work_of_text,
)
from interpreted_stages import stages
from loopir_interpreter import interpret
from sampling import sampled, swept
from scatters import OPERATORS, Scattered, random_scatter

import tcl
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import whole_array
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import SCALAR_TYPES
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT = MappingOptions("mlp")
TYPES = pytest.mark.parametrize("name", SCALAR_TYPES)


def check_close(case: Scattered, made: Array, note: str) -> None:
    got, want = plain(made).astype(np.float64), plain(case.expected).astype(np.float64)
    with np.errstate(invalid="ignore"):
        wrong = ~((got == want) | (np.abs(got - want) <= case.error))
    assert not wrong.any(), f"{note}\n{case.text}\n{made}\n{case.expected}"


def check_backends(case: Scattered, *, compiled: bool) -> None:
    """The reference, by Numba too if ``compiled``, NumPy's formulation, and the CPU's kernels."""
    sized = sized_of(case.text, *case.inputs)
    for jit in (False, True) if compiled else (False,):
        made = poisoned(sized)
        compile_reference(sized, jit=jit)(case.inputs, made)
        check_close(case, made[0], f"reference, jit {jit}")
    made = poisoned(sized)
    whole_array(sized)(case.inputs, made)
    check_close(case, made[0], "whole arrays")
    for options in (DEFAULT, MappingOptions("naive"), MappingOptions("pointwise")):
        made = poisoned(sized)
        compile_cpu(sized, options, device=replace(host_cpu(), threads=2))(case.inputs, made)
        check_close(case, made[0], f"CPU, {options}")


def check_stages(case: Scattered) -> None:
    sized = sized_of(case.text, *case.inputs)
    names = [t.name for t in sized.checked.inputs]
    for name, stage in stages(sized, DEFAULT, replace(host_cpu(), threads=2)):
        made = poisoned(sized)
        arrays = dict(zip(names, case.inputs, strict=True))
        interpret(stage, {**arrays, "H": made[0]}, {})
        check_close(case, made[0], f"{name}\n{show(stage)}")


@pytest.mark.parametrize("seed", swept(range(14), range(14, 40)))
def test_random_scatters(seed: int) -> None:
    # Numba takes longer than all the rest, so that a part of them is compiled by it.
    check_backends(random_scatter(seed), compiled=seed % 4 == 0)


@pytest.mark.parametrize("seed", sampled(range(24), 2))
def test_stages_of_random_scatters(seed: int) -> None:
    check_stages(random_scatter(seed, points=15))


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_on_a_gpu() -> None:
    cases = [random_scatter(seed) for seed in range(12)]
    cases += [random_scatter(seed, points=2000, extents=3) for seed in range(12, 18)]
    works = []
    for case in cases:
        sized = sized_of(case.text, *case.inputs)
        works.append(Work(case.text, sized, case.inputs, (case.expected,)))
    check_cases(case_of(w, DEFAULT) for w in works).none()


@TYPES
def test_every_type(name: str) -> None:
    for op in OPERATORS:
        case = random_scatter(len(name), name, op, extents=4)
        sized = sized_of(case.text, *case.inputs)
        for threads in (1, 4):
            made = poisoned(sized)
            device = replace(host_cpu(), threads=threads)
            compile_cpu(sized, DEFAULT, device=device)(case.inputs, made)
            check_close(case, made[0], f"{threads} threads")


LARGE = {
    "histogram": "float(N, D) W) -> (float(64) H) { H(I(n)) +=! n != 5 ? W(n, 0) : 0 }",
    "counts": "float(N, D) W) -> (int32(64, 3) H) { H(I(n), n % 3 + 0 * I(n)) +=! 1 }",
    "rows": "float(N, D) W) -> (float(64, D) H) { H(I(n), d) +=! W(n, d) }",
    "many rows": "float(N, D) W) -> (float(200000, D) H) { H(3000 * I(n), d) +=! W(n, d) }",
    "highest": "float(N, D) W) -> (float(64) H) { H(I(n)) max=! W(n, d) }",
    "halves": "float(N, D) W) -> (half(64, D) H) { H(I(n), d) *=! half(W(n, d) + 0.5) }",
}
"""Defs that are divided into copies, into results and not at all."""


def large(name: str) -> tuple[SizedDef, tuple[Array, ...]]:
    rng = np.random.default_rng(1)
    points = 40_009 if name != "many rows" else 1_009
    places = rng.integers(0, 64, points).astype(np.int32)
    places[: points // 3] = 63
    inputs = places, rng.random((points, 3 if name != "rows" else 70)).astype(np.float32)
    return sized_of(f"def f(int32(N) I, {LARGE[name]}", *inputs), inputs


@pytest.mark.parametrize("name", LARGE)
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    sized, inputs = large(name)
    expected = poisoned(sized)
    compile_reference(sized)(inputs, expected)
    seen = set()
    for threads in (1, 2, 4):
        kernel = compile_cpu(sized, DEFAULT, device=replace(host_cpu(), threads=threads))
        for _ in range(34):
            made = poisoned(sized)
            kernel(inputs, made)
            seen.add(made[0].tobytes())
        check_equal(sized, made, expected, f"{threads} threads")
    assert len(seen) == 1


def test_parts_have_equally_many_points() -> None:
    """So that nothing asks where a part ends; the last points have a nest of their own."""
    rng = np.random.default_rng(3)
    bins, weights = rng.integers(0, 50, 100_003, np.int32), rng.normal(size=100_003).astype("f")
    text = """def f(int32(N) I, float(N) W, float(M) Z) -> (float(M) H) {
        H(I(n)) +=! W(n) > 0 ? W(n) : 0 }"""
    inputs = bins, weights, np.zeros(50, np.float32)
    shown = show(schedule(sized_of(text, *inputs), DEFAULT, replace(host_cpu(), threads=1)))
    assert "s0.n in 0:25000" in shown and "s0.rest.n in 100000:100003" in shown
    assert "<" not in shown
    (made,) = run(text, *inputs, options=DEFAULT)
    expected = np.bincount(bins, np.maximum(weights, 0), 50)
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_rows_that_results_read_apart_are_read_in_tiles() -> None:
    """The first cache keeps lines of a few rows for the next points; columns lie in the same
    lines."""
    device = known_cpus.find("Cascade Lake")
    assert device is not None
    bins, rows = np.arange(41, dtype=np.int32) % 7, np.ones((173, 41), np.float32)
    for read, x, tiles in (("t, n", rows, True), ("n, t", rows.T.copy(), False)):
        text = f"""def f(float(A, B) X, int32(N) Bin) -> (float(173, 7) H) {{
            H(t, Bin(n)) +=! X({read}) where t in 0:173, n in 0:N }}"""
        sized = sized_of(text, x, bins)
        assert ("t.tile x 22 step 8" in show(schedule(sized, DEFAULT, device))) == tiles
        np.testing.assert_array_equal(run(text, x, bins)[0][:, :6], np.full((173, 6), 6))


def test_long_sums_keep_their_digits() -> None:
    ones = np.full(1_000_003, 0.1, np.float32)
    inputs = np.zeros(ones.size, np.int32), ones
    text = "def f(int32(N) I, float(N) W) -> (float(2) H) { H(I(n)) +=! W(n) }"
    (made,) = run(text, *inputs, options=DEFAULT)
    assert abs(made[0] / (0.1 * ones.size) - 1) < 2e-6


OUTSIDE = {
    "int32": (
        64,
        "index 64 is out of range for dimension 0 of tensor H, which has indices 0 to 63",
    ),
    "int8": (-1, "index -1 is out of range"),
    "uint64": (2**64 - 1, f"index {2**64 - 1} is out of range"),
}


@pytest.mark.parametrize("kind", OUTSIDE)
@pytest.mark.parametrize("points", [1, 100, 100_003])
def test_places_outside_are_refused_and_nothing_is_written_there(kind: str, points: int) -> None:
    place, message = OUTSIDE[kind]
    rng = np.random.default_rng(points)
    places = rng.integers(0, 64, points).astype(kind)
    places[points // 2] = place
    inputs = places, np.ones((points, 3), np.float32)
    text = f"def f({kind}(N) I, float(N, D) W) -> (float(64, D) H) {{ H(I(n), d) +=! W(n, d) }}"
    sized = sized_of(text, *inputs)
    for after in (False, True):
        output = fenced((64, 3), np.float32, after)
        with pytest.raises(IndexError, match=re.escape(message)):
            compile_cpu(sized, DEFAULT, device=replace(host_cpu(), threads=2))(inputs, [output])
    with pytest.raises(IndexError, match=re.escape(message)):
        compile_reference(sized)(inputs, poisoned(sized))


@pytest.mark.parametrize("varying", [(), ("N",)])
def test_places_through_several_names(varying: tuple[str, ...]) -> None:
    """Each made of the one before, the first of data."""
    text = """def f(int32(N) I, float(N) X) -> (int32(4) C, float(4, 2) H, int32(4) G) {
        C(r) +=! 1 where q = I(n), r = q / 4
        H(int32(s), n % 2) +=! X(n) where d = X(n), s = d * d
        G(r) +=! r < 3 ? 1 : 0 where q = I(n) - 12, r = q + 12
    }"""
    F = tcl.define(text, varying=varying)
    for n in (1, 7, 40_009):
        rng = np.random.default_rng(n)
        places, x = rng.integers(0, 16, n).astype("i4"), rng.uniform(0, 1.99, n).astype("f4")
        made = F.f(places, x)
        h = np.zeros((4, 2))
        np.add.at(h, ((x * x).astype(int), np.arange(n) % 2), x)
        np.testing.assert_array_equal(made[0], np.bincount(places // 4, minlength=4))
        np.testing.assert_allclose(made[1], h, rtol=1e-5)
        np.testing.assert_array_equal(made[2], [*np.bincount(places, minlength=4)[:3], 0])
        for wrong in (16, -4):
            places[n // 2] = wrong
            message = f"index {wrong // 4} is out of range for dimension 0 of tensor C"
            with pytest.raises(IndexError, match=message):
                F.f(places, x)
            if n < 40_009:
                sized = sized_of(text, places, x)
                with pytest.raises(IndexError, match=message):
                    compile_reference(sized, jit=False)((places, x), poisoned(sized))


def test_a_guard_leaves_out_its_place() -> None:
    """Whatever the place is, and the value."""
    text = (
        "def f(int32(N) I, float(N) W) -> (float(3) H, float(3) L) {\n"
        "    H(I(n)) +=! I(n) >= 0 ? W(n) : 0\n"
        "    L(I(n - 1)) max=! n > 0 && I(n - 1) >= 0 ? W(n) : log(0.0) where n in 0:N\n}"
    )
    inputs = np.array([0, -1, 2, 2], np.int32), np.array([1, np.nan, 2, 4], np.float32)
    for made in (run(text, *inputs, options=DEFAULT), reference(text, *inputs)):
        np.testing.assert_array_equal(made[0], [1, 0, 6])
        assert np.isnan(made[1][0]) and list(made[1][1:]) == [-np.inf, 4]


@pytest.mark.parametrize(
    ("type_", "wider", "value"),
    [
        ("int8", "int32", "I(n) >= 0 ? W(n) : 0"),
        ("float", "double", "I(n) >= 0 ? W(n) : 0"),
        ("int32", "int32", "I(n) < 0 ? 0 : W(n)"),
    ],
)
def test_a_guard_is_seen_through_conversions_and_the_other_way_round(
    type_: str, wider: str, value: str
) -> None:
    text = f"def f(int32(N) I, {type_}(N) W) -> ({wider}(3) H) {{ H(I(n)) +=! {value} }}"
    weights = np.array([1, 2, 3, 4], {"float": "f4"}.get(type_, type_))
    inputs = np.array([0, -2_000_000_000, 2, 0], np.int32), weights
    for made in (run(text, *inputs, options=DEFAULT), reference(text, *inputs)):
        np.testing.assert_array_equal(made[0], [5, 0, 3])


@pytest.mark.parametrize(("n", "d"), [(20, 3), (2047, 16), (2049, 16), (4097, 17)])
@pytest.mark.parametrize("more", ["", " && W(I(n), 0) > 0", " && W(n, 0) > 0 && sqrt(W(n, 1)) > 0"])
def test_a_guard_of_rows(n: int, d: int, more: str) -> None:
    """Whose lanes count or do not together."""
    rng = np.random.default_rng(n)
    rows = rng.integers(-1, 5, n).astype(np.int32)
    w = rng.integers(-3, 4, (n, d)).astype(np.float32)
    text = (
        "def f(float(N, D) W, int32(N) I) -> (float(5, D) H) {\n"
        f"    H(I(n), d) +=! I(n) >= 0{more} ? W(n, d) : 0\n}}"
    )
    counts = rows >= 0
    if "W(I(n)" in more:
        counts &= w[rows, 0] > 0
    elif more:
        counts &= (w[:, 0] > 0) & (w[:, 1] > 0)
    expected = np.zeros((5, d), np.float32)
    np.add.at(expected, rows[counts], w[counts])
    np.testing.assert_array_equal(run(text, w, rows, options=DEFAULT)[0], expected)


def test_no_elements() -> None:
    text = "def f(int32(N) I, float(N) W, float(B) E) -> (float(B) H) { H(I(n)) +=! W(n) }"
    nothing, one = np.zeros(0, np.int32), np.zeros(1, np.int32)
    for b, made in ((0, []), (2, [0, 0])):
        found = run(text, nothing, nothing.astype("f"), np.zeros(b, "f"), options=DEFAULT)
        np.testing.assert_array_equal(found[0], made)
    with pytest.raises(IndexError, match="which is empty"):
        run(text, one, one.astype("f"), np.zeros(0, "f"), options=DEFAULT)


@pytest.mark.parametrize("varying", [(), ("D",)])
def test_rows_without_elements(varying: tuple[str, ...]) -> None:
    text = (
        "def f(int32(N) I, float(N, D) W, float(B) E) -> (float(B, D) H) { H(I(n), d) +=! W(n, d) }"
    )
    F = tcl.define(text, varying=varying)
    for n in (0, 1, 5_000):
        made = F.f(np.zeros(n, np.int32), np.zeros((n, 0), "f"), np.zeros(3, "f"))
        assert made.shape == (3, 0)
    case = work_of_text(text, np.zeros(5, np.int32), np.zeros((5, 0), "f"), np.zeros(3, "f"))
    if not why_not():
        check_cases([case_of(case, DEFAULT)]).none()


def test_sizes_that_vary() -> None:
    text = (
        "def f(int32(N) I, float(N, D) W, float(B) E) -> (float(B, D) H, int32(B) C) {\n"
        "    H(I(n), d) +=! n != 2 ? W(n, d) : 0\n    C(I(n)) +=! 1\n}"
    )
    many = tcl.define(text, varying=("N", "B"))
    for n, b in ((1, 3), (7, 70), (1000, 5), (40_009, 33)):
        rng = np.random.default_rng(n)
        places, values = rng.integers(0, b, n).astype(np.int32), rng.random((n, 3), np.float32)
        made = many.f(places, values, np.zeros(b, np.float32))
        kept = np.arange(n) != 2
        expected = np.zeros((b, 3))
        np.add.at(expected, places[kept], values[kept])
        np.testing.assert_allclose(made[0], expected, rtol=1e-5)
        np.testing.assert_array_equal(made[1], np.bincount(places, minlength=b))
        with pytest.raises(IndexError):
            many.f(places + b, values, np.zeros(b, np.float32))


ROWS = """def f(int32(N) I, float(N, D) W, float(B) E) -> (float(B) H, float(B) M, float(N) R) {
    H(I(n)) +=! I(n) >= 0 ? q * q : 0 where d in 0:D, q = W(n, d) - 0.5
    M(b) = 0.25
    M(I(n)) max= I(n) >= 0 ? W(n, d) : log(0.0)
    R(n) +=! W(n, d)
}"""


def sums_of_rows(places: Array, w: Array, count: int) -> tuple[Array, Array]:
    sums, highest = np.zeros(count), np.full(count, 0.25)
    kept = places >= 0
    np.add.at(sums, places[kept], ((w[kept] - 0.5) ** 2).sum(1))
    if w.shape[1]:
        np.maximum.at(highest, places[kept], w[kept].max(1))
    return sums, highest


@pytest.mark.parametrize("varying", [False, True])
def test_points_that_update_the_same_element_are_reduced_before(varying: bool) -> None:
    made_for = tcl.define(ROWS, varying=("N", "D", "B")) if varying else tcl.define(ROWS)
    for n, d, b in ((1, 1, 2), (7, 70, 3), (1000, 5, 9), (401, 33, 33), (5, 0, 2), (0, 4, 1)):
        rng = np.random.default_rng(n)
        places, w = rng.integers(-1, b, n).astype(np.int32), rng.random((n, d), np.float32)
        made = made_for.f(places, w, np.zeros(b, np.float32))
        for got, want in zip(made, sums_of_rows(places, w, b), strict=False):
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=f"{n} {d} {b}")
        if n and d:
            with pytest.raises(IndexError):
                made_for.f(places + b + 1, w, np.zeros(b, np.float32))


@pytest.mark.parametrize(
    "statement",
    [
        "C(J(n)) +=! X(n) where k in 0:3, t = X(I(n))",
        "C(J(n)) +=! X(n) where k in 0:2, t = X(I(n) + k)",
        "C(int32(p)) +=! X(n) where p = exp(X(n)), t = X(I(n))",
        "C(int32(p)) +=! X(n) where k in 0:3, p = exp(X(n)), t = X(I(n))",
    ],
)
def test_a_name_that_nothing_uses_is_computed_at_all_points(statement: str) -> None:
    """Also where the update, or what comes before it, is in a nest of its own."""
    text = f"def f(float(N) X, int32(N) I, int32(N) J) -> (float(4) C) {{ {statement} }}"
    inputs = np.arange(4, dtype="f4") / 4, np.array([0, 1, 9, 2], "i4"), np.arange(4, dtype="i4")
    message = "index 9 is out of range for dimension 0 of tensor X"
    with pytest.raises(IndexError, match=message):
        tcl.define(text).f(*inputs)
    with pytest.raises(IndexError, match=message):
        tcl.reference(text, "f", *inputs)
    if not why_not():
        case = case_of(work_of_text(text, *inputs), DEFAULT)
        (emulated,) = compile_modules([case.module])
        with pytest.raises(IndexError, match=message):
            run_case(case, emulated, "random")


def test_what_reduces_them_is_a_nest_of_its_own() -> None:
    """Unless each counts or does not."""
    types = "int32(N) I, float(N, D) W, float(B) E) -> (float(B) H)"
    found = []
    for value in ("W(n, d)", "d > 2 ? W(n, d) : 0"):
        text = f"def f({types} {{ H(b) = E(b)\n H(I(n)) += {value} }}"
        sized = sized_of(
            text, *(np.zeros(s, k) for s, k in (((9,), "i4"), ((9, 5), "f4"), (3, "f4")))
        )
        found.append(".terms" in show(schedule(sized, DEFAULT, host_cpu())))
    assert found == [True, False]


@pytest.mark.parametrize(
    ("place", "value", "ahead"),
    [
        ("min(int32(4 * log2(X(n))), 8)", "1", True),
        ("min(int32(4 * log2(X(n))), 8)", "X(n) > 2 ? X(n) : 0", True),
        ("min(int32(4 * X(n)), 8)", "1", False),
        ("min(int32(4 * log2(X(P(n)))), 8)", "1", False),
    ],
)
def test_functions_for_places_are_called_before_updates(
    place: str, value: str, ahead: bool
) -> None:
    """In lanes, and not where that could look beyond a tensor in vain."""
    text = f"""def f(float(N) X, int32(N) P) -> (float(9) H) {{
        H(b) +=! {value} where b = {place}, n in 0:N }}"""
    inputs = np.linspace(1, 4, 1001, dtype=np.float32), np.arange(1001, dtype=np.int32)
    made = schedule(sized_of(text, *inputs), DEFAULT, host_cpu())
    assert any(s.name.startswith("s0.b") for s in made.spaces) == ahead
    got, want = run(text, *inputs, options=DEFAULT), reference(text, *inputs)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)


@pytest.mark.parametrize(("points", "ahead"), [(2800, True), (2900, False)])
def test_what_is_computed_before_updates_takes_little_memory(points: int, ahead: bool) -> None:
    """A place of eight bytes for each pair of points may take far more than these."""
    text = """def f(float(N) X) -> (float(9) H) {
        H(b) +=! 1 where n in 0:N, m in 0:N, b = min(int32(4 * log2(X(n) + X(m))), 8) }"""
    made = schedule(sized_of(text, np.ones(points, np.float32)), DEFAULT, host_cpu())
    assert any(s.name.startswith("s0.b") for s in made.spaces) == ahead


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_points_of_rows_on_a_gpu() -> None:
    rng = np.random.default_rng(5)
    works = []
    for n, d in ((70, 33), (300, 3)):
        places, w = rng.integers(-1, 9, n).astype(np.int32), rng.random((n, d), np.float32)
        works.append(work_of_text(ROWS, places, w, np.zeros(9, np.float32)))
    check_cases(case_of(w, DEFAULT) for w in works).none()


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
@pytest.mark.parametrize("value", ["X(d, k)", "I(d) > 3 ? X(d, k) : 0"])
def test_rows_that_each_have_a_place_of_their_own_on_a_gpu(value: str) -> None:
    """No loop is around their threads, and each has what it computes the place with."""
    types = "int32(D) I, float(D, K) X) -> (float(D, 9, K) H)"
    text = f"def f({types} {{ H(d, q, k) +=! {value} where q = I(d) }}"
    rng = np.random.default_rng(8)
    works = []
    for d, k in ((4, 3), (70, 33), (3, 700)):
        places = rng.integers(0, 9, d).astype(np.int32)
        works.append(work_of_text(text, places, rng.random((d, k), np.float32)))
    check_cases(case_of(w, DEFAULT) for w in works).none()


def test_options_are_refused() -> None:
    """What no scatter can have; the rest of a def has its own."""
    sized, _ = large("rows")
    for options in (
        MappingOptions().tile(8),
        MappingOptions().vectorize(8),
        MappingOptions().nest(0).register(2),
    ):
        with pytest.raises(OptionsError, match="data select where it writes"):
            schedule(sized, options, host_cpu())


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_places_outside_are_found_on_a_gpu() -> None:
    """By whoever owns the first ones, whatever the type."""
    for kind, (place, message) in OUTSIDE.items():
        places = np.arange(100).astype(kind) % 64
        places[70] = place
        check_found_on_a_gpu(places, 64, message)


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
@pytest.mark.parametrize("extent", [3001, 5001])
@pytest.mark.parametrize("beyond", [0, 40, 1500, 3999])
def test_places_that_the_last_owners_would_have_are_outside(extent: int, beyond: int) -> None:
    """5001 elements have owners of two each, who could have 8192. What is outside is written to the
    first element, which is the first owner's alone."""
    places = np.arange(200, dtype=np.int32) % 100
    places[70] = extent + beyond
    check_found_on_a_gpu(places, extent, f"index {extent + beyond} is out of range")


def check_found_on_a_gpu(places: Array, extent: int, message: str) -> None:
    kind = places.dtype
    text = f"def f({kind}(N) I, float(N) W) -> (float({extent}) H) {{ H(I(n)) +=! W(n) }}"
    inputs = places, np.ones(places.size, np.float32)
    sized = sized_of(text, *inputs)
    case = case_of(Work(text, sized, inputs), DEFAULT)
    (emulated,) = compile_modules([case.module])
    with pytest.raises(IndexError, match=re.escape(message)):
        run_case(case, emulated, "random")


BESIDE = """def f(int32(N) At, float(N, D) X, float(D, N) Y) -> (C, float(50, D) H, S, R) {
    C(n, m) +=! X(n, d) * Y(d, m)
    H(At(n), d) +=! C(n, 3) > 0 ? C(n, 3) * X(n, d) : 0
    S(d) +=! H(b, d)
    H(At(n), d) max= X(n, d)
    R(n, m) = C(n, m) + S(2) * H(At(m), 1)
}"""


def candidates_of(space: MappingSpace | GpuMappingSpace, count: int) -> Iterator[MappingOptions]:
    """Drawn from a search's space."""
    rng = random.Random(count)
    drawn = (space.space.sample(rng) for _ in range(count))
    return (space.to_options(config) for config in drawn if config is not None)


def test_beside_other_statements() -> None:
    """Which a search gives other loops, in chunks that several share."""
    rng = np.random.default_rng(2)
    places = rng.integers(0, 50, 60).astype(np.int32)
    x, y = rng.random((60, 20), np.float32), rng.random((20, 60), np.float32)
    work = work_of_text(BESIDE, places, x, y)
    device = replace(host_cpu(), threads=2)
    tried = 0
    on_cpu = MappingSpace(lower(work.sized, cpu_layouts(work.sized)), device)
    for options in (DEFAULT, *candidates_of(on_cpu, 8)):
        made = poisoned(work.sized)
        with contextlib.suppress(OptionsError):
            compile_cpu(work.sized, options, device=device)(work.inputs, made)
            check_equal(work.sized, made, work.expected, str(options))
            tried += 1
    assert tried > 3
    if why_not() is None:
        cases = []
        space = GpuMappingSpace(lower(work.sized, gpu_layouts(work.sized)), H200)
        for options in (DEFAULT, *candidates_of(space, 3)):
            with contextlib.suppress(OptionsError):
                cases.append(case_of(work, options))
        check_cases(cases).none()
