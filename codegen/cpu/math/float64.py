"""float64 formulas. The logarithm is fdlibm's way of writing it (Sun Microsystems, 1993), with
coefficients of our own; pow carries its logarithm in two float64 numbers. Ranges of tangents and
angles are reduced by the identities of tan, atan and asin that W. J. Cody and W. Waite give
("Software manual for the elementary functions", 1980); what is added to a multiple of pi/4 is added
in the order that loses least.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math.float32_wide import cbrt_pieces, erfc_pieces, pow_edges
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.scale import times_normal_power, times_power
from tcl.codegen.cpu.math.tools import (
    Bits,
    at_least,
    at_most,
    bits,
    is_nan,
    lane_by_lane,
    log_edges,
    log_times,
    logistic,
    negative,
    normal,
    polynomial,
    rarely,
    round_shifted,
    split,
    with_sign,
)
from tcl.codegen.cpu.math.trigonometric import turned

# Tangents and angles.

HALF_PI_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi/2 as a sum of float64 numbers."""
PERIODIC_LIMIT = 2.0**21
"""Magnitudes up to which such parts are enough."""
_QUARTER, _QUARTER_LOW = HALF_PI_PARTS[0] / 2, HALF_PI_PARTS[1] / 2


def _reduced(x: Number) -> tuple[Number, Number, Bits]:
    """r, what it lost by rounding, and n, in the low bits, for x = n * pi/2 + r."""
    n, shifted = round_shifted(x, 2 / math.pi)
    high, low, last = (x.like(-part) for part in HALF_PI_PARTS)
    exact, product = n.fma(high, x), n * low
    r = exact + product
    part = r - exact
    lost = (exact - (r - part)) + (product - part) + n.fma(low, -product)
    return r, n.fma(last, lost), shifted


def _tan(x: Number) -> Number:
    r, lost, n = _reduced(x)
    square = r * r
    tan = (r * square).fma(polynomial(square, tables.TAN), r)
    tan = lost.fma(tan.fma(tan, x.like(1.0)), tan)
    odd = ~(n & 1).is_zero()
    usual = odd.choose(x.like(-1.0), tan) / odd.choose(tan, x.like(1.0))
    usual = (x == x.like(0.0)).choose(x, usual)
    return rarely(x.abs() >= PERIODIC_LIMIT, usual, lambda: lane_by_lane("tan", x))


def _angle(y: Number, x: Number) -> tuple[Number, Number, Number]:
    """For y >= 0 and x >= 0, a number n of eighths of a turn, t and a rest, whose sum is the angle
    of the point, if they are told apart; t is 0 where both are zero, or both infinite."""
    steep, same = y > x, y == x
    low, high = steep.choose(x, y), steep.choose(y, x)
    zero, one = x.like(0.0), x.like(1.0)
    # Of numbers whose sum may overflow, a quarter: what becomes subnormal by it is far too small.
    scale = (high > 2.0**1021).choose(x.like(0.25), one)
    low, high = low * scale, high * scale
    middle = (low + low > high) | (same & (high > 0.0))
    above = middle.choose(low - high, low)
    t = same.choose(zero, above) / same.choose(one, middle.choose(low + high, high))
    square = t * t
    rest = (t * square) * polynomial(square, tables.ATAN)
    eighths = middle.choose(one, zero)
    return (
        steep.choose(-eighths + 2.0, eighths),
        steep.choose(-t, t),
        steep.choose(-rest, rest),
    )


def _summed(eighths: Number, t: Number, rest: Number) -> Number:
    quarter, low = t.like(_QUARTER), t.like(_QUARTER_LOW)
    # With eighths of a turn, t is rounded once; without, it is the result's first part.
    high = eighths.fma(quarter, t)
    lost = eighths.fma(quarter, t - high)
    return high + (eighths.fma(low, rest) + lost)


def _atan(x: Number) -> Number:
    return with_sign(_summed(*_angle(x.abs(), x.like(1.0))), x)


def _atan2(y: Number, x: Number) -> Number:
    eighths, t, rest = _angle(y.abs(), x.abs())
    left = negative(x)
    eighths = left.choose(-eighths + 4.0, eighths)
    angle = _summed(eighths, left.choose(-t, t), left.choose(-rest, rest))
    return with_sign(angle, y)


