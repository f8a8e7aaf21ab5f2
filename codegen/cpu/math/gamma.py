"""The gamma function and its logarithm in float64.

The gamma function is C. Lanczos's formula ("A precision approximation of the gamma function",
1964), whose last factor is a quotient of polynomials; its exponent is carried in two numbers. The
logarithm is Stirling's series from 8 on, and a polynomial below, where the recurrence leads to
1/2 .. 3, so that it is right beside its zeros 1 and 2. Negative arguments are reflected.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math import float64
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.scale import times_power
from tcl.codegen.cpu.math.tools import at_least, at_most, floor, polynomial, rarely

_SHIFT, _G = 6.0, 6.5
"""The logarithm is that of ``y + _SHIFT``, half less than Lanczos's ``g``."""
_TINY = 1e-300
"""Magnitudes up to which gamma is ``1 / x``."""


def _rising(count: int) -> tuple[float, ...]:
    """The coefficients of y (y + 1) ... (y + count - 1) without the first, which is 0."""
    found = [1]
    for k in range(1, count):
        found = [k * a + b for a, b in zip([*found, 0], [0, *found], strict=True)]
    return tuple(map(float, found))


_DIVISOR = _rising(10)


def _exponent(y: Number) -> tuple[Number, Number]:
    """(y - 1/2) * log(y + 6) - (y + 6) as a sum of two numbers."""
    z = y + _SHIFT
    lost = y - (z - _SHIFT)
    log, low = float64.long_log(z)
    power = y - 0.5
    product = power * log
    low = power.fma(log, -product) + power * low
    high = product - z
    part = high - product
    low = low + ((product - (high - part)) - (z + part))
    # What z lost changes the logarithm, and the sum.
    return high, low - lost * _G / z


def _exp(high: Number, low: Number, factor: Number) -> Number:
    """exp(high + low) * factor."""
    r, n, shifted = float64.reduced(at_least(at_most(high, 710.0), -1000.0), 2046)
    return times_power(polynomial(r + low, (1.0, 1.0, *tables.EXP)) * factor, n, shifted)


def _sin_pi(x: Number) -> Number:
    """sin(pi * x) for finite x; 0 at whole numbers."""
    n = x.rint()
    rest = x - n
    angle = rest.fma(x.like(math.pi), rest * 1.2246467991473532e-16)  # pi in two parts
    half = n * 0.5
    sin = float64.FORMULAS["sin"](angle)
    return (floor(half) == half).choose(sin, -sin)


def _tgamma(x: Number) -> Number:
    a = at_most(x.abs(), 190.0)
    one, near = x.like(1.0), a < 1.0
    y = near.choose(a + 1.0, a)
    high, low = _exponent(y)
    top, bottom = polynomial(y, tables.GAMMA), y * polynomial(y, _DIVISOR)
    limit = x.like(tables.GAMMA_LIMIT)
    factor = near.choose(limit.fma(bottom, top), top) / near.choose(bottom * a, bottom)
    usual = _exp(high, low, factor + near.choose(x.like(0.0), limit))

    def others() -> Number:
        sin = _sin_pi(x) * (top / bottom + limit) * near.choose(one, a)
        result = _exp(-high, -low, x.like(math.pi) / sin)
        result = (floor(x) == x).choose(x.like(math.nan), result)
        # By the recurrence, and as long as 1 is all there is of gamma(1 + x).
        return (a < _TINY).choose(one / x, result)

    return rarely(x < _TINY, usual, others)


def _lgamma(x: Number) -> Number:
    a = x.abs()
    one = x.like(1.0)
    near, far = a < 0.5, a >= 8.0
    # Below 8, y is a + 1, a, or a less a whole number.
    y, product = near.choose(a + 1.0, a), near.choose(a, one)
    for k in range(1, 6):
        step = a - float(k)
        reached = ~far & (a >= k + 2.0)
        y = reached.choose(step, y)
        product = reached.choose(product * step, product)
    log = float64.FORMULAS["log"](far.choose(a, product))
    inverse = one / far.choose(a, y + 1.25)
    t = (y - 1.25) * inverse
    middle = (y - 1.0) * (y - 2.0) * polynomial(t, tables.LGAMMA)
    series = inverse * polynomial(inverse * inverse, tables.LGAMMA_FAR)
    series = series + (math.log(2 * math.pi) - 1) / 2
    large = (a - 0.5).fma(log - 1.0, series)
    usual = far.choose(large, middle + near.choose(-log, log))

    def reflected() -> Number:
        # log(pi / (a * sin(pi * a))) - lgamma(a); near 0, lgamma(a) = lgamma(y) - log(a).
        sin = _sin_pi(x).abs() * near.choose(one, a)
        log = float64.FORMULAS["log"](x.like(math.pi) / sin)
        result = log - near.choose(middle, usual)
        result = (a < _TINY).choose(usual, result)
        return (floor(x) == x).choose(x.like(math.inf), result)

    return rarely(x < 0.0, usual, reflected)


FORMULAS: dict[str, Callable[..., Number]] = {"lgamma": _lgamma, "tgamma": _tgamma}
