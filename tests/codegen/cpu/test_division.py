"""Lanes divided by one number: as good as the divider's quotients, and the same at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_kernels import Array, sized_of

from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions

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


@pytest.mark.parametrize("type_", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_by_one_number(type_: str) -> None:
    """Quotients and remainders of lanes: those of a product with the inverse, at all edges."""
    text = (
        f"def f({type_}(N) A, {type_}(M) D) -> (Q, R) "
        "{ Q(m, n) = A(n) / D(m) R(m, n) = A(n) % D(m) }"
    )
    info, rng = np.iinfo(type_), np.random.default_rng(3)
    ends = np.concatenate([np.arange(k, k + 9) for k in (info.min, info.max - 8, 0, 2**6)])
    ends = np.concatenate([ends, -np.arange(1, 9) if info.min else []])
    some = rng.integers(info.min, info.max, 60)
    by = np.unique(np.concatenate([ends, some]).astype(type_))
    near = np.concatenate([by.astype(np.int64) * k + of for k in (1, 2, 3, 97) for of in (-1, 0)])
    of = np.concatenate([near.astype(type_), rng.integers(info.min, info.max, 500, type_)])
    sized = sized_of(text, of, by)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),) * 2)
    found = [np.empty((len(by), len(of)), type_) for _ in range(2)]
    compile_cpu(sized, options)((of, by), tuple(found))
    one = np.where(by == 0, 1, by).astype(np.int64)[:, None]
    wide = of.astype(np.int64)[None]
    quotient = np.sign(wide) * np.sign(one) * (abs(wide) // abs(one))
    rest = wide - quotient * one
    for made, expected in zip(found, (quotient, rest), strict=True):
        assert np.array_equal(made, np.where(by[:, None] == 0, 0, expected).astype(type_))


@pytest.mark.parametrize("form", ["A(m) % B(m)", "fmod(A(m), B(m))", "A(m) % 0.3"])
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
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(actual[~nan].view(integer), expected[~nan].view(integer))