def _asin_parts(x: Number) -> tuple[Test, Number, Number]:
    """For |x| > 1/2, which is the test: w = sqrt((1 - |x|) / 2) and asin(w) - w; elsewhere |x| and
    asin(|x|) - |x|."""
    a = x.abs()
    large = a > 0.5
    square = large.choose((x.like(1.0) - a) * 0.5, a * a)
    w = large.choose(square.sqrt(), a)
    return large, w, (w * square) * polynomial(square, tables.ASIN)


def _asin(x: Number) -> Number:
    large, w, rest = _asin_parts(x)
    twice = rest + rest - HALF_PI_PARTS[1]
    outer = (((-w - w) + _QUARTER) - twice) + _QUARTER
    return with_sign(large.choose(outer, w + rest), x)


def _acos(x: Number) -> Number:
    large, w, rest = _asin_parts(x)
    half, low = x.like(HALF_PI_PARTS[0]), HALF_PI_PARTS[1]
    inner = half - (w.copysign(x) + (rest.copysign(x) - low))
    left = half - (w + (rest - low))
    return large.choose((x < 0.0).choose(left + left, (w + rest) * 2.0), inner)


_LOG2_E = math.log2(math.e)
_LN2_HIGH, _LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
_LOG10_2_HIGH, _LOG10_2_LOW = 0.30102999566395283, 2.8363394551044964e-14
"""log(2) and log10(2): 42 bits, whose products with exponents are exact, and the rest."""
_LN10_PARTS = 2.302585092994046, -2.1707562233822494e-16
_LOG10_E_PARTS = 0.4342944819032518, 1.098319650216765e-17
_LOG2_E_PARTS = 1.4426950408889634, 2.0355273740931033e-17
_INF = math.inf

# The exponential functions.


def reduced(x: Number, base: int) -> tuple[Number, Number, Bits]:
    """r and n of x = n log(2) + r, and bits with ``n + base`` in the low half."""
    n, shifted = round_shifted(x, _LOG2_E, base)
    return n.fma(x.like(-_LN2_LOW), n.fma(x.like(-_LN2_HIGH), x)), n, shifted


def _exp(x: Number) -> Number:
    r, n, shifted = reduced(at_least(at_most(x, 710.0), -746.0), 2046)
    return times_power(polynomial(r, (1.0, 1.0, *tables.EXP)), n, shifted)


def _power(r: Number, parts: tuple[float, float]) -> Number:
    """exp(r * factor) for a factor in two parts and a result from sqrt(1/2) to sqrt(2)."""
    s = r * parts[0]
    lost = r.fma(r.like(parts[1]), r.fma(r.like(parts[0]), -s))
    return (s * s).fma(polynomial(s, tables.EXP), lost) + s + 1.0


def _exp2(x: Number) -> Number:
    x = at_least(at_most(x, 1025.0), -1076.0)
    n, shifted = round_shifted(x, 1.0, 2046)
    return times_power(_power(x - n, (math.log(2), 2.3190468138462996e-17)), n, shifted)


def _exp10(x: Number) -> Number:
    x = at_least(at_most(x, 309.0), -324.0)
    n, shifted = round_shifted(x, math.log2(10), 2046)
    r = n.fma(x.like(-_LOG10_2_LOW), n.fma(x.like(-_LOG10_2_HIGH), x))
    return times_power(_power(r, _LN10_PARTS), n, shifted)


def _expm1(x: Number) -> Number:
    r, _, shifted = reduced(at_least(at_most(x, 710.0), -40.0), 1022)
    p = (r * r).fma(polynomial(r, tables.EXPM1), r)
    # Half of it, as 2**1024 is no float64.
    half = (shifted << 52).number()
    result = half.fma(p, half - 0.5)
    return (x.abs() < 1e-20).choose(x, result + result)


def _hyperbolic_pieces(x: Number) -> tuple[Number, Number, Number, Number]:
    """For x = n log(2) + r from 0 to 710.4759: cosh(r), sinh(r), a quarter of ``2**n + 2**-n`` and
    of ``2**n - 2**-n``, as 2**1025 is no float64."""
    r, _, shifted = reduced(x, 1021)
    square = r * r
    sinh = (r * square).fma(polynomial(square, tables.SINH), r)
    cosh = square.fma(polynomial(square, tables.COSH), x.like(1.0))
    head = shifted << 52
    up = head.number()
    # Exponents of reciprocals add to twice the bias; large x would leave the range.
    down = (head ^ (0x7FF << 52)).number() * 2.0**-5
    down = (x > 300.0).choose(x.like(0.0), down)
    return cosh, sinh, up + down, up - down


