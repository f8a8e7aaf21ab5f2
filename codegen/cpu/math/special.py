"""Built-ins that C libraries lack, in float64, each once per module as a function of its own.

The formulas are standard; where one comes from a paper, it is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcl.codegen.common import chebyshev as tables
from tcl.codegen.cpu.llvm.branches import either
from tcl.codegen.cpu.llvm.builder import Builder, Val, suffix
from tcl.codegen.cpu.llvm.convert import saturated
from tcl.codegen.cpu.math import vector
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.tools import call_formula, lane_by_lane, rarely

_NAN, _INF = math.nan, math.inf


def call(b: Builder, name: str, arguments: Sequence[Val]) -> Val:
    """``name`` of float64 scalars or lanes."""
    arguments = b.level(*arguments)
    symbol = f"tcl_{name}_{suffix('double', arguments[0].lanes)}"
    return call_formula(b, symbol, _FORMULAS[name], arguments)


def _special(name: str, argument: Number) -> Number:
    return Number(argument.b, call(argument.b, name, [argument.value]))


def _builtin(name: str, argument: Number) -> Number:
    """Another built-in: our formula, or the C library's function in every lane."""
    if not vector.covers(name, "double"):
        return lane_by_lane(name, argument)
    return Number(argument.b, vector.call(argument.b, name, [argument.value], "double"))


def _either(test: Test, then: Callable[[], Number], otherwise: Callable[[], Number]) -> Number:
    """One side only is run, of lanes those that some lane needs."""
    b = test.b
    if test.value.lanes > 1:
        nothing = Number(b, b.spread(b.constant(0.0, "double"), test.value.lanes))
        return rarely(test, rarely(~test, nothing, otherwise), then)
    return Number(b, either(b, test.value, lambda: then().value, lambda: otherwise().value, "then"))


def _chebyshev(t: Number, coefficients: Sequence[float]) -> Number:
    """Clenshaw's recurrence."""
    twice = t + t
    before, last = t.like(0.0), t.like(coefficients[-1])
    for c in reversed(coefficients[1:-1]):
        before, last = last, twice.fma(last, t.like(c) - before)
    return t.fma(last, t.like(coefficients[0]) - before)


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


def _erfcx(x: Number) -> Number:
    a = x.abs()
    near = (a > 1e300).choose(x.like(1e300), a)
    t = (near - 3.75) / (near + 3.75)
    positive = _chebyshev(t, tables.ERFCX) / (a + a + 1.0)

    def negative() -> Number:
        e = _exp_of_square(x, 1.0)
        return (x < -26.7).choose(x.like(_INF), e + e - positive)

    return _either(x < 0.0, negative, lambda: positive)


def _normcdf(x: Number) -> Number:
    half_root = 0.7071067811865476

    def left_tail() -> Number:
        p = _special("erfcx", x * -half_root) * 0.5 * _exp_of_square(x, -0.5)
        return (x < -39.0).choose(x.like(0.0), p)

    return _either(x < -1.0, left_tail, lambda: _builtin("erfc", x * -half_root) * 0.5)


_HALF_ROOT_PI = 0.886226925452758


def _erfinv_central(x: Number) -> Number:
    """erfinv for |x| <= 1/2: its power series, then Newton's method on erf."""
    s = x * x
    series = s.fma(x.like(0.0867072), x.like(0.1276)).fma(s, x.like(0.2320136665))
    y = x * series.fma(s, x.like(_HALF_ROOT_PI))
    for _ in range(3):
        y = y - (_builtin("erf", y) - x) * (_builtin("exp", y * y) * _HALF_ROOT_PI)
    return y


def _erfcinv_tail(c: Number) -> Number:
    """erfcinv for 0 < c <= 1/2: Winitzki's closed form ("A handy approximation for the error
    function and its inverse", 2008), then Newton's method on log(erfc), which is nearly as
    exact in the farthest tail as near the middle."""
    a = 0.147
    log = _builtin("log", c * (-c + 2.0))
    u = log * 0.5 + 2 / (math.pi * a)
    y = ((u * u - log / a).sqrt() - u).sqrt()
    log_c = _builtin("log", c)
    for _ in range(3):
        e = _special("erfcx", y)
        error = _builtin("log", e) - log_c - y * y
        y = y + error * (e * _HALF_ROOT_PI)
    return y


def _erfinv(x: Number) -> Number:
    a = x.abs()

    def tail() -> Number:
        y = _special("erfcinv_tail", -a + 1.0)
        y = (a == x.like(1.0)).choose(x.like(_INF), y)
        return (a > 1.0).choose(x.like(_NAN), y).copysign(x)

    return _either(a > 0.5, tail, lambda: _special("erfinv_central", x))


def _erfcinv(c: Number) -> Number:
    low = (c > 1.0).choose(-c + 2.0, c)

    def tail() -> Number:
        y = _special("erfcinv_tail", low)
        y = (low == c.like(0.0)).choose(c.like(_INF), y)
        y = (low < 0.0).choose(c.like(_NAN), y)
        return (c > 1.0).choose(-y, y)

    return _either(low < 0.5, tail, lambda: _special("erfinv_central", -c + 1.0))


def _normcdfinv(p: Number) -> Number:
    # The sum turns the negative zero of p = 1/2 into a positive one.
    return _special("erfcinv", p + p) * -1.4142135623730951 + 0.0


# Modified Bessel functions.


def _bessel(x: Number, small: Sequence[float], large: Sequence[float], odd: bool) -> Number:
    # Beyond 800 the result is infinite; infinity itself would make NaNs on the way.
    a = x.abs()
    a = (a > 800.0).choose(x.like(800.0), a)

    def near() -> Number:
        value = _chebyshev(a * 0.25 - 1.0, small) * _builtin("exp", a)
        return value * a / (a + a + 1.0) if odd else value / (a * 0.5 + 1.0)

    def far() -> Number:
        e = _builtin("exp", a * 0.5)  # squared below: exp(a) overflows before the function does
        return _chebyshev(x.like(16.0) / a - 1.0, large) / a.sqrt() * e * e

    value = _either(a <= 8.0, near, far)
    return value.copysign(x) if odd else value


_FORMULAS: dict[str, Callable[..., Number]] = {
    "cospi": _cospi,
    "cyl_bessel_i0": lambda x: _bessel(x, tables.I0_SMALL, tables.I0_LARGE, False),
    "cyl_bessel_i1": lambda x: _bessel(x, tables.I1_SMALL, tables.I1_LARGE, True),
    "erfcinv": _erfcinv,
    "erfcinv_tail": _erfcinv_tail,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "erfinv_central": _erfinv_central,
    "normcdf": _normcdf,
    "normcdfinv": _normcdfinv,
    "rcbrt": _rcbrt,
    "sinpi": _sinpi,
}
