"""Built-ins that are longer than the formulas of ``vector``, in float64 alone, each once per module
as a function of its own.

The formulas are standard; where one comes from a paper, it is named.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tcl.codegen.common import chebyshev as tables
from tcl.codegen.cpu.llvm.builder import Builder, Val, suffix
from tcl.codegen.cpu.llvm.convert import saturated
from tcl.codegen.cpu.math import bessel, gamma, vector
from tcl.codegen.cpu.math.coefficients import INVERSE, INVERSE_FAR
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.tools import at_most, call_formula, either_side, polynomial, rarely

_NAN, _INF = math.nan, math.inf


def call(b: Builder, name: str, arguments: Sequence[Val]) -> Val:
    """``name`` of float64 scalars or lanes."""
    arguments = b.level(*arguments)
    symbol = f"tcl_{name}_{suffix('double', arguments[0].lanes)}"
    return call_formula(b, symbol, _FORMULAS[name], arguments)


def _builtin(name: str, argument: Number) -> Number:
    """A formula of ``vector``."""
    return Number(argument.b, vector.call(argument.b, name, [argument.value], "double"))


@functools.cache
def _monomials(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """The same sum of Chebyshev polynomials as one of powers. These tables' values are not far
    below the sums of magnitudes (4 times at most), so that Horner's rule, of half as many steps,
    loses nothing beside Clenshaw's."""
    total, before, last = [Fraction(0)] * len(coefficients), [Fraction(0)], [Fraction(1)]
    for k, c in enumerate(coefficients):
        for power, factor in enumerate(last):
            total[power] += Fraction(c) * factor
        following = [Fraction(0), *(f * (2 if k else 1) for f in last)]
        for power, factor in enumerate(before if k else ()):
            following[power] -= factor
        before, last = last, following
    return tuple(map(float, total))


def _chebyshev(t: Number, coefficients: tuple[float, ...]) -> Number:
    """The sum of Chebyshev polynomials."""
    return polynomial(t, _monomials(coefficients))


def _rcbrt(x: Number) -> Number:
    y = x.like(1.0) / _builtin("cbrt", x)
    residual = (-(x * y * y)).fma(y, x.like(1.0))
    refined = (y * (1 / 3)).fma(residual, y)
    return ((y.abs() == x.like(_INF)) | (y == x.like(0.0))).choose(y, refined)


# Trigonometry in units of pi.


def _reduced(x: Number) -> tuple[Number, Number, Val]:
    """sin and cos of the angle within an eighth of a turn, and the quadrant from 0 to 3."""
    b = x.b
    turn = x % 2.0  # exact
    quarters = (turn + turn).rint()
    rest = quarters.fma(x.like(-0.5), turn)
    angle = rest.fma(x.like(math.pi), rest * 1.2246467991473532e-16)  # pi in two parts
    quadrant = b.binary("and", saturated(b, quarters.value, "i32"), b.constant(3, "i32"))
    return _builtin("sin", angle), _builtin("cos", angle), quadrant


def _by_quadrant(quadrant: Val, values: Sequence[Number]) -> Number:
    result = values[0]
    for k, value in enumerate(values[1:], 1):
        b = value.b
        here = Test(b, b.compare("icmp eq", quadrant, b.constant(k, "i32")))
        result = here.choose(value, result)
    return result


def _sinpi(x: Number) -> Number:
    sin, cos, quadrant = _reduced(x)
    result = _by_quadrant(quadrant, (sin, cos, -sin, -cos))
    zero = x.like(0.0)
    return (result == zero).choose(zero.copysign(x), result)


def _cospi(x: Number) -> Number:
    sin, cos, quadrant = _reduced(x)
    zero = x.like(0.0)
    return _by_quadrant(quadrant, (cos, zero - sin, -cos, sin)) + zero  # no negative zero


# The error function's relatives.


