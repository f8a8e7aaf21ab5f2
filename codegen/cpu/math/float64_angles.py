"""float64 tangent and inverse trigonometric functions.

Ranges are reduced by the identities of tan, atan and asin that W. J. Cody and W. Waite give
("Software manual for the elementary functions", 1980); what is added to a multiple of pi/4 is added
in the order that loses least.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.tools import (
    Bits,
    lane_by_lane,
    negative,
    polynomial,
    rarely,
    round_shifted,
    with_sign,
)

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


FORMULAS: dict[str, Callable[..., Number]] = {
    "acos": _acos,
    "asin": _asin,
    "atan": _atan,
    "atan2": _atan2,
    "tan": _tan,
}
