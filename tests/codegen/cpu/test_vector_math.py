"""Built-ins as vector formulas: errors over dense samples, special values, all numbers of lanes.

``pytest -m slow tests/codegen/cpu/test_vector_math.py`` takes every 61st of all float32 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import oracles
import pytest
import scipy.special

from tcl.codegen.cpu.llvm.builder import Builder, Val, vector
from tcl.codegen.cpu.llvm.entry import OPENING, alone
from tcl.codegen.cpu.math import vector as vector_math
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.devices.cpu import host_cpu

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]

WIDTHS = (1, 2, 3, 4, 7, 8, 16, 32, 64)
SINGLE = sorted(vector_math.FORMULAS["float"])
DOUBLE = sorted(vector_math.FORMULAS["double"])
LONG = np.longdouble
ARITY = {"atan2": 2, "hypot": 2, "pow": 2}

# What is asserted: the worst error known, in ulps, rounded up.
SINGLE_ULPS = {
    "cos": 1.6, "cospi": 1.0, "erf": 1.1, "exp": 0.95, "exp10": 1.15, "exp2": 0.95,
    "expit": 1.5, "expm1": 1.6, "log": 0.95, "log10": 1.3, "log2": 1.3, "rsqrt": 1.5, "sin": 1.6,
    "sinpi": 1.2, "tanh": 1.6,
}  # fmt: skip
DOUBLE_ULPS = {
    "acos": 1.2, "acosh": 2.6, "asin": 1.5, "asinh": 1.8, "atan": 1.5, "atan2": 1.6, "atanh": 2.0,
    "cbrt": 0.55, "cos": 1.6, "cosh": 2.6, "erf": 1.2, "exp": 1.0, "exp10": 1.3, "exp2": 1.0,
    "expit": 1.5, "expm1": 2.0, "log": 1.0, "log10": 1.5, "log1p": 1.2, "log2": 1.5, "pow": 1.3,
    "rsqrt": 1.5, "sin": 1.6, "sinh": 2.9, "tan": 2.6, "tanh": 1.7,
}  # fmt: skip


def kernel(
    name: str,
    real: str,
    count: int,
    widths: tuple[int, ...],
    features: frozenset[str] | None = None,
) -> Launcher:
    """The built-in over ``count`` elements: inputs, then one output for each number of lanes."""
    device, arity = host_cpu(), ARITY.get(name, 1)
    own = device.present if features is None else features
    b = Builder(features=own, fused=device.fused, rounds=device.rounds)
    pointers = []
    for k in range(arity + len(widths)):
        at = b.op(f"getelementptr ptr, ptr %tensors, i64 {k}", "ptr")
        pointers.append(b.op(f"load ptr, {at}", "ptr"))
    for width, output in zip(widths, pointers[arity:], strict=True):
        before, loop, after = b.block, b.new_label("loop"), b.new_label("after")
        b.branch(loop)
        b.start(loop)
        i, following = f"%i{width}", f"%next{width}"
        b.do(f"{i} = phi i64 [ 0, %{before} ], [ {following}, %{loop} ]")
        values: list[Val] = []
        for pointer in pointers[:arity]:
            at = b.op(f"getelementptr {real}, {pointer}, i64 {i}", "ptr")
            values.append(b.op(f"load {vector(real, width)}, {at}, align 4", real, width))
        result = vector_math.call(b, name, values, real)
        at = b.op(f"getelementptr {real}, {output}, i64 {i}", "ptr")
        b.do(f"store {result}, {at}, align 4")
        b.do(f"{following} = add i64 {i}, {width}")
        more = b.op(f"icmp ult i64 {following}, {count}", "i1")
        b.branch_if(more, loop, after)
        b.start(after)
    body = [*OPENING, *b.entry, *b.lines, "  ret i32 0", "}", "", alone()]
    text = "\n".join([*b.declared.values(), *b.defined.values(), *body])
    names = [str(k) for k in range(arity + len(widths))]
    return Launcher(KernelCode(compile_object(text, device)), names)


def evaluate(name: str, arguments: list[Array], widths: tuple[int, ...] = (16,)) -> list[Array]:
    """The built-in's results for each number of lanes."""
    used = len(arguments[0])
    count = -(-used // 1344) * 1344  # a multiple of all widths
    padded = [np.concatenate([a, np.ones(count - used, a.dtype)]) for a in arguments]
    results = [np.full(count, 77, padded[0].dtype) for _ in widths]
    real = "float" if padded[0].dtype == np.float32 else "double"
    kernel(name, real, count, widths)((*padded, *results))
    return [r[:used] for r in results]


def ulps(got: Array, exact: Array) -> Array:
    """Errors in units of the last place of ``got``'s type; NaN only where NaN is due; infinite
    where and only where the exact value rounds to infinity. A wrong zero's sign is an error."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        exponent = np.maximum(np.frexp(np.abs(exact))[1] - 1, info.minexp)
        error = np.abs(got.astype(exact.dtype) - exact)
        error = error / np.ldexp(np.ones_like(exact), exponent - info.nmant)
        same = (got == rounded) & (np.signbit(got) == np.signbit(rounded))
    error = np.where(np.isinf(got) | np.isinf(rounded), np.where(same, 0, np.inf), error)
    error = np.where((got == 0) & (rounded == 0) & ~same, np.inf, error)
    error = np.where(np.isnan(got) != np.isnan(exact), np.inf, error)
    return np.where(np.isnan(error), 0, error)


def check(name: str, arguments: list[Array], got: Array, exact: Array, limit: float) -> None:
    errors = ulps(got, exact)
    k = int(np.argmax(errors))
    point = [a[k] for a in arguments]
    assert errors[k] <= limit, f"{name}{point} gave {got[k]!r}, exact {exact[k]!r}: {errors[k]}"


# float32, against float64.


def _halves(x: Array) -> tuple[Array, Array, Array]:
    """sin and cos of pi * r and n modulo 4, for x = n/2 + r."""
    turn = np.fmod(x, 2)
    n = np.rint(2 * turn)
    r = np.pi * (turn - n / 2)
    finite = np.where(np.isfinite(n), n, 0)
    return np.sin(r), np.cos(r), finite.astype(np.int64) & 3


def _sinpi(x: Array) -> Array:
    sin, cos, n = _halves(x)
    result: Array = np.choose(n, [sin, cos, -sin, -cos])
    return np.where(result == 0, np.copysign(0, x), result)


def _cospi(x: Array) -> Array:
    sin, cos, n = _halves(x)
    result: Array = np.choose(n, [cos, -sin, -cos, sin])
    return result + 0.0


REFERENCES: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos,
    "cosh": np.cosh, "cospi": _cospi, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "exp": np.exp, "exp10": lambda x: np.power(x.dtype.type(10), x), "exp2": np.exp2,
    "expit": scipy.special.expit, "expm1": np.expm1, "hypot": np.hypot, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "normcdf": lambda x: scipy.special.erfc(-x * 0.5**0.5) / 2, "pow": np.power,
    "rcbrt": lambda x: 1 / np.cbrt(x), "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin,
    "sinh": np.sinh, "sinpi": _sinpi, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


def reference(name: str, arguments: list[Array], wide: Any = np.float64) -> Array:
    with np.errstate(all="ignore"):  # conversions of signalling NaNs, too
        result: Array = REFERENCES[name](*(a.astype(wide) for a in arguments))
    return result


def edges(dtype: type[np.floating[Any]]) -> Array:
    """Zeros, infinities, NaN, limits of the type, powers of two, numbers where formulas change,
    and the neighbours of all these, of both signs."""
    info = np.finfo(dtype)
    plain = [0, 1, 2, 3, 10, math.pi, math.e, 0.5, 0.5**0.5, 2**0.5, 0.55, 0.93, 87, 87.33655,
             88.72284, 89, 103.97208, 104, 126, 127, 128, 129, 149, 150, 151, 37.9, 38.53184, 44.85,
             45.15, 46, 9.01, 10.1, 14.2, 20, 3.92, 5.95, 6, 16, 17.4, 307.5, 308.3, 323.6, 709.8,
             710.4759, 745.2, 1021, 1022, 1024, 1074, 1e10, 1e20, 1e30]  # fmt: skip
    with np.errstate(over="ignore"):
        powers = np.ldexp(dtype(1), np.arange(info.minexp - info.nmant, info.maxexp))
        base = np.concatenate([np.array([*plain, info.max], dtype), powers])
        base = np.concatenate([base, powers * dtype(1.5)])
        near = [base, np.nextafter(base, dtype(0)), np.nextafter(base, dtype(np.inf))]
        points = np.concatenate([*near, np.array([np.inf], dtype)])
    return np.concatenate([points, -points, np.array([np.nan], dtype)])


def multiples(dtype: type[np.floating[Any]], count: int) -> Array:
    """Numbers next to multiples of pi/2, where reduction has to be exact."""
    generator = np.random.default_rng(5)
    n = np.concatenate([np.arange(count), np.rint(2 ** generator.uniform(0, 60, count))])
    return (n * (np.pi / 2)).astype(dtype)


def dense(dtype: type[np.floating[Any]]) -> Array:
    """Every exponent with many significands, both signs, and the range where most happens."""
    generator = np.random.default_rng(3)
    integer = np.uint32 if dtype is np.float32 else np.uint64
    top = 1 << (8 * np.dtype(dtype).itemsize)
    any_bits = generator.integers(0, top, 200_000, dtype=integer).view(dtype)
    middle = generator.uniform(-2, 2, 60_000)
    far = generator.uniform(-110, 110, 60_000)
    one = 1 + generator.uniform(-1, 1, 30_000) * 2.0 ** generator.uniform(-40, 0, 30_000)
    rest = np.concatenate([middle, far, one, 2.0 ** generator.uniform(-40, 20, 50_000)])
    return np.concatenate([any_bits, rest.astype(dtype), multiples(dtype, 20_000), edges(dtype)])


def pairs(dtype: type[np.floating[Any]]) -> list[Array]:
    """Pairs of all sorts, edges with edges among them."""
    generator = np.random.default_rng(4)
    few = edges(dtype)
    few = np.concatenate([generator.choice(few, 300), np.array([0, -0.0, 1, -1], dtype), few[-1:]])
    first, second = (grid.ravel() for grid in np.meshgrid(few, few))
    points = dense(dtype)
    # Exponents that keep powers in range, and whole ones.
    base = np.abs(points[np.isfinite(points) & (points != 0)]).astype(np.float64)
    log = np.maximum(np.abs(np.log(base)), 1e-8)
    limit = 90 if dtype is np.float32 else 720
    moderate = generator.uniform(-limit, limit, len(base)) / log
    whole = np.rint(generator.uniform(-9, 9, len(points)))
    with np.errstate(over="ignore"):
        columns = (
            [first, base, points, points],
            [second, moderate, generator.permutation(points), whole],
        )
        return [np.concatenate(column).astype(dtype) for column in columns]


def inputs(name: str, dtype: type[np.floating[Any]]) -> list[Array]:
    return pairs(dtype) if name in ARITY else [dense(dtype)]


@pytest.mark.parametrize("name", SINGLE)
def test_float32_errors_and_lanes(name: str) -> None:
    arguments = inputs(name, np.float32)
    results = evaluate(name, arguments, WIDTHS)
    exact = reference(name, arguments)
    check(name, arguments, results[0], exact, SINGLE_ULPS.get(name, 0.51))
    agree(results)


def agree(results: list[Array]) -> None:
    """All numbers of lanes give the same bits, scalars too."""
    integer = np.uint32 if results[0].dtype == np.float32 else np.uint64
    for width, result in zip(WIDTHS, results, strict=True):
        same = result.view(integer) == results[0].view(integer)
        same |= np.isnan(result) & np.isnan(results[0])
        assert same.all(), f"{width} lanes: {result[~same][0]!r}, not {results[0][~same][0]!r}"


@pytest.mark.parametrize("name", ["exp", "exp2", "exp10", "tanh", "erf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_instruction_for_powers_gives_the_same_bits(
    dtype: type[np.floating[Any]], name: str
) -> None:
    """As powers made of bits, which is how machines without it do it."""
    x = dense(dtype)
    x = x[: len(x) // 1344 * 1344]
    real = "float" if dtype is np.float32 else "double"
    results = [[np.empty_like(x) for _ in WIDTHS] for _ in range(2)]
    for features, found in zip((host_cpu().present, frozenset[str]()), results, strict=True):
        kernel(name, real, len(x), WIDTHS, features)((x, *found))
    for with_it, without in zip(*results, strict=True):
        np.testing.assert_array_equal(with_it, without)
        assert (np.signbit(with_it) == np.signbit(without)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in SINGLE if n not in ARITY])
def test_float32_everywhere(name: str) -> None:
    step, chunk = 61, 1344 << 10
    for start in range(0, 1 << 32, step * chunk):
        numbers = np.arange(start, min(start + step * chunk, 1 << 32), step, dtype=np.int64)
        x = numbers.astype(np.uint32).view(np.float32)
        exact = reference(name, [x])
        check(name, [x], evaluate(name, [x])[0], exact, SINGLE_ULPS.get(name, 0.51))


# float64, against 80-bit floats where they exist, and a few points against mpmath.

needs_long = pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="longdouble is float64 here")


@needs_long
@pytest.mark.parametrize("name", [n for n in DOUBLE if n != "erf"])
def test_float64_errors_and_lanes(name: str) -> None:
    arguments = inputs(name, np.float64)
    results = evaluate(name, arguments, WIDTHS)
    exact = reference(name, arguments, LONG)
    check(name, arguments, results[0], exact, DOUBLE_ULPS[name])
    agree(results)


@pytest.mark.parametrize("name", DOUBLE)
def test_float64_against_mpmath(name: str) -> None:
    with mp.workprec(oracles.PRECISION):
        arguments = oracles.samples(name, np.float64)
        results = evaluate(name, arguments, WIDTHS)
        worst, where = oracles.worst_error(name, arguments, results[0])
    assert worst <= DOUBLE_ULPS[name], where
    agree(results)


def test_erf_in_float64() -> None:
    """Its formulas' ranges, where they meet, and where the result reaches 1."""
    generator = np.random.default_rng(6)
    ranges = [(-1, 1), (0.999, 1.001), (1, 6), (5.7, 6.1)]
    x = np.concatenate([generator.uniform(low, high, 2000) for low, high in ranges])
    with mp.workprec(oracles.PRECISION):
        exact = np.array([mp.erf(mp.mpf(float(v))) for v in x])
        (got,) = evaluate("erf", [x])
        errors = [abs(mp.mpf(float(g)) - e) for g, e in zip(got, exact, strict=True)]
        worst = max(float(e) / np.spacing(abs(g)) for e, g in zip(errors, got, strict=True))
    assert worst <= DOUBLE_ULPS["erf"]
    assert evaluate("erf", [np.array([6.0, 1e300, -6.5])])[0].tolist() == [1.0, 1.0, -1.0]


# Values that have to be exact, and special ones.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_powers_are_exact(dtype: type[np.floating[Any]]) -> None:
    n = np.arange(-126, 128).astype(dtype)
    power = np.ldexp(dtype(1), np.arange(-126, 128))
    np.testing.assert_array_equal(evaluate("exp2", [n])[0], power)
    np.testing.assert_array_equal(evaluate("log2", [power])[0], n)
    cubes = np.arange(-99, 100).astype(dtype)
    np.testing.assert_array_equal(evaluate("cbrt", [cubes**3])[0], cubes)
    base = np.repeat(np.arange(-9, 10), 6).astype(dtype)
    exponent = np.tile(np.arange(6), 19).astype(dtype)
    np.testing.assert_array_equal(evaluate("pow", [base, exponent])[0], base**exponent)
    tens = np.arange(11).astype(dtype)
    np.testing.assert_array_equal(evaluate("log10", [dtype(10) ** tens])[0], tens)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_reduction_of_huge_float32(name: str) -> None:
    """The hardest arguments: what is left of them is small."""
    n = np.arange(1, 200_000)
    huge = [(n * (np.pi / 2) * 2.0**k).astype(np.float32) for k in (0, 13, 20, 39, 60, 90, 109)]
    x = np.concatenate(huge)
    exact = reference(name, [x])
    check(name, [x], evaluate(name, [x])[0], exact, SINGLE_ULPS.get(name, 0.51))


@pytest.mark.parametrize("name", sorted({*SINGLE, *DOUBLE}))
def test_one_function_for_each_type_and_width(name: str) -> None:
    b = Builder()
    real = "float" if name in SINGLE else "double"
    values = [Val(f"%a{k}", real, 8) for k in range(ARITY.get(name, 1))]
    for _ in range(3):
        vector_math.call(b, name, values, real)
    assert list(b.defined) == [f"tcl_{name}_v8{'f32' if real == 'float' else 'f64'}"]