def _exp_of_square(x: Number, factor: float) -> Number:
    """``exp(factor * x * x)`` for a factor of 1 or -1/2, with the rounding of the square mended."""
    square = x * x
    lost = x.fma(x, -square)
    e = _builtin("exp", square * factor)
    return e.fma(lost * factor, e)


def _scaled_erfc(a: Number) -> Number:
    """exp(a * a) * erfc(a) for 0 <= a."""
    near = at_most(a, 1e300)
    t = (near - 3.75) / (near + 3.75)
    return _chebyshev(t, tables.ERFCX) / (a + a + 1.0)


def _erfcx(x: Number) -> Number:
    positive = _scaled_erfc(x.abs())

    def negative() -> Number:
        e = _exp_of_square(x, 1.0)
        return (x < -26.7).choose(x.like(_INF), e + e - positive)

    return rarely(x < 0.0, positive, negative)


def _erfc(x: Number) -> Number:
    a = at_most(x.abs(), 28.0)
    tail = _scaled_erfc(a) * _exp_of_square(a, -1.0)
    return (x < 0.0).choose(x.like(2.0) - tail, tail)


def _normcdf(x: Number) -> Number:
    a = at_most(x.abs(), 40.0)
    tail = _scaled_erfc(a * 0.5**0.5) * 0.5 * _exp_of_square(a, -0.5)
    return (x > 0.0).choose(x.like(1.0) - tail, tail)


def _inverted(x: Number, low: Number) -> Number:
    """y with erf(y) = x, where low = 1 - abs(x) has all its digits. The variables are M. Giles's
    ("Approximating the erfinv function", 2011): the logarithm of 1 - x*x, and, in the tails, a
    square root of one."""
    w = -_builtin("log", low * (-low + 2.0))
    usual = x * polynomial(w - 3.125, INVERSE)

    def tail() -> Number:
        s = (-_builtin("log", low)).sqrt()
        t = (s - 5.0) / (s + 5.0)
        y = (low == x.like(0.0)).choose(x.like(_INF), s * polynomial(t, INVERSE_FAR))
        return y.copysign(x)

    return rarely(~(w < 6.25), usual, tail)


def _erfinv(x: Number) -> Number:
    return _inverted(x, -x.abs() + 1.0)


def _erfcinv(c: Number) -> Number:
    return _inverted(-c + 1.0, (c > 1.0).choose(-c + 2.0, c))


def _normcdfinv(p: Number) -> Number:
    # The sum turns the negative zero of p = 1/2 into a positive one.
    return _erfcinv(p + p) * -1.4142135623730951 + 0.0


# Modified Bessel functions.


def _bessel(x: Number, small: tuple[float, ...], large: tuple[float, ...], odd: bool) -> Number:
    # Beyond 800 the result is infinite; infinity itself would make NaNs on the way.
    a = x.abs()
    a = (a > 800.0).choose(x.like(800.0), a)

    def near() -> Number:
        value = _chebyshev(a * 0.25 - 1.0, small) * _builtin("exp", a)
        return value * a / (a + a + 1.0) if odd else value / (a * 0.5 + 1.0)

    def far() -> Number:
        e = _builtin("exp", a * 0.5)  # squared below: exp(a) overflows before the function does
        return _chebyshev(x.like(16.0) / a - 1.0, large) / a.sqrt() * e * e

    value = either_side(a <= 8.0, near, far)
    return value.copysign(x) if odd else value


_FORMULAS: dict[str, Callable[..., Number]] = {
    "cospi": _cospi,
    "cyl_bessel_i0": lambda x: _bessel(x, tables.I0_SMALL, tables.I0_LARGE, False),
    "cyl_bessel_i1": lambda x: _bessel(x, tables.I1_SMALL, tables.I1_LARGE, True),
    "erfc": _erfc,
    "erfcinv": _erfcinv,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "normcdf": _normcdf,
    "normcdfinv": _normcdfinv,
    "rcbrt": _rcbrt,
    "sinpi": _sinpi,
    **bessel.FORMULAS,
    **gamma.FORMULAS,
}
