"""The reference backend: what statements, types, casts, guards and checks mean."""

from __future__ import annotations

import itertools
import operator
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from cpu_kernels import POISON, Array, poisoned, sized_of
from sampling import sampled

from tcl.codegen.common.dtypes import numpy_dtype, scalar_type_of
from tcl.codegen.reference import compile_reference
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import ALIASES, SCALAR_TYPES

BOTH = pytest.mark.parametrize("jit", [True, False], ids=["compiled", "interpreted"])


def each_way(names: Iterable[str], every: int) -> pytest.MarkDecorator:
    """Interpreted, and, where Numba takes longer than all the rest, a part of them compiled."""
    plain = [pytest.param(name, False, id=f"{name}-interpreted") for name in names]
    return pytest.mark.parametrize(
        ("name", "jit"), [*plain, *sampled(((name, True) for name in names), every)]
    )


def run(text: str, *inputs: Array, jit: bool = True, unchecked: bool = False) -> list[Array]:
    """Outputs of the one def of ``text``, from arrays filled with ``POISON``."""
    sized = sized_of(text, *inputs)
    outputs = poisoned(sized)
    compile_reference(sized, jit=jit, unchecked=unchecked)(inputs, outputs)
    return outputs


def same_bits(a: Array, other: Any) -> bool:
    b = np.asarray(other)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


STEP = """
def f(float(N, N) A) -> (O, P) {
    O(y, x) = A((y + 1) % N, x) + A(y, (x + 1) % N) + A((y + N - 1) % N, x) + A(y, (x + N - 1) % N)
    P(y, x) = A((y + 1) % N, x) - A(y, (x + 1) % N) + A((y + N - 1) % N, x) - A(y, (x + N - 1) % N)
}
"""


