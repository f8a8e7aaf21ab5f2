"""Built-in functions that the C library lacks, in float64.

Plain Python on floats; ``runtime`` compiles copies of these functions with Numba. Special
values follow the CUDA math API.
"""

from __future__ import annotations

import math

from tcl.codegen.common import chebyshev as tables
from tcl.codegen.reference.libm import LIBM

_cos, _copysign = LIBM["cos"], LIBM["copysign"]
_erf, _erfc, _exp, _fabs, _fma = LIBM["erf"], LIBM["erfc"], LIBM["exp"], LIBM["fabs"], LIBM["fma"]
_fmod, _log, _pow, _sin, _sqrt = LIBM["fmod"], LIBM["log"], LIBM["pow"], LIBM["sin"], LIBM["sqrt"]
_cbrt = LIBM["cbrt"]

_NAN, _INF = math.nan, math.inf
_SQRT_PI = 1.772453850905516
_TWO_OVER_SQRT_PI = 1.1283791670955126
_ONE_OVER_SQRT_PI = 0.5641895835477563
_SQRT_2 = 1.4142135623730951
# 1/sqrt(2) as the sum of two doubles.
_HALF_SQRT_2, _HALF_SQRT_2_LOW = 0.7071067811865476, -4.833646656726457e-17


def chebyshev(coefficients: tuple[float, ...], t: float) -> float:
    """Sum of a Chebyshev series at ``t`` in [-1, 1] by Clenshaw's recurrence."""
    after = 0.0
    current = 0.0
    for k in range(len(coefficients) - 1, 0, -1):
        after, current = current, 2.0 * t * current - after + coefficients[k]
    return t * current - after + coefficients[0]


def erfcx(x: float) -> float:
    if x != x:
        return x
    if x < 0.0:
        # 2 exp(x*x) - erfcx(-x), with the rounding error of x*x put back.
        if x < -26.7:
            return _INF
        square = x * x
        power = _exp(square)
        if power == _INF:
            return _INF
        return 2.0 * (power + power * _fma(x, x, -square)) - erfcx_positive(-x)
    return erfcx_positive(x)


