"""Every built-in, through the reference backend, against mpmath."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath as mp
import numpy as np
import oracles
import pytest
from cpu_kernels import plain, reference, run

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with mp.workprec(oracles.PRECISION):
        yield


def evaluate(name: str, arguments: list[Array], jit: bool = True) -> Array:
    """``name`` at each point of the argument arrays, by the reference."""
    dtype, count = arguments[0].dtype, BUILTINS[name]
    letters = "abcd"[:count]
    names = sorted(n for n, own in BUILTINS.items() if own == count) if jit else [name]
    calls = [f"{n}({', '.join(f'{x}(i)' for x in letters)})" for n in names]
    # Numba takes little longer for all functions of so many arguments than for one.
    value = " : ".join([*(f"which == {k} ? {c}" for k, c in enumerate(calls[1:], 1)), calls[0]])
    parameters = ", ".join(f"{dtype.name}(N) {x}" for x in letters)
    checked = check(f"def f({parameters}, int32 which) -> (O) {{ O(i) = {value} }}")["f"]
    size = 1024 if jit else len(arguments[0])
    given = [np.resize(a, size) for a in arguments]
    sized = infer(checked, {**dict.fromkeys(letters, (size,)), "which": ()})
    output = np.full(size, 77, numpy_dtype(checked.outputs[0].type))
    assert output.dtype == dtype and len(arguments[0]) <= size
    which = np.array(names.index(name), np.int32)
    compile_reference(sized, jit=jit)([*given, which], [output])
    return output[: len(arguments[0])]


def test_every_builtin_has_an_oracle() -> None:
    assert {*oracles.ORACLES, "nextafter"} == set(BUILTINS)
    assert set(oracles.SPECIAL) == set(BUILTINS)
    for name, oracle in oracles.ORACLES.items():
        assert len(oracle.domains) == BUILTINS[name]


@pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_over_the_domain_at_special_values_and_as_interpreted(
    name: str, dtype: type[np.floating[Any]]
) -> None:
    rows = np.array(oracles.SPECIAL[name], np.float64).astype(dtype)
    extra = np.full((2, rows.shape[1]), [[0.3], [0.75]], dtype)
    special = list(np.vstack([rows, extra])[:, :-1].T)
    over = oracles.samples(name, dtype) if name in oracles.ORACLES else [c[:0] for c in special]
    arguments = [np.concatenate(both) for both in zip(special, over, strict=True)]
    results = evaluate(name, arguments)
    of_special, of_over = np.split(results, [len(special[0])])

    if name in oracles.ORACLES:
        assert len(over[0]) >= 200
        worst, where = oracles.worst_error(name, over, of_over)
        assert worst <= oracles.ORACLES[name].ulps[dtype is np.float64], where

    found, expected = of_special[: len(rows)], rows[:, -1]
    np.testing.assert_array_max_ulp(found, expected, 1)
    zero = expected == 0
    assert (np.signbit(found) == np.signbit(expected))[zero].all()
    assert (np.isnan(found) == np.isnan(expected)).all()

    if dtype is np.float64:
        interpreted = evaluate(name, [np.ascontiguousarray(c) for c in special], jit=False)
        np.testing.assert_array_equal(interpreted, of_special)


@pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
def test_nextafter(dtype: type[np.floating[Any]]) -> None:
    info = np.finfo(dtype)
    points = np.array([0, -0.0, 1, -1, 2, info.tiny, info.max, -info.max, np.inf, 0.1], dtype)
    x, y = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(points, points))
    with np.errstate(over="ignore"):
        got, expected = evaluate("nextafter", [x, y]), np.nextafter(x, y)
    assert (got.view(f"u{got.itemsize}") == expected.view(f"u{got.itemsize}")).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_arguments_are_computed_in_float32(name: str) -> None:
    """One rounding, at the store: exp of a 16-bit value, rounded once to 16 bits."""
    text = f"def f({name}(N) a) -> (O) {{ O(i) = exp(a(i)) - 1 }}"
    checked = check(text)["f"]
    dtype = numpy_dtype(checked.inputs[0].type)
    values = np.linspace(-3, 3, 101).astype(dtype)
    output = np.zeros(101, dtype)
    compile_reference(infer(checked, {"a": (101,)}), jit=True)([values], [output])
    single = np.exp(values.astype(np.float64)).astype(np.float32) - np.float32(1)
    np.testing.assert_array_equal(output.view(np.uint16), single.astype(dtype).view(np.uint16))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("options", ["mlp", "naive"])
def test_powers_of_two_are_exact(name: str, options: str) -> None:
    """As docs/language.md says, subnormal ones included, in lanes and without them."""
    least = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}[name]
    most = {"float16": 15, "float64": 1023}.get(name, 127)
    exponents = np.arange(least - 20, most + 1, dtype=np.int32)
    text = f"def f(int32(N) X) -> ({name}(N) Y) {{ Y(i) = {name}(exp2({name}(X(i)))) }}"
    expected = np.ldexp(np.ones(exponents.size), exponents)
    expected[exponents < least] = 0
    for made in (
        run(text, exponents, options=MappingOptions(options))[0],
        reference(text, exponents)[0],
    ):
        np.testing.assert_array_equal(plain(made).astype(np.float64), expected)


def test_shifts_by_numbers_that_vary() -> None:
    """As the error says that answers << and >>."""
    text = (
        "def f(int32(N) X, uint32(N) U, int32(N) B) -> (Left, Right, Floored) {"
        " Left(n) = X(n) * int32(exp2(double(B(n))))"
        " Right(n) = U(n) / uint32(exp2(double(B(n))))"
        " Floored(n) = int32(floor(X(n) / exp2(double(B(n))))) }"
    )
    bits = np.arange(31 * 9, dtype=np.int32) % 31
    x = np.random.default_rng(5).integers(-(2**31), 2**31, bits.size).astype(np.int32)
    expected = x << bits, x.view(np.uint32) >> bits.view(np.uint32), x >> bits
    arrays = x, x.view(np.uint32), bits
    for made in (run(text, *arrays), reference(text, *arrays)):
        for got, right in zip(made, expected, strict=True):
            np.testing.assert_array_equal(plain(got), right)
