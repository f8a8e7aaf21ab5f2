"""float32 formulas in float64 arithmetic, for functions whose steps lose more digits than float32
has to spare. Errors before the last rounding are under 2**-32, so results are within 0.51 ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.tools import (
    at_least,
    at_most,
    bits,
    floor,
    is_nan,
    log_edges,
    negative,
    polynomial,
    rarely,
    round_shifted,
    split,
    with_sign,
)

_LN2_HIGH, _LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""The logarithm of 2: 42 bits, and the rest."""
_NAN, _INF = math.nan, math.inf


def wide(formula: Callable[..., Number]) -> Callable[..., Number]:
    """A formula of float64, rounded to float32 at the end."""
    return lambda *xs: formula(*(x.to("double") for x in xs)).to("float")


# The exponential functions.


def _exp_pieces(x: Number) -> tuple[Number, Number, Number, Number]:
    """For x = n log(2) + r and |x| < 700: cosh(r) - 1, sinh(r), 2**n and 2**-n."""
    n, shifted = round_shifted(x, math.log2(math.e), 1023)
    r = n.fma(x.like(-_LN2_LOW), n.fma(x.like(-_LN2_HIGH), x))
    square = r * r
    sinh = (r * square).fma(polynomial(square, tables.WIDE_SINH), r)
    up = (shifted << 52).number()
    # Exponents of reciprocals add to twice the bias.
    down = ((shifted << 52) ^ (0x7FF << 52)).number() * 0.5
    return square * polynomial(square, tables.WIDE_COSH), sinh, up, down


def _exp(x: Number) -> Number:
    cosh, sinh, up, _ = _exp_pieces(at_least(at_most(x, 200.0), -300.0))
    return up * (cosh + sinh + 1.0)


def _sinh(x: Number) -> Number:
    cosh, sinh, up, down = _exp_pieces(at_most(x.abs(), 100.0))
    result = (up - down).fma(cosh + 1.0, (up + down) * sinh) * 0.5
    return with_sign(result, x)


def _cosh(x: Number) -> Number:
    cosh, sinh, up, down = _exp_pieces(at_most(x.abs(), 100.0))
    return (up + down).fma(cosh + 1.0, (up - down) * sinh) * 0.5


# Logarithms.


def _log1p(t: Number) -> Number:
    """log(1 + t); exact to the last digits however small t is."""
    u = t + 1.0
    m, e = split(u)
    inside = e == t.like(0.0)
    f = inside.choose(t, m - 1.0)
    log = f * polynomial(f, tables.WIDE_LOG)
    return log_edges(u, inside.choose(log, e.fma(t.like(math.log(2)), log)))


def _asinh(x: Number) -> Number:
    a = x.abs()
    square = a * a
    log = _log1p(square / ((square + 1.0).sqrt() + 1.0) + a)
    return with_sign((a == x.like(_INF)).choose(a, log), x)


def _acosh(x: Number) -> Number:
    t = x - 1.0
    log = _log1p((t * (t + 2.0)).sqrt() + t)
    return (x < 1.0).choose(x.like(_NAN), log)


def _atanh(x: Number) -> Number:
    a = x.abs()
    return with_sign(_log1p((a + a) / (-a + 1.0)) * 0.5, x)


def _pow(x: Number, y: Number) -> Number:
    a = x.abs().to("double")
    m, e = split(a)
    f = m - 1.0
    log = e.fma(a.like(math.log(2)), f * polynomial(f, tables.WIDE_LOG))
    return pow_edges(x, y, _exp(y.to("double") * log).to("float"))


def pow_edges(x: Number, y: Number, power: Number) -> Number:
    """x**y as C has it, where ``power`` is right if x is positive and both are finite; then, it
    is the result, and nothing else is computed."""
    a, zero, one, infinity = (
        x.abs(),
        x.like(0.0),
        x.like(1.0),
        x.like(_INF),
    )
    plain = (x > 0.0) & (x < _INF) & (y.abs() < _INF)

    def edges() -> Number:
        # Powers of 0 and infinity; those with y = 0 and NaN come last.
        grows = negative(y).choose(one / a, a)
        result = ((a == zero) | (a == infinity)).choose(grows, power)
        # Infinite powers count as even.
        half = y * 0.5
        whole = floor(y) == y
        odd = whole & Test(y.b, y.b.compare("fcmp one", floor(half).value, half.value))
        result = with_sign(result, odd.choose(x, one))
        bad = (x < 0.0) & (x > -_INF) & ~whole
        result = bad.choose(x.like(_NAN), result)
        result = ((a == one) & (y.abs() == infinity)).choose(one, result)
        result = (is_nan(x) | is_nan(y)).choose(x + y, result)
        return ((x == one) | (y == zero)).choose(one, result)

    return rarely(~plain, power, edges)


# Inverse trigonometric functions.