def _sinh(x: Number) -> Number:
    square = x * x
    near = (x * square).fma(polynomial(square, tables.SINH_NEAR), x)
    cosh, sinh, plus, minus = _hyperbolic_pieces(at_most(x.abs(), 710.4759))
    half = plus.fma(sinh, minus * cosh)
    return with_sign((x.abs() > 1.0).choose(half + half, near), x)


def _cosh(x: Number) -> Number:
    cosh, sinh, plus, minus = _hyperbolic_pieces(at_most(x.abs(), 710.4759))
    half = plus.fma(cosh, minus * sinh)
    return half + half


def _tanh(x: Number) -> Number:
    square = x * x
    near = (x * square).fma(polynomial(square, tables.TANH), x)
    r, n, shifted = reduced(at_most(x.abs() * 2.0, 40.0), 1023)
    e = times_normal_power(polynomial(r, (1.0, 1.0, *tables.EXP)), n, shifted)
    far = x.like(1.0) - x.like(2.0) / (e + 1.0)
    return with_sign((x.abs() > 0.55).choose(far, near), x)


# Logarithms.


def _log_rest(f: Number) -> Number:
    """log(1 + f) - f for 1 + f from sqrt(1/2) to sqrt(2)."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return s.fma(z.fma(polynomial(z, tables.LOG), half_square), -half_square)


def _log(x: Number) -> Number:
    scaled, less = normal(x)
    m, e = split(scaled)
    f, e = m - 1.0, e + less
    low = e.fma(x.like(_LN2_LOW), _log_rest(f)) + f
    return log_edges(x, e.fma(x.like(_LN2_HIGH), low))


def _log2(x: Number) -> Number:
    scaled, less = normal(x)
    m, e = split(scaled)
    f = m - 1.0
    return log_edges(x, log_times(f, _log_rest(f), e + less, _LOG2_E_PARTS))


def _log10(x: Number) -> Number:
    scaled, less = normal(x)
    m, e = split(scaled)
    f, e = m - 1.0, e + less
    rest = e.fma(x.like(_LOG10_2_LOW * math.log(10)), _log_rest(f))
    return log_edges(x, log_times(f, rest, e * _LOG10_2_HIGH, _LOG10_E_PARTS))


def _log1p(x: Number) -> Number:
    u = x + 1.0
    x_in_u = u - 1.0
    lost = (x.like(1.0) - (u - x_in_u)) + (x - x_in_u)
    m, e = split(u)
    f = m - 1.0
    low = e.fma(x.like(_LN2_LOW), _log_rest(f) + lost / u) + f
    result = log_edges(u, e.fma(x.like(_LN2_HIGH), low))
    return (x.abs() < 1e-20).choose(x, result)


# Inverse hyperbolic functions. Beyond 2**100, a square would overflow, and 1 does not count.

_HUGE = 2.0**100


def _asinh(x: Number) -> Number:
    a = x.abs()
    huge = a > _HUGE
    square = a * a
    t = huge.choose(a, square / ((square + 1.0).sqrt() + 1.0) + a)
    return with_sign(_log1p(t) + huge.choose(x.like(math.log(2)), x.like(0.0)), x)


def _acosh(x: Number) -> Number:
    huge = x > _HUGE
    t = x - 1.0
    t = huge.choose(x, (t * (t + 2.0)).sqrt() + t)
    log = _log1p(t) + huge.choose(x.like(math.log(2)), x.like(0.0))
    return (x < 1.0).choose(x.like(math.nan), log)


def _atanh(x: Number) -> Number:
    a = x.abs()
    return with_sign(_log1p((a + a) / (-a + 1.0)) * 0.5, x)


def long_log(a: Number) -> tuple[Number, Number]:
    """log(a) as a sum of two numbers with an error of 2**-64 of it, for positive a."""
    scaled, less = normal(a)
    m, e = split(scaled)
    e = e + less
    f = m - 1.0
    # s = f / (2 + f), its square and cube, each in two parts.
    divisor = f + 2.0
    s = f / divisor
    s_low = ((-s).fma(divisor, f) - s * (f - (divisor - 2.0))) / divisor
    z = s * s
    z_low = s.fma(s, -z) + (s + s) * s_low
    cube = s * z
    cube_low = s.fma(z, -cube) + s.fma(z_low, s_low * z)
    # log(m) = 2s + s**3 * (2/3 + z * p(z))
    tail = z * polynomial(z, tables.LOG_TAIL)
    factor = tail + 0.6666666666666666
    factor_low = (tail.like(0.6666666666666666) - factor) + tail + 3.700743415417188e-17
    product = cube * factor
    product_low = cube.fma(factor, -product) + cube.fma(factor_low, cube_low * factor)
    twice = s + s
    log = twice + product
    log_low = ((twice - log) + product) + (s_low + s_low + product_low)
    whole = e * _LN2_HIGH
    high = whole + log
    return high, ((whole - high) + log) + e.fma(a.like(_LN2_LOW), log_low)


def _pow(x: Number, y: Number) -> Number:
    a = x.abs()
    log, low = long_log(a)
    high = y * log
    low = y.fma(log, -high) + y * low
    # exp(high + low), where low is far smaller than high.
    low = (high.abs() < 800.0).choose(low, high.like(0.0))
    r, n, shifted = reduced(at_least(at_most(high, 710.0), -746.0), 2046)
    return pow_edges(x, y, times_power(polynomial(r + low, (1.0, 1.0, *tables.EXP)), n, shifted))


# The rest.


def _periodic(x: Number, quarters: int, name: str) -> Number:
    """The sine of x and a number of quarter turns; ``name`` is the C library's function."""
    n, shifted = round_shifted(x, 2 / math.pi)
    r = x
    for part in HALF_PI_PARTS:
        r = n.fma(x.like(-part), r)
    square = r * r
    sin = (r * square).fma(polynomial(square, tables.SIN), r)
    # 1 - square/2 is rounded, and what that lost is put back.
    half = square * 0.5
    most = x.like(1.0) - half
    cos = (square * square).fma(polynomial(square, tables.COS), (x.like(1.0) - most) - half) + most
    usual = turned(sin, cos, shifted + quarters)
    return rarely(x.abs() >= PERIODIC_LIMIT, usual, lambda: lane_by_lane(name, x))


