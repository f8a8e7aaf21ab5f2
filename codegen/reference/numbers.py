"""Number helpers of the generated code: division, casts, 16-bit floats.

Plain Python on NumPy scalars. ``runtime`` compiles copies of these functions with Numba, so
they keep to what Numba types without surprises: every mixed operation is cast by hand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Number = Any
"""A NumPy scalar; under Numba the functions are specialised by type."""


def divide(a: Number, b: Number) -> Number:
    """int64 ``a / b`` truncated toward zero; 0 if ``b`` is 0, wrapping for the one overflow."""
    if b == 0:
        return np.int64(0)
    if b == -1:
        return np.int64(-a)
    quotient = a // b
    if quotient * b != a and (a < 0) != (b < 0):
        quotient = quotient + np.int64(1)
    return np.int64(quotient)


def modulo(a: Number, b: Number) -> Number:
    """int64 remainder of ``divide``, with the sign of ``a``; 0 if ``b`` is 0."""
    if b == 0 or b == -1:
        return np.int64(0)
    return np.int64(a - divide(a, b) * b)


def divide_unsigned(a: Number, b: Number) -> Number:
    """uint64 ``a / b``; 0 if ``b`` is 0."""
    if b == np.uint64(0):
        return np.uint64(0)
    return np.uint64(a // b)


def modulo_unsigned(a: Number, b: Number) -> Number:
    """uint64 ``a % b``; 0 if ``b`` is 0."""
    if b == np.uint64(0):
        return np.uint64(0)
    return np.uint64(a % b)


def doubles(a: Number) -> Number:
    """An array of float64 of the same shape."""
    return np.zeros(a.shape, np.float64)


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers of one type; NaN if either is."""
    return a if a < b or a != a else b


def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers of one type; NaN if either is."""
    return a if a > b or a != a else b


def select(condition: Number, a: Number, b: Number) -> Number:
    """``a`` if ``condition`` holds, else ``b``; both of one type."""
    return a if condition else b


def nudged(x: Number, by: Number, off: Number, seed: Number) -> Number:
    """float64 ``x`` moved by ``off`` and, unless float32 holds it and so nothing rounds it, by the
    part ``by`` of itself; both times a number from 2 to 6, or from -6 to -2. That number follows
    from the digits of ``x`` and from ``seed``, and has the other sign for ``-seed``. A seed of 0
    moves nothing."""
    if seed == 0.0:
        return x
    # Floating-point remainders take three times as long, and so do branches, which nothing
    # predicts. The digits are those of a number from 1 to 2, with its sign: what cancels in a sum
    # is not to be moved by the same number.
    digits = np.float64(x).view(np.int64) & np.int64(~(0x7FF << 52)) | np.int64(0x3FF << 52)
    drawn = np.int64(digits).view(np.float64) * abs(seed)
    drawn = drawn - np.floor(drawn) - 0.5
    times = math.copysign(1.0, seed) * (math.copysign(2.0, drawn) + 8.0 * drawn)
    part = 0.0 if np.float64(np.float32(x)) == x else x * by
    return x + (part + off) * times


def float_to_int(x: Number, low: Number, high: Number) -> Number:
    """int64: float64 ``x`` truncated, kept within the int64 bounds; 0 for NaN."""
    if x != x:
        return np.int64(0)
    # float64(high) may round up to 2**63: values below it still convert exactly.
    if x <= np.float64(low):
        return np.int64(low)
    if x >= np.float64(high):
        return np.int64(high)
    return np.int64(x)


def float_to_uint64(x: Number) -> Number:
    """uint64: float64 ``x`` truncated, kept within 0 and 2**64 - 1; 0 for NaN."""
    if x != x or x <= 0.0:
        return np.uint64(0)
    if x >= 18446744073709551616.0:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    if x >= 9223372036854775808.0:  # above int64: convert what exceeds 2**63
        return np.uint64(np.int64(x - 9223372036854775808.0)) + np.uint64(0x8000000000000000)
    return np.uint64(np.int64(x))


def odd_from_int64(v: Number) -> Number:
    """float64 near int64 ``v``, inexact results made odd, so that a second rounding to far
    fewer digits gives what one rounding of ``v`` would (Boldo and Melquiond, 2008)."""
    if np.int64(-(2**53)) <= v <= np.int64(2**53):
        return np.float64(v)
    kept = v >> np.int64(11)
    if (kept << np.int64(11)) != v:
        kept = kept | np.int64(1)
    return np.float64(kept) * 2048.0


def odd_from_uint64(v: Number) -> Number:
    """``odd_from_int64`` for uint64."""
    if v <= np.uint64(2**53):
        return np.float64(v)
    kept = v >> np.uint64(11)
    if (kept << np.uint64(11)) != v:
        kept = kept | np.uint64(1)
    return np.float64(kept) * 2048.0


def float16_value(bits: Number) -> Number:
    """float32 value of a float16's uint16 bits."""
    body = np.uint32(np.uint32(bits) & np.uint32(0x7FFF)) << np.uint32(13)
    if (np.uint32(bits) & np.uint32(0x7C00)) == np.uint32(0x7C00):
        body = body | np.uint32(0x7F800000)  # infinity or NaN
        magnitude = np.uint32(body).view(np.float32)
    else:
        # The exponent bias differs by 112; a subnormal product is exact as well.
        magnitude = np.uint32(body).view(np.float32) * np.float32(2.0**112)
    if np.uint32(bits) >= np.uint32(0x8000):
        return -magnitude
    return magnitude


def bfloat16_value(bits: Number) -> Number:
    """float32 value of a bfloat16's uint16 bits."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


def float16_bits(x: Number) -> Number:
    """uint16 bits of float64 ``x`` rounded to float16, ties to even."""
    return _narrow_bits(x, np.int64(-14), np.int64(10), np.int64(0x7C00), np.int64(0x7E00))


def bfloat16_bits(x: Number) -> Number:
    """uint16 bits of float64 ``x`` rounded to bfloat16, ties to even."""
    return _narrow_bits(x, np.int64(-126), np.int64(7), np.int64(0x7F80), np.int64(0x7FC0))


def round_float16(x: Number) -> Number:
    """float32 value of float64 ``x`` rounded to float16."""
    return float16_value(float16_bits(x))


def round_bfloat16(x: Number) -> Number:
    """float32 value of float64 ``x`` rounded to bfloat16."""
    return bfloat16_value(bfloat16_bits(x))


def _narrow_bits(
    x: Number, smallest: Number, digits: Number, infinity: Number, nan: Number
) -> Number:
    """Bits of ``x`` in a 16-bit format with ``digits`` fraction bits and the ``smallest``
    normal exponent."""
    pattern = np.float64(x).view(np.int64)
    sign = np.int64(0x8000) if pattern < 0 else np.int64(0)
    if x != x:
        return np.uint16(sign | nan)
    exponent = ((pattern >> np.int64(52)) & np.int64(0x7FF)) - np.int64(1023)
    if exponent > np.int64(200):
        return np.uint16(sign | infinity)
    if exponent < smallest:
        exponent = smallest
    scale = np.int64((np.int64(1023) + digits - exponent) << np.int64(52)).view(np.float64)
    # Adding and taking away 2**52 rounds to an integer, ties to even.
    fraction = np.int64((abs(x) * scale + 4503599627370496.0) - 4503599627370496.0)
    # A fraction that rounds up to the next power of two carries into the exponent by itself.
    bits = ((exponent - smallest) << digits) + fraction
    if bits > infinity:
        bits = infinity
    return np.uint16(sign | bits)
