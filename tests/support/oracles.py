"""What the built-in functions have to give, from mpmath: domains, exact values, bounds.

Made for any backend: evaluate ``samples(name, dtype)`` with it and hand the result to
``worst_error``; ``SPECIAL`` lists results at zeros, infinities, NaN and the domain's edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special
from work_done_once import once

Array = np.ndarray[Any, np.dtype[Any]]
Exact = Callable[..., Any]

PRECISION = 200
"""Bits that oracles are computed with."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """A built-in: where it is sampled, its exact value, how far off a result may be."""

    exact: Exact
    """mpf arguments → mpf."""
    domains: tuple[tuple[float, float], ...]
    """One closed interval per argument; samples stay inside."""
    ulps: tuple[float, float] = (2.0, 4.0)
    """Allowed error for float32 and float64."""
    absolute: tuple[float, float] = (0.0, 0.0)
    """Error that is allowed whatever the result, for functions with irrational zeros."""


def _erfinv_complement(z: Any) -> Any:
    """y with erfc(y) = z, 0 < z <= 1, by Newton's method from SciPy's value."""
    y = mp.mpf(float(scipy.special.erfcinv(float(z))))
    for _ in range(4):
        y += (mp.erfc(y) - z) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def _erfinv(x: Any) -> Any:
    if abs(x) > mp.mpf("0.5"):
        return mp.sign(x) * _erfinv_complement(1 - abs(x))
    y = mp.mpf(float(scipy.special.erfinv(float(x))))
    for _ in range(4):
        y -= (mp.erf(y) - x) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def _erfcinv(z: Any) -> Any:
    return _erfinv_complement(z) if z < mp.mpf("0.5") else _erfinv(1 - z)


def _round(x: Any) -> Any:
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf("0.5"))


def _trunc(x: Any) -> Any:
    return mp.sign(x) * mp.floor(abs(x))


def _fmod(x: Any, y: Any) -> Any:
    with mp.workprec(2400):  # quotients reach 2**2098
        return x - y * _trunc(x / y)


def _remainder(x: Any, y: Any) -> Any:
    with mp.workprec(2400):
        return x - y * mp.nint(x / y)  # nint breaks ties to even


def _norm(*arguments: Any) -> Any:
    return mp.sqrt(mp.fsum(a * a for a in arguments))


def _logb(x: Any) -> Any:
    return mp.mpf(mp.frexp(abs(x))[1] - 1) if x else -mp.inf


_ALL = (-1e300, 1e300)

ORACLES: dict[str, Oracle] = {
    "acos": Oracle(mp.acos, ((-1, 1),)),
    "acosh": Oracle(mp.acosh, ((1, 1e300),)),
    "asin": Oracle(mp.asin, ((-1, 1),)),
    "asinh": Oracle(mp.asinh, (_ALL,)),
    "atan": Oracle(mp.atan, (_ALL,)),
    "atan2": Oracle(mp.atan2, (_ALL, _ALL)),
    "atanh": Oracle(mp.atanh, ((-1, 1),)),
    "cbrt": Oracle(lambda x: mp.sign(x) * mp.cbrt(abs(x)), (_ALL,)),
    "ceil": Oracle(mp.ceil, (_ALL,), (0, 0)),
    "copysign": Oracle(lambda x, y: abs(x) * (-1 if y < 0 else 1), (_ALL, _ALL), (0, 0)),
    "cos": Oracle(mp.cos, ((-1e6, 1e6),)),
    "cosh": Oracle(mp.cosh, ((-700, 700),)),
    "cospi": Oracle(mp.cospi, ((-1e6, 1e6),)),
    "cyl_bessel_i0": Oracle(lambda x: mp.besseli(0, x), ((-712, 712),)),
    "cyl_bessel_i1": Oracle(lambda x: mp.besseli(1, x), ((-712, 712),)),
    "erf": Oracle(mp.erf, ((-7, 7),)),
    "erfc": Oracle(mp.erfc, ((-7, 28),)),
    "erfcinv": Oracle(_erfcinv, ((0, 2),)),
    "erfcx": Oracle(lambda x: mp.exp(x * x) * mp.erfc(x), ((-26.6, 1e7),)),
    "erfinv": Oracle(_erfinv, ((-1, 1),)),
    "exp": Oracle(mp.exp, ((-746, 709),)),
    "exp10": Oracle(lambda x: mp.power(10, x), ((-324, 308),)),
    "exp2": Oracle(lambda x: mp.power(2, x), ((-1076, 1023),)),
    "expit": Oracle(lambda x: 1 / (1 + mp.exp(-x)), ((-746, 746),)),
    "expm1": Oracle(mp.expm1, ((-50, 709),)),
    "fabs": Oracle(abs, (_ALL,), (0, 0)),
    "fdim": Oracle(lambda x, y: max(x - y, mp.mpf(0)), (_ALL, _ALL), (0.5, 0.5)),
    "fdivide": Oracle(lambda x, y: x / y, (_ALL, _ALL), (0.5, 0.5)),
    "floor": Oracle(mp.floor, (_ALL,), (0, 0)),
    "fma": Oracle(lambda x, y, z: x * y + z, ((-1e9, 1e9),) * 3, (0.5, 0.5)),
    "fmax": Oracle(max, (_ALL, _ALL), (0, 0)),
    "fmin": Oracle(min, (_ALL, _ALL), (0, 0)),
    "fmod": Oracle(_fmod, ((-1e30, 1e30), (-1e30, 1e30)), (0, 0)),
    "hypot": Oracle(_norm, (_ALL, _ALL)),
    "j0": Oracle(lambda x: mp.besselj(0, x), ((-1000, 1000),), absolute=(0.0, 4e-16)),
    "j1": Oracle(lambda x: mp.besselj(1, x), ((-1000, 1000),), absolute=(0.0, 4e-16)),
    "lgamma": Oracle(lambda x: mp.re(mp.loggamma(x)), ((-30.3, 1e15),), absolute=(0.0, 1e-15)),
    "log": Oracle(mp.log, ((0, 1e300),)),
    "log10": Oracle(mp.log10, ((0, 1e300),)),
    "log1p": Oracle(mp.log1p, ((-1, 1e300),)),
    "log2": Oracle(lambda x: mp.log(x, 2), ((0, 1e300),)),
    "logb": Oracle(_logb, (_ALL,), (0, 0)),
    "norm3d": Oracle(_norm, (_ALL,) * 3),
    "norm4d": Oracle(_norm, (_ALL,) * 4),
    "normcdf": Oracle(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, ((-39, 10),)),
    "normcdfinv": Oracle(lambda p: -mp.sqrt(2) * _erfcinv(2 * p), ((0, 1),)),
    "pow": Oracle(mp.power, ((0, 1e30), (-9, 9))),
    "rcbrt": Oracle(lambda x: mp.sign(x) / mp.cbrt(abs(x)), (_ALL,)),
    "remainder": Oracle(_remainder, ((-1e30, 1e30), (-1e30, 1e30)), (0, 0)),
    "rhypot": Oracle(lambda x, y: 1 / _norm(x, y), (_ALL, _ALL)),
    "rnorm3d": Oracle(lambda *a: 1 / _norm(*a), (_ALL,) * 3),
    "rnorm4d": Oracle(lambda *a: 1 / _norm(*a), (_ALL,) * 4),
    "round": Oracle(_round, (_ALL,), (0, 0)),
    "rsqrt": Oracle(lambda x: 1 / mp.sqrt(x), ((0, 1e300),)),
    "sin": Oracle(mp.sin, ((-1e6, 1e6),)),
    "sinh": Oracle(mp.sinh, ((-700, 700),)),
    "sinpi": Oracle(mp.sinpi, ((-1e6, 1e6),)),
    "sqrt": Oracle(mp.sqrt, ((0, 1e300),), (0.5, 0.5)),
    "tan": Oracle(mp.tan, ((-1e6, 1e6),)),
    "tanh": Oracle(mp.tanh, ((-30, 30),)),
    # glibc states up to 10 ulp for tgamma in double; 5 is what it keeps here.
    "tgamma": Oracle(mp.gamma, ((-170.5, 171.6),), (2, 5)),
    "trunc": Oracle(_trunc, (_ALL,), (0, 0)),
    "y0": Oracle(lambda x: mp.bessely(0, x), ((0, 1000),), absolute=(0.0, 4e-16)),
    "y1": Oracle(lambda x: mp.bessely(1, x), ((0, 1000),), absolute=(0.0, 4e-16)),
}
"""Every built-in but ``nextafter``, whose exact value NumPy gives."""


def samples(name: str, dtype: type[np.floating[Any]], count: int = 200) -> list[Array]:
    """Argument arrays of one length: points spread evenly over the domain and points spread
    over the orders of magnitude in it, its ends and what lies next to them."""
    generator = np.random.default_rng([ord(c) for c in name])
    info = np.finfo(dtype)
    columns: list[Array] = []
    for low, high in ORACLES[name].domains:
        low, high = max(low, float(info.min)), min(high, float(info.max))
        even = generator.uniform(max(low, -1e15), min(high, 1e15), count)
        near = generator.uniform(max(low, -12), min(high, 12), count)
        exponent = generator.uniform(math.log2(float(info.smallest_subnormal)), 1023, count)
        spread = generator.choice([-1.0, 1.0], count) * 2.0**exponent
        halves = np.array([k / 2 for k in range(-9, 10)])
        with np.errstate(over="ignore"):  # float32 overflows to infinity, which is not inside
            points = np.concatenate([even, near, spread, halves]).astype(dtype)
        ends = np.array([low, high], dtype)
        ends = np.concatenate([ends, np.nextafter(ends, dtype(0.25))])
        points = np.concatenate([points, ends])
        # A domain's end may round to outside it in float32.
        inside = (points.astype(np.float64) >= low) & (points.astype(np.float64) <= high)
        columns.append(points[inside])
    length = max(len(c) for c in columns)
    return [generator.permutation(np.resize(c, length)) for c in columns]


def exact_values(name: str, arguments: list[Array]) -> list[Any]:
    """The exact results as mpf; None where the function has a pole or a NaN there."""
    points = tuple(tuple(map(float, a)) for a in arguments)
    return once(lambda: _exact_values(name, points), "exact values", name, points)


def _exact_values(name: str, arguments: tuple[tuple[float, ...], ...]) -> list[Any]:
    found: list[Any] = []
    with mp.workprec(PRECISION):
        for point in zip(*arguments, strict=True):
            try:
                value = ORACLES[name].exact(*map(mp.mpf, point))
            except (ValueError, ZeroDivisionError):
                value = None
            # Poles and complex values belong to the table of special values.
            regular = value is not None and not isinstance(value, mp.mpc) and mp.isfinite(value)
            found.append(value if regular else None)
    return found


def worst_error(name: str, arguments: list[Array], results: Array) -> tuple[float, str]:
    """The largest error in ulps beyond what ``absolute`` allows, and where it is. Results are
    compared with the exact value; overflow has to give infinity, underflow what is nearest."""
    dtype = results.dtype
    info = np.finfo(dtype)
    allowed = ORACLES[name].absolute[dtype.itemsize == 8]
    worst, where = 0.0, ""
    largest = mp.mpf(float(info.max))
    for k, exact in enumerate(exact_values(name, arguments)):
        if exact is None:
            continue
        got = float(results[k])
        if abs(exact) > largest * (1 + mp.mpf(2) ** -(info.nmant + 2)):
            error = 0.0 if got == math.copysign(math.inf, exact) else math.inf
        elif not math.isfinite(got):
            close = math.isinf(got) and abs(exact) > largest * (1 - 8 * mp.mpf(float(info.eps)))
            error = 0.0 if close else math.inf
        else:
            exponent = max(int(mp.frexp(abs(exact))[1]) - 1, int(info.minexp)) if exact else -2000
            ulp = mp.mpf(2) ** (max(exponent, int(info.minexp)) - info.nmant)
            distance = abs(mp.mpf(got) - exact)
            error = 0.0 if distance <= allowed else float(distance / ulp)
        if error > worst:
            point = ", ".join(repr(float(a[k])) for a in arguments)
            worst, where = error, f"{name}({point}) gave {got!r}, exact {mp.nstr(exact, 20)}"
    return worst, where


_I, _N = math.inf, math.nan

SPECIAL: dict[str, list[tuple[float, ...]]] = {
    "acos": [(1, 0), (2, _N), (-2, _N), (_N, _N)],
    "acosh": [(1, 0), (0.5, _N), (_I, _I), (-_I, _N), (_N, _N)],
    "asin": [(0, 0), (-0.0, -0.0), (2, _N), (_I, _N), (_N, _N)],
    "asinh": [(-0.0, -0.0), (_I, _I), (-_I, -_I), (_N, _N)],
    "atan": [(-0.0, -0.0), (_I, math.pi / 2), (-_I, -math.pi / 2), (_N, _N)],
    "atan2": [
        (0, 0, 0), (-0.0, 0, -0.0), (0, -0.0, math.pi), (-0.0, -0.0, -math.pi), (1, 0, math.pi / 2),
        (_I, _I, math.pi / 4), (_I, -_I, 3 * math.pi / 4), (1, _I, 0), (-1, -_I, -math.pi),
        (_N, 1, _N), (1, _N, _N),
    ],
    "atanh": [(-0.0, -0.0), (1, _I), (-1, -_I), (1.5, _N), (_N, _N)],
    "cbrt": [(-0.0, -0.0), (27, 3), (-8, -2), (_I, _I), (-_I, -_I), (_N, _N)],
    "ceil": [(-0.5, -0.0), (0.5, 1), (_I, _I), (-_I, -_I), (_N, _N)],
    "copysign": [(1, -0.0, -1), (-1, 0.0, 1), (0, -3, -0.0), (_I, -1, -_I), (_N, -1, _N)],
    "cos": [(0, 1), (-0.0, 1), (_I, _N), (_N, _N)],
    "cosh": [(0, 1), (_I, _I), (-_I, _I), (1e4, _I), (_N, _N)],
    "cospi": [(0, 1), (0.5, 0), (1, -1), (1.5, 0), (-1, -1), (1e30, 1), (_I, _N), (_N, _N)],
    "cyl_bessel_i0": [(0, 1), (_I, _I), (-_I, _I), (1e4, _I), (_N, _N)],
    "cyl_bessel_i1": [(0, 0), (-0.0, -0.0), (_I, _I), (-_I, -_I), (-1e4, -_I), (_N, _N)],
    "erf": [(-0.0, -0.0), (_I, 1), (-_I, -1), (_N, _N)],
    "erfc": [(0, 1), (_I, 0), (-_I, 2), (_N, _N)],
    "erfcinv": [(0, _I), (2, -_I), (1, 0), (-0.5, _N), (2.5, _N), (_N, _N)],
    "erfcx": [(0, 1), (_I, 0), (-_I, _I), (-1e3, _I), (_N, _N)],
    "erfinv": [(0, 0), (-0.0, -0.0), (1, _I), (-1, -_I), (1.5, _N), (-_I, _N), (_N, _N)],
    "exp": [(0, 1), (_I, _I), (-_I, 0), (1e4, _I), (-1e4, 0), (_N, _N)],
    "exp10": [(0, 1), (2, 100), (_I, _I), (-_I, 0), (1e4, _I), (_N, _N)],
    "exp2": [(0, 1), (3, 8), (_I, _I), (-_I, 0), (1e4, _I), (_N, _N)],
    "expit": [(0, 0.5), (-0.0, 0.5), (_I, 1), (-_I, 0), (-1e4, 0), (1e4, 1), (_N, _N)],
    "expm1": [(-0.0, -0.0), (_I, _I), (-_I, -1), (_N, _N)],
    "fabs": [(-0.0, 0.0), (-3, 3), (-_I, _I), (_N, _N)],
    "fdim": [(3, 1, 2), (1, 3, 0), (_I, _I, 0), (_I, -_I, _I), (_N, 1, _N), (1, _N, _N)],
    "fdivide": [(1, 0, _I), (-1, 0, -_I), (1, -0.0, -_I), (0, 0, _N), (_I, _I, _N), (1, _I, 0)],
    "floor": [(-0.0, -0.0), (-0.5, -1), (_I, _I), (-_I, -_I), (_N, _N)],
    "fma": [(2, 3, 4, 10), (_I, 0, 1, _N), (_I, 1, -_I, _N), (0, 1, _N, _N), (1, -0.0, -0.0, -0.0)],
    "fmax": [(1, _N, 1), (_N, 1, 1), (_N, _N, _N), (-_I, 2, 2), (3, 2, 3), (2, 3, 3)],
    "fmin": [(1, _N, 1), (_N, 1, 1), (_N, _N, _N), (_I, 2, 2), (3, 2, 2), (2, 3, 2)],
    "fmod": [
        (5, 3, 2), (-5, 3, -2), (5, -3, 2), (1, 0, _N), (_I, 1, _N), (1, _I, 1), (-0.0, 1, -0.0),
        (_N, 1, _N), (1, _N, _N),
    ],
    "hypot": [(3, 4, 5), (_I, _N, _I), (_N, -_I, _I), (_N, 1, _N), (-0.0, 0, 0)],
    "j0": [(0, 1), (_I, 0), (_N, _N)],
    "j1": [(0, 0), (-0.0, -0.0), (_I, 0), (_N, _N)],
    "lgamma": [(1, 0), (2, 0), (0, _I), (-1, _I), (_I, _I), (-_I, _I), (_N, _N)],
    "log": [(1, 0), (0, -_I), (-0.0, -_I), (-1, _N), (_I, _I), (_N, _N)],
    "log10": [(1, 0), (100, 2), (0, -_I), (-1, _N), (_I, _I), (_N, _N)],
    "log1p": [(-0.0, -0.0), (-1, -_I), (-2, _N), (_I, _I), (_N, _N)],
    "log2": [(1, 0), (8, 3), (0, -_I), (-1, _N), (_I, _I), (_N, _N)],
    "logb": [(1, 0), (-8, 3), (0, -_I), (_I, _I), (-_I, _I), (_N, _N)],
    "nextafter": [(1, 1, 1), (_N, 1, _N), (1, _N, _N), (_I, _I, _I)],
    "norm3d": [(0, 0, 0, 0), (1, 2, 2, 3), (_I, _N, 0, _I), (_N, 0, 0, _N), (0, 0, -_I, _I)],
    "norm4d": [(0, 0, 0, 0, 0), (1, 1, 1, 1, 2), (0, _N, _I, 0, _I), (0, 0, 0, _N, _N)],
    "normcdf": [(0, 0.5), (_I, 1), (-_I, 0), (-1e3, 0), (1e3, 1), (_N, _N)],
    "normcdfinv": [(0, -_I), (1, _I), (0.5, 0), (-0.5, _N), (1.5, _N), (_N, _N)],
    "pow": [
        (_N, 0, 1), (1, _N, 1), (0, -1, _I), (-0.0, -1, -_I), (-2, 3, -8), (-2, 0.5, _N),
        (_I, -1, 0), (-_I, 3, -_I), (-1, _I, 1), (0.5, _I, 0), (0.5, -_I, _I), (_N, 1, _N),
    ],
    "rcbrt": [(0, _I), (-0.0, -_I), (8, 0.5), (_I, 0), (-_I, -0.0), (_N, _N)],
    "remainder": [
        (5, 3, -1), (5, 2, 1), (7, 2, -1), (1, 0, _N), (_I, 1, _N), (1, _I, 1), (-0.0, 1, -0.0),
        (_N, 1, _N),
    ],
    "rhypot": [(3, 4, 0.2), (0, 0, _I), (_I, _N, 0), (_N, 1, _N)],
    "rnorm3d": [(0, 0, 0, _I), (0, 3, 4, 0.2), (_I, _N, 0, 0), (_N, 0, 0, _N)],
    "rnorm4d": [(0, 0, 0, 0, _I), (1, 1, 1, 1, 0.5), (0, _N, _I, 0, 0), (0, 0, 0, _N, _N)],
    "round": [
        (0.5, 1), (-0.5, -1), (1.5, 2), (2.5, 3), (-2.5, -3), (-0.2, -0.0), (_I, _I), (_N, _N),
    ],
    "rsqrt": [(4, 0.5), (0, _I), (-0.0, -_I), (-1, _N), (_I, 0), (_N, _N)],
    "sin": [(-0.0, -0.0), (_I, _N), (-_I, _N), (_N, _N)],
    "sinh": [(-0.0, -0.0), (_I, _I), (-_I, -_I), (-1e4, -_I), (_N, _N)],
    "sinpi": [
        (0, 0), (-0.0, -0.0), (0.5, 1), (1, 0), (1.5, -1), (2, 0), (-0.5, -1), (-1, -0.0),
        (1e30, 0), (_I, _N), (_N, _N),
    ],
    "sqrt": [(-0.0, -0.0), (4, 2), (-1, _N), (_I, _I), (_N, _N)],
    "tan": [(-0.0, -0.0), (_I, _N), (_N, _N)],
    "tanh": [(-0.0, -0.0), (_I, 1), (-_I, -1), (1e3, 1), (_N, _N)],
    "tgamma": [(5, 24), (0, _I), (-0.0, -_I), (-1, _N), (_I, _I), (-_I, _N), (200, _I), (_N, _N)],
    "trunc": [(-0.5, -0.0), (2.7, 2), (-2.7, -2), (_I, _I), (_N, _N)],
    "y0": [(0, -_I), (-1, _N), (_I, 0), (_N, _N)],
    "y1": [(0, -_I), (-1, _N), (_I, 0), (_N, _N)],
}  # fmt: skip
"""Name → rows of arguments followed by the result, which is rounded to the type; the sign of a
zero counts."""