@pytest.mark.parametrize(
    ("text", "n", "before", "after"),
    [
        # Half a second, and more than one, each: in 1.4 s Numba has started and compiled both.
        (STEP, 150, 0, 2),
        (STEP, 260, 2, 2),
        # A fourth of a second, and more than two; and nearly nothing.
        ("def f(float(N, N) A) -> (B, C) { B(m) +=! A(m, n)  C(m) = B(m) }", 1000, 0, 1),
        ("def f(float(N, N) A) -> (B, C) { B(m) +=! A(m, n)  C(m) = B(m) }", 3000, 1, 1),
        # A tenth of a second, and half of one.
        ("def f(float(N, N) A, float(N, N) B) -> (O) { O(i, j) +=! A(i, k) * B(k, j) }", 70, 0, 0),
        ("def f(float(N, N) A, float(N, N) B) -> (O) { O(i, j) +=! A(i, k) * B(k, j) }", 120, 0, 1),
    ],
)
def test_numba_compiles_what_the_interpreter_would_take_longer_for(
    text: str, n: int, before: int, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where points were counted, steps of a grid took 3 s in the interpreter, for their
    subscripts. ``before``, ``after``: statements that it compiles, and once it has started."""
    sized = sized_of(text, *[np.zeros((n, n), np.float32)] * text.count("float("))
    for count, started in ((before, False), (after, True)):
        texts = list[str]()

        def compile_(text: str, arguments: object, texts: list[str] = texts) -> object:
            texts.append(text)
            return print

        fake = lru_cache(compile_)
        if started:
            fake("", ())
        monkeypatch.setattr("tcl.codegen.reference.compiled._compile", fake)
        compile_reference(sized)
        assert len(texts) - started == count


# Statements


@BOTH
def test_matrix_product(jit: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 7)), rng.random((7, 3))
    text = "def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    (c,) = run(text, a, b, jit=jit)
    np.testing.assert_allclose(c, a @ b, rtol=1e-14)


def test_a_reduction_without_initialisation_starts_from_what_is_stored() -> None:
    text = "def f(float(N,K) A, float(N) B) -> (C) { C(n) = B(n)\n C(n) += A(n,k) }"
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    (c,) = run(text, a, np.array([10, 20], np.float32))
    np.testing.assert_array_equal(c, [13, 32])


def test_the_callers_output_is_the_start_of_an_uninitialised_reduction() -> None:
    sized = sized_of("def f(float(N,K) A) -> (C) { C(n) += A(n,k) }", np.ones((2, 3)))
    c = np.array([1, 2], np.float32)
    compile_reference(sized, jit=True)([np.ones((2, 3), np.float32)], [c])
    np.testing.assert_array_equal(c, [4, 5])


def test_in_place_statements_run_in_order() -> None:
    text = """def f(float(N) A) -> (O) {
        O(n) = A(n) * 2
        O(n) = O(n) + 1
        O(n) = O(n) * O(n)
    }"""
    (o,) = run(text, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(o, (np.arange(4) * 2 + 1) ** 2)


@pytest.mark.parametrize("kind", ["float32", "int8", "uint16", "int64", "bool", "float16"])
@pytest.mark.parametrize(("op", "identity"), [("+", 0), ("*", 1), ("min", 2), ("max", -2)])
def test_an_empty_reduction_gives_the_identity(kind: str, op: str, identity: int) -> None:
    dtype = np.dtype(kind)
    value: Any = identity
    if abs(identity) == 2:
        if dtype.kind == "f":
            value = identity * np.inf
        elif dtype.kind == "b":
            value = identity > 0
        else:
            value = np.iinfo(dtype).max if identity > 0 else np.iinfo(dtype).min
    form = f"{op}=!"
    text = f"def f({kind}(N,K) A) -> (C) {{ C(n) {form} A(n,k) }}"
    (c,) = run(text, np.zeros((3, 0), dtype))
    np.testing.assert_array_equal(c, np.full(3, value, dtype))


def test_empty_outputs_and_empty_inputs() -> None:
    text = "def f(float(N,K) A) -> (C, D) { C(n) +=! A(n,k)\n D(n,k) = A(n,k) + 1 }"
    c, d = run(text, np.zeros((0, 4), np.float32))
    assert c.shape == (0,)
    assert d.shape == (0, 4)


@BOTH
def test_rank_zero_tensors(jit: bool) -> None:
    text = "def f(float(N) A, float s) -> (t) { t +=! A(i) * s }"
    (t,) = run(text, np.arange(5, dtype=np.float32), np.array(2, np.float32), jit=jit)
    assert t.shape == ()
    assert t[()] == 20


def test_origins() -> None:
    """A range that starts at 2 writes element 0, and reads back from it."""
    text = """def f(float(N) A) -> (B, C) {
        B(i) = A(i) where i in 2:5
        C(i) = B(i) * 10 where i in 3:5
    }"""
    a = np.arange(8, dtype=np.float32)
    b, c = run(text, a)
    np.testing.assert_array_equal(b, [2, 3, 4])
    np.testing.assert_array_equal(c, [30, 40])


def test_only_the_written_box_changes() -> None:
    text = "def f(float(N) A) -> (B) { B(i) = A(i)\n B(i) = 0.0 where i in 1:3 }"
    (b,) = run(text, np.arange(1, 6, dtype=np.float32))
    np.testing.assert_array_equal(b, [1, 0, 0, 4, 5])


@BOTH
def test_more_dimensions_than_python_nests_loops(jit: bool) -> None:
    outer, inner = [f"a{k}" for k in range(11)], [f"b{k}" for k in range(12)]
    sizes = ",".join(f"S{k}" for k in range(23))
    read, written = ",".join(outer + inner), ",".join(outer)
    text = f"def f(float({sizes}) x) -> (O) {{ O({written}) +=! x({read}) }}"
    shape = [2, 1, 1, 2, 1, 3, 1, 1, 2, 3, 2] + [1, 2] * 6
    x = np.random.default_rng(1).integers(0, 9, shape).astype(np.float32)
    (o,) = run(text, x, jit=jit)
    np.testing.assert_array_equal(o, x.sum(axis=tuple(range(11, 23))))


# Strides and arguments


def test_any_strides() -> None:
    rng = np.random.default_rng(2)
    text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    a = np.broadcast_to(rng.random(7).astype(np.float32), (5, 7))
    b = rng.random((3, 14)).astype(np.float32)[::-1, ::2].T
    frame = np.full((2, 3, 10), POISON, np.float32)
    c = frame[1, :, ::-2].T
    compile_reference(sized_of(text, a, b), jit=True)([a, b], [c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert (frame[0] == POISON).all()
    assert (frame[1, :, ::2] == POISON).all()


def test_unaligned_arrays() -> None:
    record = np.zeros(4, np.dtype([("pad", "u1"), ("x", "f8")]))
    record["x"] = [1, 2, 3, 4]
    assert not record["x"].flags.aligned
    (o,) = run("def f(double(N) A) -> (O) { O(i) = A(i) + 1 }", record["x"])
    np.testing.assert_array_equal(o, [2, 3, 4, 5])


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [np.zeros(3, "f4")], "f has 1 inputs; 0 arrays were given"),
        ([np.zeros(4, "f4")], [np.zeros(3, "f4")], r"input A has to have shape \(3,\)"),
        ([np.zeros(3, "f8")], [np.zeros(3, "f4")], "input A has to be an array of float32"),
        ([np.zeros(3, ">f4")], [np.zeros(3, "f4")], "input A has to be an array of float32"),
        ([np.zeros(3, "f4")], [np.broadcast_to(np.float32(0), 3)], "output O is read only"),
    ],
)
def test_arguments_that_do_not_fit(inputs: list[Array], outputs: list[Array], message: str) -> None:
    kernel = compile_reference(
        sized_of("def f(float(N) A) -> (O) { O(i) = A(i) }", np.zeros(3, np.float32))
    )
    with pytest.raises(ArgumentError, match=message):
        kernel(inputs, outputs)


# Types


@BOTH
def test_every_type_is_copied_exactly(jit: bool) -> None:
    raw = np.random.default_rng(3).integers(0, 256, 8 * 64, dtype=np.uint8)
    given: dict[str, Array] = {}
    for name in [*SCALAR_TYPES, *ALIASES]:
        t = SCALAR_TYPES[ALIASES.get(name, name)]
        dtype = numpy_dtype(t)
        assert scalar_type_of(dtype) == t
        values = (raw[:64] & 1).astype(bool) if t.is_bool else raw.view(dtype)[:64]
        given[name] = np.where(values == values, values, values.dtype.type(0))  # NaN's payload
    inputs = ", ".join(f"{name}(N) A{k}" for k, name in enumerate(given))
    outputs = ", ".join(f"O{k}" for k in range(len(given)))
    body = " ".join(f"O{k}(i) = A{k}(i)" for k in range(len(given)))
    text = f"def f({inputs}) -> ({outputs}) {{ {body} }}"
    for found, array in zip(run(text, *given.values(), jit=jit), given.values(), strict=True):
        assert same_bits(found, array)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def edges(name: str) -> list[int]:
    low, high = SCALAR_TYPES[name].limits
    near = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 100, high // 2, high - 1, high}
    return sorted(v for v in near if low <= v <= high)


def wrapped(value: int, name: str) -> int:
    low, high = SCALAR_TYPES[name].limits
    return (value - low) % (high - low + 1) + low


def quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": quotient,
    "%": lambda a, b: a - b * quotient(a, b) if b else 0,
}
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@each_way(INTEGERS, 3)
def test_integer_arithmetic(name: str, jit: bool) -> None:
    """Wrapping, truncating division, 0 for division by 0, comparisons, over the edges of every
    type."""
    pairs = list(itertools.product(edges(name), repeat=2))
    a, b = (np.array(column, name) for column in zip(*pairs, strict=True))
    outputs = [f"O{k}" for k in range(len(OPERATIONS) + len(COMPARISONS) + 3)]
    forms = ["min(A(i), B(i))", "max(A(i), B(i))", "-A(i)"]
    forms += [f"A(i) {op} B(i)" for op in (*OPERATIONS, *COMPARISONS)]
    body = "\n".join(f"{o}(i) = {e}" for o, e in zip(outputs, forms, strict=True))
    text = f"def f({name}(N) A, {name}(N) B) -> ({', '.join(outputs)}) {{ {body} }}"
    results = run(text, a, b, jit=jit)
    functions: list[Callable[[int, int], int]] = [min, max, lambda x, y: -x, *OPERATIONS.values()]
    for form, function, result in zip(forms, functions, results, strict=False):
        expected = [wrapped(function(x, y), name) for x, y in pairs]
        assert result.dtype == np.dtype(name)
        assert result.tolist() == expected, form
    for compare, result in zip(COMPARISONS.values(), results[-len(COMPARISONS) :], strict=True):
        assert same_bits(result, compare(a, b))


@each_way([n for n in SCALAR_TYPES if n not in INTEGERS], 2)
def test_casts_to_integers_truncate_saturate_and_zero_nan(name: str, jit: bool) -> None:
    values = [0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128, 255.5, 256, -129, 3e9, -3e9, 1e15, 1e19]
    values += [2.0**31, 2.0**63, -(2.0**63), 2.0**64, 2.0**63 * 1.5, 1e30, -1e30, np.inf, -np.inf]
    with np.errstate(over="ignore"):
        a = np.array([*values, np.nan]).astype(numpy_dtype(SCALAR_TYPES[name]))
    outputs = ", ".join(f"o_{n}" for n in INTEGERS)
    body = "\n".join(f"o_{n}(i) = {n}(A(i))" for n in INTEGERS)
    results = run(f"def f({name}(N) A) -> ({outputs}) {{ {body} }}", a, jit=jit)
    for n, result in zip(INTEGERS, results, strict=True):
        low, high = SCALAR_TYPES[n].limits
        for x, got in zip(a.astype(np.float64).tolist(), result.tolist(), strict=True):
            clipped = 0 if np.isnan(x) else min(max(x, low - 1), high + 1)
            assert got == min(max(int(clipped), low), high), (n, x)


@each_way(INTEGERS, 3)
def test_casts_between_integers_wrap(name: str, jit: bool) -> None:
    a = np.array(edges(name), name)
    outputs = ", ".join(f"o_{n}" for n in [*INTEGERS, "bool"])
    body = "\n".join(f"o_{n}(i) = {n}(A(i))" for n in [*INTEGERS, "bool"])
    *results, truth = run(f"def f({name}(N) A) -> ({outputs}) {{ {body} }}", a, jit=jit)
    for n, result in zip(INTEGERS, results, strict=True):
        assert result.tolist() == [wrapped(int(v), n) for v in a]
    assert same_bits(truth, a != 0)


@BOTH
def test_integers_are_rounded_once_on_their_way_to_floats(jit: bool) -> None:
    # In float64 first, these would become ties and round the wrong way in float32 and bfloat16.
    values = [2**62 + 2**38 + 1, -(2**62) - 2**38 - 1, 2**62 + 2**54 + 1, 2**53 + 1, 2**63 - 1, 5]
    a = np.array(values, np.int64)
    text = """def f(int64(N) A) -> (o, h, d) {
        o(i) = float32(A(i))
        h(i) = bfloat16(A(i))
        d(i) = float64(A(i))
    }"""
    o, h, d = run(text, a, jit=jit)
    assert o.tolist() == [2**62 + 2**39, -(2**62) - 2**39, 2**62 + 2**54, 2**53, 2**63, 5]
    rounded = [2**62, -(2**62), 2**62 + 2**55, 2**53, 2**63, 5]
    assert h.astype(np.float64).tolist() == rounded
    assert same_bits(d, a.astype(np.float64))


def test_bools() -> None:
    a = np.array([[1, 1], [1, 0], [0, 0]], bool)
    text = """def f(bool(N,K) A) -> (count, lo, hi, no) {
        count(n) +=! A(n,k)
        lo(n) min=! A(n,k)
        hi(n) max=! A(n,k)
        no(n,k) = !A(n,k)
    }"""
    count, lo, hi, no = run(text, a)
    assert same_bits(count, a.sum(1, dtype=np.int32))
    assert same_bits(lo, a.all(1))
    assert same_bits(hi, a.any(1))
    assert same_bits(no, ~a)


@BOTH
def test_nan_in_comparisons_and_extrema(jit: bool) -> None:
    a = np.array([np.nan, 1, np.nan, 1, 2], np.float32)
    b = np.array([1, np.nan, np.nan, 2, 1], np.float32)
    text = """def f(float(N) A, float(N) B) -> (lo, hi, flo, fhi, lt, eq, ne, m, M, t) {
        lo(i) = min(A(i), B(i))
        hi(i) = max(A(i), B(i))
        flo(i) = fmin(A(i), B(i))
        fhi(i) = fmax(A(i), B(i))
        lt(i) = A(i) < B(i)
        eq(i) = A(i) == A(i)
        ne(i) = A(i) != A(i)
        m min=! A(i)
        M max=! B(i)
        t(i) = bool(A(i))
    }"""
    lo, hi, flo, fhi, lt, eq, ne, m, largest, t = run(text, a, b, jit=jit)
    np.testing.assert_array_equal(lo, np.minimum(a, b))
    np.testing.assert_array_equal(hi, np.maximum(a, b))
    np.testing.assert_array_equal(flo, np.fmin(a, b))
    np.testing.assert_array_equal(fhi, np.fmax(a, b))
    np.testing.assert_array_equal(lt, a < b)
    np.testing.assert_array_equal(eq, a == a)
    np.testing.assert_array_equal(ne, a != a)
    assert np.isnan(m)
    assert np.isnan(largest)
    assert t.all()


def test_float_remainder_and_division() -> None:
    a = np.array([5.5, -5.5, 5.5, 1, 1, -1, 0, np.inf], np.float32)
    b = np.array([2, 2, -2, 0, np.inf, 0, 0, 1], np.float32)
    text = "def f(float(N) A, float(N) B) -> (r, q) { r(i) = A(i) % B(i)\n q(i) = A(i) / B(i) }"
    r, q = run(text, a, b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(r, np.fmod(a, b))
        np.testing.assert_array_equal(q, a / b)


def test_float32_arithmetic_is_not_widened() -> None:
    a = np.random.default_rng(4).random(1000).astype(np.float32)
    (o,) = run("def f(float(N) A) -> (O) { O(i) = (A(i) + 0.1) * A(i) - A(i) / 3 }", a)
    assert same_bits(o, (a + np.float32(0.1)) * a - a / np.float32(3))


# 16-bit floats


@pytest.mark.parametrize("jit", [True])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_16_bit_float_is_read_and_written(name: str, jit: bool) -> None:
    dtype = numpy_dtype(SCALAR_TYPES[name])
    bits = np.arange(2**16, dtype=np.uint16)
    wide, back = run(
        f"def f({name}(N) A) -> (W, B) {{ W(i) = float32(A(i))\n B(i) = A(i) }}",
        bits.view(dtype),
        jit=jit,
    )
    expected = bits.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(wide, expected)
    number = ~np.isnan(expected)
    assert same_bits(wide[number], expected[number])
    assert same_bits(back.view(np.uint16)[number], bits[number])
    assert np.isnan(back.astype(np.float32)[~number]).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_rounding_to_16_bits(name: str, source: str) -> None:
    """Midpoints and their neighbours, subnormals and overflow included: nearest, ties to even."""
    dtype, wide = numpy_dtype(SCALAR_TYPES[name]), np.dtype(source).type
    infinity = np.uint16({"float16": 0x7C00, "bfloat16": 0x7F80}[name])
    bits = np.arange(infinity, dtype=np.uint16)
    lower = bits.view(dtype).astype(np.float64)
    step = np.diff(lower, append=2 * lower[-1] - lower[-2])
    upper = lower + step
    middle = ((lower + upper) / 2).astype(wide)
    below, above = np.nextafter(middle, wide(0)), np.nextafter(middle, wide(np.inf))
    text = f"def f({source}(N) A) -> (O) {{ O(i) = {name}(A(i)) }}"
    even = bits + (bits & 1)
    for values, expected in ((below, bits), (middle, even), (above, bits + 1)):
        for sign in (0, 0x8000):
            (o,) = run(text, -values if sign else values)
            assert (o.view(np.uint16) == expected + sign).all()


def test_float64_is_rounded_to_float16_once() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-40], np.float64)  # a tie in float32, not in float64
    (o,) = run("def f(double(N) A) -> (O) { O(i) = float16(A(i)) }", x)
    assert o[0] == np.float16(1 + 2.0**-10)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_reductions_accumulate_in_float32_and_round_once(name: str) -> None:
    dtype = numpy_dtype(SCALAR_TYPES[name])
    a = np.full(5000, 1, dtype)  # 16-bit sums would stick at 2048 or 256
    (s,) = run(f"def f({name}(N) A) -> (s) {{ s +=! A(i) }}", a)
    assert s == np.array(5000).astype(dtype)
    b = np.random.default_rng(5).random(300).astype(dtype)
    (p,) = run(f"def f({name}(N) A) -> (p) {{ p +=! A(i) * A(i) }}", b)
    total = np.float32(0)
    for x in b.astype(np.float32):
        total = total + x * x
    assert p == np.array(total).astype(dtype)


def test_an_explicit_cast_to_16_bits_rounds() -> None:
    a = np.array([0.1], np.float32)
    text = "def f(float(N) A) -> (O) { O(i) = float32(float16(A(i))) }"
    (o,) = run(text, a)
    assert o[0] == a.astype(np.float16).astype(np.float32)[0] != a[0]


# Lazy sides, guards, checks


@BOTH
def test_padding_by_a_guard(jit: bool) -> None:
    text = """def f(float(H) I) -> (O) {
        O(h) = (h - 1 >= 0 && h - 1 < H) ? I(h - 1) : 5.0 where h in 0:H
    }"""
    (o,) = run(text, np.arange(4, dtype=np.float32), jit=jit)
    np.testing.assert_array_equal(o, [5, 0, 1, 2])


LOOKUP = "def f(float(E,D) LUT, {0}(N) I) -> (O) {{ O(n, d) = LUT(I(n), d) }}"


@each_way(["uint8", "int8", "int32", "uint32", "int64", "uint64"], 2)
def test_data_dependent_subscripts(name: str, jit: bool) -> None:
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    index = np.array([9, 0, 3], name)
    (o,) = run(LOOKUP.format(name), table, index, jit=jit)
    np.testing.assert_array_equal(o, table[index])


@BOTH
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int32", 10), ("int32", -1), ("uint8", 255), ("int64", 2**62), ("int64", -(2**63)),
        ("uint64", 2**64 - 1), ("uint64", 2**63), ("uint64", 10), ("uint32", 2**32 - 1),
    ],
)  # fmt: skip
def test_a_subscript_out_of_range(kind: str, value: int, jit: bool) -> None:
    table = np.zeros((10, 2), np.float32)
    index = np.array([3, value, 11], kind)
    sentence = (
        f"index {value} is out of range for dimension 0 of tensor LUT, which has indices 0 to 9"
    )
    with pytest.raises(IndexError) as found:
        run(LOOKUP.format(kind), table, index, jit=jit)
    assert str(found.value) == sentence


def test_a_subscript_into_an_empty_tensor() -> None:
    with pytest.raises(IndexError, match="dimension 0 of tensor LUT, which is empty"):
        run(LOOKUP.format("int32"), np.zeros((0, 2), np.float32), np.zeros(3, np.int32))


def test_the_check_respects_origins() -> None:
    text = """def f(float(N) A, int32(K) I) -> (B, C) {
        B(i) = A(i) where i in 2:5
        C(k) = B(I(k))
    }"""
    a = np.arange(8, dtype=np.float32)
    _, c = run(text, a, np.array([4, 2, 3], np.int32))
    np.testing.assert_array_equal(c, [4, 2, 3])
    with pytest.raises(IndexError, match=r"index 1 .* of tensor B, which has indices 2 to 4"):
        run(text, a, np.array([4, 1], np.int32))


@BOTH
def test_a_guarded_side_is_not_evaluated(jit: bool) -> None:
    text = """def f(float(E) T, int32(N) I) -> (O) {
        O(n) = (I(n) >= 0 && I(n) < 4 && T(I(n)) > 0.5) ? T(I(n)) : -1.0 where n in 0:N
    }"""
    table = np.array([0, 1, 2, 3], np.float32)
    (o,) = run(text, table, np.array([2, -5, 900, 0, 3], np.int32), jit=jit)
    np.testing.assert_array_equal(o, [2, -1, -1, -1, 3])
    text = text.replace("I(n) >= 0 && I(n) < 4 &&", "!(I(n) < 0 || I(n) >= 4) &&")
    (o,) = run(text, table, np.array([2, -5, 900, 0, 3], np.int32), jit=jit)
    np.testing.assert_array_equal(o, [2, -1, -1, -1, 3])


def test_nested_data_dependent_subscripts() -> None:
    text = "def f(int32(N) P) -> (O) { O(i) = P(P(P(P(i)))) }"
    p = np.random.default_rng(6).permutation(50).astype(np.int32)
    (o,) = run(text, p)
    np.testing.assert_array_equal(o, p[p[p[p]]])
    p[7] = 50
    with pytest.raises(IndexError, match="index 50 is out of range for dimension 0 of tensor P"):
        run(text, p)


def test_unchecked_kernels_have_no_checks() -> None:
    sized = sized_of(LOOKUP.format("int32"), np.zeros((4, 2)), np.zeros(3))
    assert "return" in compile_reference(sized, jit=False).source
    assert "return" not in compile_reference(sized, jit=False, unchecked=True).source


@BOTH
def test_subscripts_are_exact(jit: bool) -> None:
    """int8 arithmetic would wrap; as subscripts the sums are exact."""
    text = "def f(float(E) T, int8(N) I) -> (O) { O(n) = T(I(n) + I(n) * 2) }"
    table = np.arange(400, dtype=np.float32)
    (o,) = run(text, table, np.array([100, 5], np.int8), jit=jit)
    np.testing.assert_array_equal(o, [300, 15])
    text = """def f(float(E) T, int8(N) I) -> (O, v) {
        O(n) = T(x) where x = I(n) * 3
        v(n) = x where x = I(n) * 3
    }"""
    o, v = run(text, table, np.array([100, 5], np.int8), jit=jit)
    np.testing.assert_array_equal(o, [300, 15])
    assert v.tolist() == [wrapped(300, "int8"), 15]


# Lets, selects, sizes


@BOTH
def test_lets_selects_and_sizes(jit: bool) -> None:
    text = """def f(float(N,K) A) -> (O) {
        O(n,k) = y > 3.0 ? y : (k == 0 ? N : A.1)
            where x = A(n,k) * 2, y = x + n
    }"""
    a = np.array([[0, 1, 2], [3, -9, 0]], np.float32)
    (o,) = run(text, a, jit=jit)
    y = 2 * a + np.arange(2, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(o, np.where(y > 3, y, [[2, 3, 3]]))


# Names, nesting, amount


NAMES = ["lambda", "class", "None", "float32", "np", "acc", "error", "t_A", "range", "i_i", "r0"]


@BOTH
def test_awkward_names(jit: bool) -> None:
    a = np.arange(4, dtype=np.float32)
    for name in [*NAMES, "x" * 10_000]:
        if name in SCALAR_TYPES:
            continue
        text = f"def main(float({name}_size) {name}) -> ({name}_) {{ {name}_(i) = {name}(i) + i }}"
        (o,) = run(text, a, jit=jit)
        np.testing.assert_array_equal(o, a * 2)
        text = f"def main(float(N) A) -> (B) {{ B({name}) = A({name}) * 2 }}"
        (o,) = run(text, a, jit=jit)
        np.testing.assert_array_equal(o, a * 2)


NESTS: dict[str, Callable[[Array, Array], Any]] = {
    "({} + x(i))": lambda v, x: v + x,
    "min({}, x(i))": np.minimum,
    "(x(i) + {})": lambda v, x: x + v,
    "(-{})": lambda v, x: -v,
    "(x(i) > 0.25 ? {} : x(i))": lambda v, x: np.where(x > 0.25, v, x),
    "({} > 0.25 ? x(i) : 1.0)": lambda v, x: np.where(v > 0.25, x, 1),
}


@pytest.mark.parametrize("form", NESTS)
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_deep_nesting(form: str, jit: bool) -> None:
    x = np.linspace(-1, 1, 9).astype(np.float32)
    expression, value = "x(i)", x
    for _ in range(60):
        expression = form.format(expression)
        value = NESTS[form](value, x).astype(np.float32)
    (o,) = run(f"def f(float(N) x) -> (O) {{ O(i) = {expression} }}", x, jit=jit)
    np.testing.assert_array_equal(o, value)


def test_branches_deeper_than_python_indents() -> None:
    """Checked reads in 90 nested branches: guards instead of indentation, the same values."""
    x, p = np.arange(9, dtype=np.float32), np.random.default_rng(7).permutation(9).astype(np.int32)
    expression = "x(p(i))"
    for k in range(90):
        expression = f"(i == {k % 9} ? x(p(i)) + {k} : {expression})"
    text = f"def f(float(N) x, int32(N) p) -> (O) {{ O(i) = {expression} where i in 0:N }}"
    (o,) = run(text, x, p, jit=False)
    np.testing.assert_array_equal(o, x[p] + np.arange(81, 90))
    p[8] = 9
    with pytest.raises(IndexError, match="index 9"):
        run(text, x, p, jit=False)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_two_thousand_statements(jit: bool) -> None:
    names = [f"O{k}" for k in range(2000)]
    lines = ["O0(i) = x(i)", *(f"O{k}(i) = O{k - 1}(i) + {k % 5}" for k in range(1, 2000))]
    body = "\n".join(lines)
    text = f"def f(float(N) x) -> ({', '.join(names)}) {{ {body} }}"
    results = run(text, np.ones(3, np.float32), jit=jit)
    np.testing.assert_array_equal(results[-1], np.full(3, 1 + 400 * 10, np.float32))


def test_numba_is_imported_only_to_compile() -> None:
    program = (
        "import sys, tcl.codegen.reference, tcl.codegen.common.dtypes\n"
        "assert not {'numba', 'llvmlite', 'ml_dtypes'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
