"""Lanes divided by one number: as good as the divider's quotients, and the same at the edges."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from comparing import check_cpu
from compiled_kernels import compile_cpu
from cpu_kernels import Array, sized_of

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

DIVIDE = "def f({0}(M, N) A, {0}(M) S) -> (O) {{ O(m, n) = A(m, n) / S(m) }}"
TYPES: dict[str, tuple[Any, Any]] = {
    "float": (np.float32, np.int32),
    "double": (np.float64, np.int64),
}


def edges(dtype: Any) -> Array:
    form = np.finfo(dtype)
    found = [0, 1, 3, np.inf, np.nan, form.tiny, form.smallest_subnormal, form.max, form.max / 4]
    for exponent in (-101, -100, -60, 60, 100, 101):
        power = dtype(2.0**exponent)
        found += [np.nextafter(power, dtype(0)), power, np.nextafter(power, dtype(np.inf))]
    return np.concatenate([np.array(found, dtype), -np.array(found, dtype)])


@pytest.mark.parametrize("divisors", ["edges", "all", "largest"])
@pytest.mark.parametrize("type_", TYPES)
def test_quotients(type_: str, divisors: str) -> None:
    dtype, integer = TYPES[type_]
    rng = np.random.default_rng(2)

    def anything(*shape: int) -> Array:
        low, high = np.iinfo(integer).min, np.iinfo(integer).max
        return rng.integers(low, high, shape, integer).view(dtype)

    special = edges(dtype)
    s = special if divisors == "edges" else anything(len(special))
    if divisors == "largest":
        s = (rng.uniform(0.25, 1, len(special)) * np.finfo(dtype).max).astype(dtype)
    a = anything(len(s), 2048)
    a[:, : len(special)] = special
    actual = np.empty_like(a)
    sized = sized_of(DIVIDE.format(type_), a, s)
    compile_cpu(sized, MappingOptions().vectorize(8))([a, s], [actual])
    with np.errstate(all="ignore"):
        expected = a / s[:, None]
    normal = np.isfinite(expected) & (expected != 0)
    np.testing.assert_array_equal(actual[~normal], expected[~normal])
    assert np.array_equal(np.signbit(actual[normal]), np.signbit(expected[normal]))
    # Numbers of one sign are in order as integers.
    apart = actual[normal].view(integer) - expected[normal].view(integer)
    assert np.abs(apart).max() <= 2


@pytest.mark.parametrize("divisors", ["one", "many", "of one"])
@pytest.mark.parametrize(
    "type_", [f"{kind}{k}" for kind in ("int", "uint") for k in (8, 16, 32, 64)]
)
def test_integers_of_vectors(type_: str, divisors: str) -> None:
    """Quotients and remainders of lanes by one number, which are products with its inverse, by as
    many, and of one number by lanes, at all edges: of 64 bits, of numbers that floats tell apart,
    and of others."""
    by_one = divisors != "many"
    second = f"{type_}(M) D" if by_one else f"{type_}(M, N) D"
    d = "D(m)" if by_one else "D(m, n)"
    text = (
        f"def f({type_}(N) A, {second}) -> (Q, R) {{ Q(m, n) = A(n) / {d} R(m, n) = A(n) % {d} }}"
    )
    info, rng = np.iinfo(type_), np.random.default_rng(3)
    starts = [info.min, info.max - 8, 0, 2**6]
    if info.bits == 64:
        starts += [2**k - 4 for k in (49, 50, 51, 52, 53)]
    ends = [k + n for k in starts for n in range(9)] + ([-k for k in range(1, 9)] * (info.min < 0))
    some = rng.integers(info.min, info.max, 60, type_) >> rng.integers(0, info.bits, 60, type_)
    by = np.unique(np.array([*ends, *some.tolist()], dtype=type_))
    near = [int(v) * k + of for k in (1, 2, 3, 97) for of in (-1, 0) for v in by]
    many = rng.integers(info.min, info.max, 500, type_)
    mask = (1 << info.bits) - 1
    wrapped = np.array([v & mask for v in near], f"u{many.itemsize}").astype(type_)
    of = np.concatenate([wrapped, many, many >> many.dtype.type(info.bits // 2)])
    given = by if by_one else np.repeat(by, len(of)).reshape(len(by), len(of))
    sized = sized_of(text, of, given)
    lanes, device = (0 if divisors == "of one" else 1, 8), host_cpu()
    options = MappingOptions("naive", nests=(NestOptions(vectorize=lanes),) * 2)
    source = emit_program(schedule(sized, options, device), device).text
    assert info.bits == 64 or not re.search("[su](div|rem) <", source), (
        "LLVM would divide each lane"
    )
    found = [np.empty((len(by), len(of)), type_) for _ in range(2)]
    compile_cpu(sized, options)((of, given), tuple(found))
    one = np.where(by == 0, 1, by).astype(object)[:, None]
    wide = of.astype(object)[None]
    quotient = np.where((wide < 0) == (one < 0), 1, -1) * (abs(wide) // abs(one))
    rest = wide - quotient * one
    for made, expected in zip(found, (quotient, rest), strict=True):
        exact = np.where(by[:, None] == 0, 0, expected)
        assert np.array_equal(made, (exact & mask).astype(f"u{many.itemsize}").astype(type_))


@pytest.mark.parametrize(
    "form", ["A(m) % B(m)", "fmod(A(m), B(m))", "A(m) % 0.3", "remainder(A(m), B(m))"]
)
@pytest.mark.parametrize("type_", TYPES)
def test_remainders_of_vectors_are_exact(type_: str, form: str) -> None:
    """Of any bits, of edges, and of multiples of the divisor and their neighbours; the C library
    is only called where a quotient has more digits than a float."""
    dtype, integer = TYPES[type_]
    rng = np.random.default_rng(3)
    low, high = np.iinfo(integer).min, np.iinfo(integer).max
    special = edges(dtype)
    divisors = rng.uniform(0.1, 9, 4096).astype(dtype)
    near = divisors * rng.integers(1, 1000, 4096).astype(dtype)
    any_bits = rng.integers(low, high, (2, 4096), integer).view(dtype)
    pairs = [(np.repeat(special, len(special)), np.tile(special, len(special))), any_bits]
    pairs += [(np.nextafter(near, near * k), divisors) for k in (dtype(0), dtype(1), dtype(2))]
    a, b = (np.concatenate(column).astype(dtype) for column in zip(*pairs, strict=True))
    actual = np.empty_like(a)
    text = f"def f({type_}(M) A, {type_}(M) B) -> (O) {{ O(m) = {form} }}"
    sized = sized_of(text, a, b)
    compile_cpu(sized, MappingOptions().vectorize(8))([a, b], [actual])
    with np.errstate(all="ignore"):
        expected = np.fmod(a, dtype(0.3) if "0.3" in form else b)
        if form.startswith("remainder"):
            invalid = np.isnan(expected)
            valid = np.where(invalid, 1, a).tolist(), np.where(invalid, 1, b).tolist()
            nearest = np.array([math.remainder(x, y) for x, y in zip(*valid, strict=True)], dtype)
            expected = np.where(invalid, expected, nearest)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(actual[~nan].view(integer), expected[~nan].view(integer))


@pytest.mark.parametrize("type_", TYPES)
def test_neighbours_and_exponents(type_: str) -> None:
    """Of any bits, and of edges with edges."""
    dtype, integer = TYPES[type_]
    low, high = np.iinfo(integer).min, np.iinfo(integer).max
    special = edges(dtype)
    any_bits = np.random.default_rng(4).integers(low, high, (2, 4096), integer).view(dtype)
    a = np.concatenate([np.repeat(special, len(special)), any_bits[0]])
    b = np.concatenate([np.tile(special, len(special)), any_bits[1]])
    body = "O(m) = nextafter(A(m), B(m)) P(m) = logb(A(m))"
    text = f"def f({type_}(M) A, {type_}(M) B) -> (O, P) {{ {body} }}"
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(0, 8)),) * 2)
    found = [np.empty_like(a) for _ in range(2)]
    compile_cpu(sized_of(text, a, b), options)([a, b], found)
    with np.errstate(all="ignore"):
        exponents = np.where(np.isfinite(a) & (a != 0), np.frexp(a)[1] - 1, np.abs(a))
        exponents[a == 0] = -np.inf
        expected = [np.nextafter(a, b), exponents.astype(dtype)]
    for made, exact in zip(found, expected, strict=True):
        nan = np.isnan(exact)
        np.testing.assert_array_equal(np.isnan(made), nan)
        np.testing.assert_array_equal(made[~nan].view(integer), exact[~nan].view(integer))


@pytest.mark.parametrize("by", ["1 : 256", "0 : -1", "-1 : 3", "7 : 0", "-128 : 127"])
@pytest.mark.parametrize("type_", ["int8", "int32", "int64"])
def test_integers_by_one_of_two_numbers(type_: str, by: str) -> None:
    """An index or data decide which of both: as quotients by one known number."""
    text = (
        f"def f({type_}(N) A, int32(N) C) -> (Q, R) {{ "
        f"Q(k, n) = A(n) / (k < 2 ? {by}) where k in 0:4 "
        f"R(k, n) = A(n) % (C(n) > k ? {by}) where k in 0:4 }}"
    )
    info, rng = np.iinfo(type_), np.random.default_rng(4)
    ends = [np.arange(k, k + 9, dtype=type_) for k in (info.min, info.max - 8, 0)]
    a = np.concatenate([*ends, rng.integers(info.min, info.max, 500, type_)])
    c = rng.integers(0, 5, len(a), np.int32)
    sized, device = sized_of(text, a, c), host_cpu()
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),) * 2)
    if type_ != "int64":  # LLVM has no product that finds these
        assert "fdiv" not in emit_program(schedule(sized, options, device), device).text
    check_cpu(sized, [a, c], options)


@pytest.mark.parametrize("by", ["8 * M", "M - 9", "4 - M", "100 * M - 3"])
@pytest.mark.parametrize(
    "type_", [f"{kind}{k}" for kind in ("int", "uint") for k in (8, 16, 32, 64)]
)
def test_integers_by_what_sizes_give(type_: str, by: str) -> None:
    """Sums and products of sizes are known numbers, in the type that they are cast to."""
    text = (
        f"def f({type_}(M, N) A) -> (Q, R) {{ Q(m, n) = A(m, n) / {type_}({by}) "
        f"R(m, n) = A(m, n) % {type_}({by}) }}"
    )
    info, rng = np.iinfo(type_), np.random.default_rng(5)
    ends = [np.arange(k, k + 9, dtype=type_) for k in (info.min, info.max - 8, 0)]
    a = np.concatenate([*ends, rng.integers(info.min, info.max, 77, type_)]).reshape(4, 26)
    sized, device = sized_of(text, a), host_cpu()
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),) * 2)
    source = emit_program(schedule(sized, options, device), device).text
    assert "fdiv" not in source or info.bits == 64  # LLVM has no product that finds these
    assert "double" not in source or by != "8 * M", "a shift"
    check_cpu(sized, [a], options)