def _asin_parts(x: Number) -> tuple[Test, Number]:
    """For |x| > 1/2, which is the test: asin(sqrt((1 - |x|) / 2)); asin(|x|) elsewhere."""
    a = x.abs()
    large = a > 0.5
    square = large.choose((x.like(1.0) - a) * 0.5, a * a)
    w = large.choose(square.sqrt(), a)
    return large, (w * square).fma(polynomial(square, tables.WIDE_ASIN), w)


def _asin(x: Number) -> Number:
    large, p = _asin_parts(x)
    return with_sign(large.choose(p.fma(x.like(-2.0), x.like(math.pi / 2)), p), x)


def _acos(x: Number) -> Number:
    large, p = _asin_parts(x)
    twice = p + p
    outer = (x < 0.0).choose(x.like(math.pi) - twice, twice)
    return large.choose(outer, x.like(math.pi / 2) - p.copysign(x))


def _atan_of_ratio(y: Number, x: Number) -> Number:
    """atan(y / x) for y >= 0 and x >= 0, where 0 / 0 is 0 and inf / inf is 1."""
    steep = y > x
    q = steep.choose(x, y) / steep.choose(y, x)
    q = (x == y).choose((x == x.like(0.0)).choose(x, x.like(1.0)), q)
    p = q * polynomial(q * q, tables.WIDE_ATAN)
    return steep.choose(x.like(math.pi / 2) - p, p)


def _atan2(y: Number, x: Number) -> Number:
    angle = _atan_of_ratio(y.abs(), x.abs())
    return with_sign(negative(x).choose(x.like(math.pi) - angle, angle), y)


# The rest.


def erfc_pieces(a: Number) -> tuple[Number, Number]:
    """``(a - 3) / (a + 3)`` and ``1 / (1 + 2a)`` by one division."""
    sum_, twice = a + 3.0, a + a + 1.0
    inverse = a.like(1.0) / (sum_ * twice)
    return (a - 3.0) * twice * inverse, sum_ * inverse


def _erfc(x: Number) -> Number:
    a = at_most(x.abs(), 10.3)
    t, factor = erfc_pieces(a)
    scaled = polynomial(t, tables.WIDE_ERFCX) * factor
    tail = scaled * _exp(-(a * a))
    return (x < 0.0).choose(x.like(2.0) - tail, tail)


def cbrt_pieces(x: Number, steps: int) -> tuple[Number, Number, Number]:
    """For a positive, normal x = m * 8**third: m, its inverse cube root, and third.

    A polynomial exact to 14 bits, then steps of third order: one gives 40 bits, two all.
    """
    significand, e = split(x)
    # The third of an integer, rounded down; the summand keeps multiples of 3 whole.
    third = floor((e + 0.5) * (1 / 3))
    k = third.fma(x.like(-3.0), e)
    one, two = k == x.like(1.0), k == x.like(2.0)
    # From sqrt(1/2) .. sqrt(2) to 1 .. 2, where the polynomial holds.
    low = significand < 1.0
    y = polynomial(low.choose(significand + significand, significand), tables.RCBRT)
    y = y * low.choose(x.like(2 ** (1 / 3)), x.like(1.0))
    y = y * one.choose(
        x.like(2 ** (-1 / 3)),
        two.choose(x.like(2 ** (-2 / 3)), x.like(1.0)),
    )
    m = significand * one.choose(x.like(2.0), two.choose(x.like(4.0), x.like(1.0)))
    for _ in range(steps):
        error = (m * y * y).fma(-y, x.like(1.0))
        y = (y * error).fma(error.fma(x.like(2 / 9), x.like(1 / 3)), y)
    return m, y, third


def _power_of_two(n: Number) -> Number:
    return (bits(n + (1.5 * 2.0**52 + 1023.0)) << 52).number()


def _cbrt_edge(x: Number) -> Test:
    return (x == x.like(0.0)) | (x.abs() == x.like(_INF)) | is_nan(x)


def _cbrt(x: Number) -> Number:
    m, y, third = cbrt_pieces(x.abs(), 1)
    return _cbrt_edge(x).choose(x, with_sign(m * y * y * _power_of_two(third), x))


def _rcbrt(x: Number) -> Number:
    _, y, third = cbrt_pieces(x.abs(), 1)
    return _cbrt_edge(x).choose(x.like(1.0) / x, with_sign(y * _power_of_two(-third), x))


def _hypot(x: Number, y: Number) -> Number:
    infinity = x.like(_INF)
    either = (x.abs() == infinity) | (y.abs() == infinity)
    return either.choose(infinity, x.fma(x, y * y).sqrt())


_WIDE: dict[str, Callable[..., Number]] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": lambda x: with_sign(_atan_of_ratio(x.abs(), x.like(1.0)), x),
    "atan2": _atan2,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cosh": _cosh,
    "erfc": _erfc,
    "hypot": _hypot,
    "log1p": _log1p,
    "normcdf": lambda x: _erfc(x * -(0.5**0.5)) * 0.5,
    "rcbrt": _rcbrt,
    "sinh": _sinh,
}
FORMULAS = {name: wide(formula) for name, formula in _WIDE.items()} | {"pow": _pow}
