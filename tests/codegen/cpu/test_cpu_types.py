"""The CPU backend: every type, cast, operator and built-in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import oracles
import pytest
from cpu_kernels import BOTH, LANES, NAIVE, Array, plain, reference, run
from cpu_values import interesting
from strategies import numpy_type

from tcl.codegen.devices.cpu import host_cpu, narrowed
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax.types import SCALAR_TYPES

# Types.


@pytest.mark.parametrize("source", SCALAR_TYPES)
def test_casts_between_all_types(source: str) -> None:
    values = interesting(source)
    names = list(SCALAR_TYPES)
    outs = ", ".join(f"{t}(N) O{k}" for k, t in enumerate(names))
    body = " ".join(f"O{k}(i) = {t}(a(i))" for k, t in enumerate(names))
    text = f"def f({source}(N) a) -> ({outs}) {{ {body} }}"
    expected = reference(text, values)
    soft = narrowed(host_cpu(), "-f16c")
    for options, device in [(NAIVE, None), (LANES, None), (LANES, soft), (NAIVE, soft)]:
        for name, got, want in zip(
            names, run(text, values, options=options, device=device), expected, strict=True
        ):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(plain(got), plain(want), err_msg=name)
            number = plain(want) == plain(want)
            assert (np.signbit(plain(got)) == np.signbit(plain(want)))[number].all()


@BOTH
@pytest.mark.parametrize("name", [n for n in SCALAR_TYPES if n != "bool"])
def test_operators_of_all_types(name: str, options: MappingOptions) -> None:
    a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[interesting(name)] * 2))
    signed = SCALAR_TYPES[name].kind.value != "uint"
    body = "O(i) = a(i) + b(i) P(i) = a(i) - b(i) Q(i) = a(i) * b(i) R(i) = a(i) / b(i)"
    body += " S(i) = a(i) % b(i) T(i) = min(a(i), b(i)) U(i) = max(a(i), b(i))"
    body += f" V(i) = {'-' if signed else ''}a(i)"
    body += " A0(i) = a(i) < b(i) A1(i) = a(i) <= b(i) A2(i) = a(i) > b(i)"
    body += " A3(i) = a(i) >= b(i) A4(i) = a(i) == b(i) A5(i) = a(i) != b(i)"
    text = f"def f({name}(N) a, {name}(N) b) -> (O,P,Q,R,S,T,U,V,A0,A1,A2,A3,A4,A5) {{ {body} }}"
    for got, want in zip(run(text, a, b, options=options), reference(text, a, b), strict=True):
        np.testing.assert_array_equal(plain(got), plain(want))


@BOTH
def test_bools(options: MappingOptions) -> None:
    a, b = np.array([[0, 0, 1, 1] * 3, [0, 1, 0, 1] * 3], np.bool_)
    text = """def f(bool(N) a, bool(N) b) -> (O, P, Q, R, S) {
        O(i) = a(i) && !b(i)  P(i) = a(i) || b(i)  Q(i) = a(i) ? b(i) : !b(i)
        R max=! a(i)  S min=! a(i)
    }"""
    got = run(text, a, b, options=options)
    expected = [a & ~b, a | b, np.where(a, b, ~b), a.any(), a.all()]
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("native", [True, False], ids=["native", "software"])
def test_float16_bits_both_ways(native: bool) -> None:
    """All 65536 values survive; every float32 near a tie of two of them rounds as NumPy does."""
    device = host_cpu()
    if not native:
        device = narrowed(device, "-f16c")
    bits = np.arange(2**16, dtype=np.uint16)
    wide = "def f(float16(N) a) -> (O) { O(i) = float32(a(i)) }"
    narrow = "def f(float32(N) a) -> (O) { O(i) = float16(a(i)) }"
    (got,) = run(wide, bits.view(np.float16), options=LANES, device=device)
    expected = bits.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    finite = np.sort(expected[np.isfinite(expected)]).astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    infinity = np.float32(np.inf)
    near = np.concatenate([ties, np.nextafter(ties, infinity), np.nextafter(ties, -infinity)])
    with np.errstate(all="ignore"):
        want = near.astype(np.float16)
    (got,) = run(narrow, near, options=LANES, device=device)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_bfloat16_rounds_to_nearest_even() -> None:
    import ml_dtypes

    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    values[::3] = (values[::3] & 0xFFFF0000) | 0x8000  # ties
    floats = values.view(np.float32)
    (got,) = run("def f(float32(N) a) -> (O) { O(i) = bfloat16(a(i)) }", floats, options=LANES)
    with np.errstate(all="ignore"):
        want = floats.astype(ml_dtypes.bfloat16)
    nan = np.isnan(floats)
    np.testing.assert_array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(got[nan].astype(np.float32)).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_sums_round_once(name: str) -> None:
    """Even when tiles of the reduction are outside of the loops over the result."""
    ones = np.full((3, 5000), 0.25).astype(numpy_type(name))
    text = f"def f({name}(M, N) a) -> (O) {{ O(m) +=! a(m, n) }}"
    for options in (NAIVE, LANES, NAIVE.tile(2, 64).order(1, 0), NAIVE.tile(0, 7).vectorize(2)):
        (got,) = run(text, ones, options=options)
        np.testing.assert_array_equal(got.astype(np.float64), 1250.0 if name == "float16" else 1248)


# Built-ins.


@pytest.fixture
def _precision() -> Iterator[None]:
    with mp.workprec(oracles.PRECISION):
        yield


def builtin(name: str, arguments: Sequence[Array], options: MappingOptions) -> Array:
    letters = "abcd"[: len(arguments)]
    parameters = ", ".join(f"{arguments[0].dtype.name}(N) {x}" for x in letters)
    call = f"{name}({', '.join(f'{x}(i)' for x in letters)})"
    text = f"def f({parameters}) -> (O) {{ O(i) = {call} }}"
    return run(text, *arguments, options=options)[0]


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(oracles.ORACLES))
def test_builtins_over_their_domain(name: str, dtype: type[np.floating[Any]]) -> None:
    arguments = oracles.samples(name, dtype)
    results = builtin(name, arguments, LANES)
    worst, where = oracles.worst_error(name, arguments, results)
    assert worst <= oracles.ORACLES[name].ulps[dtype is np.float64], where


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_builtins_at_special_values(
    name: str, dtype: type[np.floating[Any]], options: MappingOptions
) -> None:
    rows = np.array(oracles.SPECIAL[name], np.float64).astype(dtype)
    rows = np.repeat(rows, 9, axis=0)  # enough for all lanes
    results = builtin(name, [np.ascontiguousarray(c) for c in rows[:, :-1].T], options)
    expected = rows[:, -1]
    np.testing.assert_array_max_ulp(results, expected, 1)
    zero = expected == 0
    assert (np.signbit(results) == np.signbit(expected))[zero].all(), results
