"""Bessel functions of the first and second kind, orders 0 and 1, in float64.

Up to 8, polynomials, and for the second kind the logarithm that its series has; beyond, Hankel's
expansion by an amplitude and an angle, whose two series are polynomials, too (M. Abramowitz and
I. Stegun, "Handbook of mathematical functions", 1964, 9.1.13 and 9.2.5). Errors are within 4e-16
also where the functions are nearly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math import float64
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.tools import at_most, either_side, polynomial

_NEAR, _MIDDLE = 4.0, 8.0
_INF = math.inf


def _first(order: int, x: Number) -> Number:
    """J(x) for |x| <= 4."""
    p = polynomial(x * x * (2 / _NEAR**2) - 1.0, tables.BESSEL_J[order])
    return p * x if order else at_most(p, 1.0)


def _second(order: int, x: Number) -> Number:
    """Y(x) for x <= 4."""
    p = polynomial(x * x * (2 / _NEAR**2) - 1.0, tables.BESSEL_Y[order])
    log = float64.FORMULAS["log"](x) * (2 / math.pi)
    if order == 0:
        return log.fma(_first(order, x), p)
    pole = x.like(2 / math.pi) / x
    result = p.fma(x, log.fma(_first(order, x), -pole))
    return (x == x.like(0.0)).choose(x.like(-_INF), result)


def _far(order: int, a: Number, second: bool) -> Number:
    """J(a) or Y(a) for a >= 8."""
    inverse = a.like(1.0) / a
    z = inverse * inverse
    p = polynomial(z, tables.BESSEL_P[order])
    q = polynomial(z, tables.BESSEL_Q[order]) * inverse
    sin, cos = (float64.FORMULAS[name](a) for name in ("sin", "cos"))
    # Cosine and sine of a less pi/4, or 3 pi/4, times the root of 2.
    c, s = (sin - cos, -sin - cos) if order else (sin + cos, sin - cos)
    wave = p.fma(s, q * c) if second else p.fma(c, -(q * s))
    result = (inverse * (1 / math.pi)).sqrt() * wave
    return (a == a.like(_INF)).choose(a.like(0.0), result)


def _beyond(order: int, a: Number, second: bool) -> Number:
    """J(a) or Y(a) for a >= 4."""
    table = (tables.BESSEL_Y_MIDDLE if second else tables.BESSEL_J_MIDDLE)[order]
    return either_side(
        a <= _MIDDLE,
        lambda: polynomial(a * 0.5 - 3.0, table),
        lambda: _far(order, a, second),
    )


def _j(order: int, x: Number) -> Number:
    a = x.abs()

    def beyond() -> Number:
        result = _beyond(order, a, False)
        return (x < 0.0).choose(-result, result) if order else result

    return either_side(a <= _NEAR, lambda: _first(order, x), beyond)


def _y(order: int, x: Number) -> Number:
    return either_side(x <= _NEAR, lambda: _second(order, x), lambda: _beyond(order, x, True))


FORMULAS: dict[str, Callable[..., Number]] = {
    "j0": lambda x: _j(0, x),
    "j1": lambda x: _j(1, x),
    "y0": lambda x: _y(0, x),
    "y1": lambda x: _y(1, x),
}
