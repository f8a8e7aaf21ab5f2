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