def erfcx_positive(x: float) -> float:
    """``erfcx`` for ``x`` >= 0."""
    if x > 1e8:  # the next term of the asymptotic series is below rounding; 1 + 2x may overflow
        return _ONE_OVER_SQRT_PI / x
    return chebyshev(tables.ERFCX, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


def erfinv_central(x: float) -> float:
    """y with erf(y) = x for ``x`` from -0.5 to 0.5: its power series, then Newton's method."""
    s = x * x
    y = x * (((0.0867072 * s + 0.1276) * s + 0.2320136665) * s + 0.5 * _SQRT_PI)
    for _ in range(3):
        y = y - (_erf(y) - x) * (_exp(y * y) * (0.5 * _SQRT_PI))
    return y


def erfcinv_tail(c: float) -> float:
    """y with erfc(y) = c for 0 < c <= 0.5: Winitzki's formula, then Newton's method on
    log(erfc(y)), which is nearly a parabola, in the form log(erfcx(y)) - y*y that neither
    underflows nor cancels badly."""
    target, first = _log(c), _log(c * (2.0 - c))
    u = 0.5 * first + 2.0 / (math.pi * 0.147)
    y = _sqrt(_sqrt(u * u - first / 0.147) - u)
    for _ in range(3):
        scaled = erfcx_positive(y)
        y = y + (_log(scaled) - target - y * y) * (scaled * (0.5 * _SQRT_PI))
    return y


def erfinv(x: float) -> float:
    """y with erf(y) = x; NaN outside [-1, 1]."""
    a = _fabs(x)
    if a <= 0.5:
        return erfinv_central(x)
    if not a <= 1.0:
        return _NAN
    return _copysign(_INF if a == 1.0 else erfcinv_tail(1.0 - a), x)


def erfcinv(c: float) -> float:
    """y with erfc(y) = c; NaN outside [0, 2]."""
    if not 0.0 <= c <= 2.0:
        return _NAN
    if c == 0.0 or c == 2.0:
        return _INF if c == 0.0 else -_INF
    if c < 0.5:
        return erfcinv_tail(c)
    return -erfcinv_tail(2.0 - c) if c > 1.5 else erfinv_central(1.0 - c)


def normcdf(x: float) -> float:
    """Standard normal distribution function: erfc(-x / sqrt(2)) / 2."""
    if x != x:
        return x
    if x < -40.0:
        return 0.0
    if x > 40.0:
        return 1.0
    # erfc magnifies an error of its argument up to 1500 times: put the rounding error back.
    high = -x * _HALF_SQRT_2
    low = _fma(-x, _HALF_SQRT_2, -high) - x * _HALF_SQRT_2_LOW
    return 0.5 * (_erfc(high) - _TWO_OVER_SQRT_PI * _exp(-high * high) * low)


def normcdfinv(p: float) -> float:
    """x with normcdf(x) = p; NaN outside [0, 1]."""
    return 0.0 - _SQRT_2 * erfcinv(2.0 * p)  # not -0.0 at p = 1/2


def cyl_bessel_i0(x: float) -> float:
    """Modified Bessel function I of order 0."""
    a = _fabs(x)
    if a <= 8.0:
        return chebyshev(tables.I0_SMALL, 0.25 * a - 1.0) * _exp(a) / (0.5 * a + 1.0)
    return scaled_bessel(tables.I0_LARGE, a)


def cyl_bessel_i1(x: float) -> float:
    """Modified Bessel function I of order 1."""
    a = _fabs(x)
    if a <= 8.0:
        value = chebyshev(tables.I1_SMALL, 0.25 * a - 1.0) * _exp(a) * a / (a + a + 1.0)
        return _copysign(value, x)
    return _copysign(scaled_bessel(tables.I1_LARGE, a), x)


def scaled_bessel(coefficients: tuple[float, ...], x: float) -> float:
    """series(16/x - 1) * exp(x) / sqrt(x) for ``x`` >= 8, halving exp against overflow."""
    if x != x or x == _INF:
        return x
    value = chebyshev(coefficients, 16.0 / x - 1.0) / _sqrt(x)
    if x <= 709.0:
        return value * _exp(x)
    half = _exp(0.5 * x)
    return value * half * half


def sinpi(x: float) -> float:
    """sin(pi * x), exact at multiples of 1/2; the argument is reduced exactly."""
    r = _fmod(_fabs(x), 2.0)
    if r != r:
        return _NAN
    negative = r > 1.0
    if r >= 1.0:
        r = r - 1.0
    if r == 0.0:
        return _copysign(0.0, x)
    if r > 0.5:
        r = 1.0 - r
    value = _sin(math.pi * r) if r <= 0.25 else _cos(math.pi * (0.5 - r))
    return -value if negative != (x < 0.0) else value


def cospi(x: float) -> float:
    """cos(pi * x), exact at multiples of 1/2; the argument is reduced exactly."""
    r = _fmod(_fabs(x), 2.0)
    if r != r:
        return _NAN
    if r > 1.0:
        r = 2.0 - r
    negative = r > 0.5
    if negative:
        r = 1.0 - r
    if r == 0.5:
        return 0.0
    value = _cos(math.pi * r) if r <= 0.25 else _sin(math.pi * (0.5 - r))
    return -value if negative else value


def norm4d(a: float, b: float, c: float, d: float) -> float:
    """sqrt(a*a + b*b + c*c + d*d) without overflow on the way; inf if any argument is."""
    a, b, c, d = _fabs(a), _fabs(b), _fabs(c), _fabs(d)
    if a == _INF or b == _INF or c == _INF or d == _INF:
        return _INF
    scale = norm_scale(a, b, c, d)
    return root_of_squares(a * scale, b * scale, c * scale, d * scale) / scale


def rnorm4d(a: float, b: float, c: float, d: float) -> float:
    """1 / norm4d(a, b, c, d), also where that norm overflows."""
    a, b, c, d = _fabs(a), _fabs(b), _fabs(c), _fabs(d)
    if a == _INF or b == _INF or c == _INF or d == _INF:
        return 0.0
    scale = norm_scale(a, b, c, d)
    return scale * reciprocal(root_of_squares(a * scale, b * scale, c * scale, d * scale))


def norm_scale(a: float, b: float, c: float, d: float) -> float:
    """A power of two that keeps the squares of the scaled numbers in range."""
    largest = a
    for other in (b, c, d):
        if other > largest:
            largest = other
    if largest > 2.0**500:
        return 2.0**-600
    return 2.0**600 if largest < 2.0**-450 else 1.0


def root_of_squares(a: float, b: float, c: float, d: float) -> float:
    """sqrt(a*a + b*b + c*c + d*d)."""
    return _sqrt((a * a + b * b) + (c * c + d * d))


def norm3d(a: float, b: float, c: float) -> float:
    """sqrt(a*a + b*b + c*c), as ``norm4d``."""
    return norm4d(a, b, c, 0.0)


def rnorm3d(a: float, b: float, c: float) -> float:
    """1 / norm3d(a, b, c)."""
    return rnorm4d(a, b, c, 0.0)


def rhypot(a: float, b: float) -> float:
    """1 / hypot(a, b)."""
    return rnorm4d(a, b, 0.0, 0.0)


def reciprocal(x: float) -> float:
    """1 / x; infinite at a zero, where Python itself would raise."""
    return _copysign(_INF, x) if x == 0.0 else 1.0 / x


def rcbrt(x: float) -> float:
    """1 / cbrt(x), with one Newton step against the error of the C library's cbrt."""
    y = reciprocal(_cbrt(x))
    if x == 0.0 or y == 0.0:  # at zeros and infinities the step would give NaN
        return y
    return y + y * _fma(-(x * y * y), y, 1.0) / 3.0


def rsqrt(x: float) -> float:
    """1 / sqrt(x); NaN below 0."""
    return reciprocal(_sqrt(x))


def exp10(x: float) -> float:
    """10 ** x."""
    return _pow(10.0, x)


def expit(x: float) -> float:
    """1 / (1 + exp(-x)), without an exponential that overflows."""
    e = _exp(-_fabs(x))
    return (e if x < 0.0 else 1.0) / (1.0 + e)


def fdim(x: float, y: float) -> float:
    """x - y if that is positive, else 0; NaN if either is."""
    if x != x or y != y:
        return _NAN
    return x - y if x > y else 0.0


def fdivide(x: float, y: float) -> float:
    """x / y."""
    return x / y


def fmin(x: float, y: float) -> float:
    """The smaller number; a NaN counts as missing."""
    return x if x < y or y != y else y


def fmax(x: float, y: float) -> float:
    """The larger number; a NaN counts as missing."""
    return x if x > y or y != y else y