def _erf(x: Number) -> Number:
    near = x.fma(polynomial(x * x, tables.ERF), x)
    a = at_most(x.abs(), 6.0)
    t, factor = erfc_pieces(a)
    r, n, shifted = reduced(-(a * a), 1023)
    e = times_normal_power(polynomial(r, (1.0, 1.0, *tables.EXP)), n, shifted)
    far = x.like(1.0) - e * (polynomial(t, tables.ERF_FAR) * factor)
    return (x.abs() > 1.0).choose(with_sign(far, x), near)


def _cbrt(x: Number) -> Number:
    a = x.abs()
    up, less = normal(a)
    m, y, third = cbrt_pieces(up, 2)
    # What the rounded root's cube lacks, divided by the derivative.
    root = m * y * y
    square = root * root
    lacking = (-square).fma(root, m) - root * root.fma(root, -square)
    root = (lacking * (y * y)).fma(x.like(1 / 3), root)
    third = less.fma(x.like(1 / 3), third)  # less is 0 or -54, so the product is whole
    scale = (bits(third + (1.5 * 2.0**52 + 1023.0)) << 52).number()
    edge = (a == x.like(0.0)) | (a == x.like(_INF)) | is_nan(x)
    return edge.choose(x, with_sign(root * scale, x))


FORMULAS: dict[str, Callable[..., Number]] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atan2": _atan2,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cos": lambda x: _periodic(x, 1, "cos"),
    "cosh": _cosh,
    "erf": _erf,
    "exp": _exp,
    "exp10": _exp10,
    "exp2": _exp2,
    "expit": lambda x: logistic(x, _exp),
    "expm1": _expm1,
    "log": _log,
    "log10": _log10,
    "log1p": _log1p,
    "log2": _log2,
    "pow": _pow,
    "rsqrt": lambda x: x.like(1.0) / x.sqrt(),
    "sin": lambda x: (x == x.like(0.0)).choose(x, _periodic(x, 0, "sin")),
    "sinh": _sinh,
    "tan": _tan,
    "tanh": _tanh,
}
