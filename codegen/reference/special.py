"""Built-in functions that the C library lacks, in float64.

Plain Python on floats; ``runtime`` compiles copies of these functions with Numba. Special
values follow the CUDA math API.
"""

from __future__ import annotations

import math

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

# (1 + 2x) erfcx(x) as a Chebyshev series in (x - 3.75) / (x + 3.75): the form of Shepherd and
# Laframboise, Math. Comp. 36 (1981) 249-253; coefficients computed with mpmath to 60 digits.
_ERFCX = (
    2.3551578691348034, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15,
    7.418235256624044e-17, 5.068148904796111e-17, -2.2370566594359995e-18, -2.187342944303018e-18,
)  # fmt: skip

# sqrt(x) exp(-x) I(x) for x >= 7.5 as Chebyshev series in 15/x - 1: the form of Clenshaw,
# Chebyshev Series for Mathematical Functions, NPL (1962); coefficients computed with mpmath.
_BESSEL_I0 = (
    0.8049615288309274, 0.003614965629507184, 7.989434849615765e-05, 3.6723085579787957e-06,
    2.9047249979295804e-07, 3.572986298342276e-08, 5.496206433277458e-09,
    6.375852652604571e-10, -8.9467635526777e-11, -8.589018024286946e-11,
    -2.3592452851493253e-11, 3.962362370312661e-13, 2.496025587050405e-12,
    5.841120341034275e-13, -1.5900739205333122e-13, -1.0040234629571769e-13,
    4.4817856274543086e-15, 1.393962781343318e-14, 7.977058701710581e-16,
    -1.948626124619807e-15, -2.2027283818577277e-16, 2.9460579474634674e-16,
    3.6925551244513826e-17, -4.887021979195771e-17, -4.4779059553502124e-18,
    8.70014831767234e-18,
)  # fmt: skip
_BESSEL_I1 = (
    0.7772400707120519, -0.010445474582794222, -0.0001278210702431606, -4.910010648742919e-06,
    -3.543793511875199e-07, -4.137870969770798e-08, -6.236798177256202e-09,
    -7.423008087449786e-10, 8.40085922164424e-11, 9.057652551775546e-11,
    2.5731861666240417e-11, -7.760098934200601e-14, -2.5956960471078523e-12,
    -6.408307942727855e-13, 1.566532593609323e-13, 1.0623369062507246e-13,
    -3.249686285179893e-15, -1.4490467677391727e-14, -1.0167904208708472e-15,
    2.0044029267970092e-15, 2.5424759165678695e-16, -3.014722626418192e-16,
    -4.212189131760929e-17, 4.9973434282812216e-17, 5.276680967284132e-18,
    -8.919487866983108e-18,
)  # fmt: skip

# Starting values of erfinv: M. Giles, Approximating the erfinv function, GPU Computing Gems
# (2012), single-precision polynomials in w = -log(1 - x*x), below and above w = 5.
_GILES_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_GILES_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def chebyshev(coefficients: tuple[float, ...], t: float) -> float:
    """Sum of a Chebyshev series at ``t`` in [-1, 1] by Clenshaw's recurrence."""
    after = 0.0
    current = 0.0
    for k in range(len(coefficients) - 1, 0, -1):
        after, current = current, 2.0 * t * current - after + coefficients[k]
    return t * current - after + 0.5 * coefficients[0]


def polynomial(coefficients: tuple[float, ...], t: float) -> float:
    """Value of a polynomial, highest power first, by Horner's rule."""
    total = 0.0
    for k in range(len(coefficients)):
        total = total * t + coefficients[k]
    return total


def erfcx(x: float) -> float:
    """exp(x*x) * erfc(x)."""
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
    return chebyshev(_ERFCX, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


def refine_erf(y: float, residual: float) -> float:
    """One Halley step for erf(y) = z or erfc(y) = z, ``residual`` = erf(y) - z or z - erfc(y);
    both have f''/f' = -2y."""
    newton = residual / (_TWO_OVER_SQRT_PI * _exp(-y * y))
    return y - newton / (1.0 + y * newton)


def erfinv_start(x: float, complement: float) -> float:
    """erfinv(x) to about 1e-6 for 0 <= x < 1 - 1e-7, given ``complement`` = 1 - x."""
    w = -_log(complement * (1.0 + x))
    if w < 5.0:
        return x * polynomial(_GILES_CENTRE, w - 2.5)
    return x * polynomial(_GILES_TAIL, _sqrt(w) - 3.0)


def erfcinv_tail(z: float) -> float:
    """y with erfc(y) = z for 0 < z <= 0.01: Newton's method on log(erfc(y)), which is nearly a
    parabola, in the form log(erfcx(y)) - y*y that neither underflows nor cancels badly."""
    target = _log(z)
    y = _sqrt(-target - _log(_SQRT_PI * _sqrt(-target)))
    for _ in range(4):
        scaled = erfcx_positive(y)
        y = y + (_log(scaled) - y * y - target) * scaled * (0.5 * _SQRT_PI)
    return y


def erfinv(x: float) -> float:
    """y with erf(y) = x; NaN outside [-1, 1]."""
    a = _fabs(x)
    if not a <= 1.0:
        return _NAN
    if a == 1.0:
        return _copysign(_INF, x)
    if a > 0.5:
        return _copysign(erfcinv_upper(1.0 - a), x)
    y = erfinv_start(a, 1.0 - a)
    for _ in range(2):
        y = refine_erf(y, _erf(y) - a)
    return _copysign(y, x)


def erfcinv_upper(z: float) -> float:
    """y with erfc(y) = z for 0 < z <= 0.5."""
    if z <= 0.01:
        return erfcinv_tail(z)
    y = erfinv_start(1.0 - z, z)
    for _ in range(2):
        y = refine_erf(y, z - _erfc(y))
    return y


def erfcinv(z: float) -> float:
    """y with erfc(y) = z; NaN outside [0, 2]."""
    if not 0.0 <= z <= 2.0:
        return _NAN
    if z == 0.0:
        return _INF
    if z <= 0.5:
        return erfcinv_upper(z)
    return erfinv(1.0 - z)  # the difference is exact


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
    """Modified Bessel function I of order 0: power series (DLMF 10.25.2) below 7.5."""
    x = _fabs(x)
    if x <= 7.5:
        quarter = 0.25 * x * x
        total = 1.0
        for k in range(36, 0, -1):  # all terms are positive: Horner's rule loses nothing
            total = 1.0 + total * quarter / (float(k) * float(k))
        return total
    return scaled_bessel(_BESSEL_I0, x)


def cyl_bessel_i1(x: float) -> float:
    """Modified Bessel function I of order 1, as ``cyl_bessel_i0``."""
    a = _fabs(x)
    if a <= 7.5:
        quarter = 0.25 * a * a
        total = 1.0
        for k in range(36, 0, -1):
            total = 1.0 + total * quarter / (float(k) * float(k + 1))
        return 0.5 * x * total
    return _copysign(scaled_bessel(_BESSEL_I1, a), x)


def scaled_bessel(coefficients: tuple[float, ...], x: float) -> float:
    """series(15/x - 1) * exp(x) / sqrt(x) for ``x`` >= 7.5, halving exp against overflow."""
    if x != x or x == _INF:
        return x
    value = chebyshev(coefficients, 15.0 / x - 1.0) / _sqrt(x)
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
