"""float32 trigonometric functions.

Arguments are reduced by Cody and Waite's method with a few parts of pi/2 while that is exact
enough, and by Payne and Hanek's beyond ("Radian reduction for trigonometric functions", 1983):
of 2/pi only the bits take part that can change the result, five sets of them for all exponents.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcl.codegen.cpu.math import coefficients as tables
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.codegen.cpu.math.tools import (
    Bits,
    bits,
    polynomial,
    rarely,
    round_shifted,
)

_TWO_OVER_PI = 2 / math.pi
_SINGLE_PARTS = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
_WIDE_PARTS = (1.5707963267948966, 6.123233995736766e-17)
"""pi/2 as a sum of float32 and of float64 numbers."""
_SINGLE_LIMIT = 2.0**15
_WIDE_LIMIT = 2.0**40
"""Magnitudes up to which such parts are enough for float32 results."""

_WINDOWS = tuple(
    (float.fromhex(a), float.fromhex(b), float.fromhex(c))
    for a, b, c in (
        ("0x1.45f3p-1", "0x1.b72722p-23", "0x1.529fc2757d1f5p-52"),
        ("0x1.06dc9c8p-17", "0x1.054a7fp-46", "0x1.3abe8fa9a6ee0p-75"),
        ("0x1.054a7fp-46", "0x1.3abe8f8p-75", "0x1.4d377036d8a56p-102"),
        ("0x1.84eafa3p-69", "0x1.d4d377p-98", "0x1.b6c52b3278872p-129"),
        ("0x1.f534ddcp-96", "0x1.b6c52ap-129", "0x1.3278872083fcap-153"),
    )
)
"""Row k serves arguments from ``2**(15 + 26 * k)`` on. It holds 2/pi without the bits that, times
such an argument, give multiples of 4: twice 29 bits, whose products with float32 numbers are exact
in float64, and 53 more."""


def _window(a: Number, part: int) -> Number:
    result = a.like(_WINDOWS[0][part])
    for k, row in enumerate(_WINDOWS[1:], 1):
        result = (a >= 2.0 ** (15 + 26 * k)).choose(a.like(row[part]), result)
    return result


def _reduce_large(x: Number) -> tuple[Number, Bits]:
    """As ``_reduce_wide``, from 2**15 on."""
    a = x.abs()
    first = x * _window(a, 0)
    first = first - (first * 0.25).rint() * 4.0  # exact, as are the differences below
    second = x * _window(a, 1)
    n = (first + second).rint()
    fraction = (first - n) + second
    fraction = x.fma(_window(a, 2), fraction)
    return fraction * (math.pi / 2), bits(n + 1.5 * 2.0**52)


def _reduce_wide(x: Number) -> tuple[Number, Bits]:
    """r and n, in the low bits, for a float32 x = n * pi/2 + r in float64, below 2**40."""
    n, shifted = round_shifted(x, _TWO_OVER_PI)
    r = n.fma(x.like(-_WIDE_PARTS[0]), x)  # exact
    return n.fma(x.like(-_WIDE_PARTS[1]), r), shifted


def _odd(n: Bits) -> Test:
    return ~(n & 1).is_zero()


def _wide_parts(r: Number) -> tuple[Number, Number]:
    square = r * r
    sin = (r * square).fma(polynomial(square, tables.WIDE_SIN), r)
    return sin, polynomial(square, (1.0, -0.5, *tables.WIDE_COS))


def turned(sin: Number, cos: Number, n: Bits) -> Number:
    """The sine of the angle n quarter turns further on."""
    digits = 31 if n.type == "i32" else 63
    chosen = _odd(n).choose(cos, sin)
    return (bits(chosen) ^ ((n >> 1) << digits)).number()


def _periodic(x: Number, quarters: int) -> Number:
    """The sine of x and a number of quarter turns."""
    n, shifted = round_shifted(x, _TWO_OVER_PI)
    r = x
    for part in _SINGLE_PARTS:
        r = n.fma(x.like(-part), r)
    square = r * r
    sin = (r * square).fma(polynomial(square, tables.SINGLE_SIN), r)
    cos = polynomial(square, (1.0, -0.5, *tables.SINGLE_COS))
    usual = turned(sin, cos, shifted + quarters)

    def large() -> Number:
        r, n = _reduce_large(x.to("double"))
        return turned(*_wide_parts(r), n + quarters).to("float")

    return rarely(x.abs() >= _SINGLE_LIMIT, usual, large)


def _ratio(r: Number, n: Bits) -> Number:
    sin, cos = _wide_parts(r)
    odd = _odd(n)
    return (odd.choose(-cos, sin) / odd.choose(sin, cos)).to("float")


def _tan(x: Number) -> Number:
    wide = x.to("double")
    usual = _ratio(*_reduce_wide(wide))
    result = rarely(x.abs() >= _WIDE_LIMIT, usual, lambda: _ratio(*_reduce_large(wide)))
    return (x == x.like(0.0)).choose(x, result)


# In units of pi.

_PI_HIGH, _PI_LOW = 3.1415927410125732, -8.742278000372485e-08


def _half_turns(x: Number) -> tuple[Number, Number, Bits]:
    """sin and cos of pi * r and n, in the low bits, for x = n/2 + r modulo 2."""
    x = (x * 0.5).rint().fma(x.like(-2.0), x)  # exact
    n, shifted = round_shifted(x, 2.0)
    r = n.fma(x.like(-0.5), x)
    square = r * r
    low = (r * square).fma(polynomial(square, tables.SINPI), r * _PI_LOW)
    sin = r.fma(x.like(_PI_HIGH), low)
    return sin, square.fma(polynomial(square, tables.COSPI), x.like(1.0)), shifted


def _sinpi(x: Number) -> Number:
    # A zero has the sign of x, as C23 has it and CUDA does.
    result = turned(*_half_turns(x))
    zero = x.like(0.0)
    return (result == zero).choose(zero.copysign(x), result)


def _cospi(x: Number) -> Number:
    sin, cos, n = _half_turns(x)
    return turned(sin, cos, n + 1) + 0.0  # no negative zero


FORMULAS: dict[str, Callable[..., Number]] = {
    "cos": lambda x: _periodic(x, 1),
    "cospi": _cospi,
    "sin": lambda x: (x == x.like(0.0)).choose(x, _periodic(x, 0)),
    "sinpi": _sinpi,
    "tan": _tan,
}
