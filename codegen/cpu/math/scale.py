"""Products with powers of two, as exponential functions end with them.

AVX-512 has an instruction for it, right for results that are subnormal or overflow and for infinite
exponents. Elsewhere, and for other numbers of lanes, powers are made of bits. Both round once, and
so give the same bits.
"""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Val
from tcl.codegen.cpu.llvm.transpose import joined, picked
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.tools import Bits, at_least, at_most, layout

_REGISTER = 512
"""Bits of the longest vector register."""
_CURRENT_ROUNDING = 4


def in_range(x: Number, low: float, high: float) -> Number:
    """The argument of an exponential function that is 0 below ``low`` and infinite above ``high``,
    where the powers of two lie in the range of ``times_power``. Both ends are far enough out not to
    change the result."""
    # What is infinite comes out so by itself, but 0 may not: polynomials become infinite there.
    return at_least(x if _native(x) else at_most(x, high), low)


def up_to(x: Number, high: float) -> Number:
    """The argument of an exponential function where larger ones change nothing, and the powers of
    two lie in the range of ``times_normal_power``."""
    return x if _native(x) else at_most(x, high)


def times_power(p: Number, n: Number, shifted: Bits) -> Number:
    """``p * 2**n`` for bits with ``n`` and twice the exponents' bias in the low half, as
    ``round_shifted`` gives them; it may be subnormal or overflow."""
    if _native(p):
        return _scalef(p, n)
    digits = layout(p).digits
    first = shifted >> 1
    second = shifted - first
    return p * (first << digits).number() * (second << digits).number()


def times_normal_power(p: Number, n: Number, shifted: Bits) -> Number:
    """Likewise, where ``2**n`` and the result are normal and the bits have the bias once."""
    if _native(p):
        return _scalef(p, n)
    return p * (shifted << layout(p).digits).number()


def _native(x: Number) -> bool:
    """Whether there is an instruction for so many lanes."""
    bits = x.value.lanes * (32 if x.type == "float" else 64)
    if bits % _REGISTER == 0:
        return "avx512f" in x.b.features
    return bits in (128, 256) and {"avx512f", "avx512vl"} <= x.b.features


def _scalef(p: Number, n: Number) -> Number:
    b = p.b
    left, right = b.level(p.value, n.value)
    lanes = min(left.lanes, _REGISTER // (32 if p.type == "float" else 64))
    parts = [
        _instruction(p, _part(p, left, first, lanes), _part(p, right, first, lanes))
        for first in range(0, left.lanes, lanes)
    ]
    return Number(b, joined(b, parts))


def _part(p: Number, value: Val, first: int, lanes: int) -> Val:
    if value.lanes == lanes:
        return value
    return picked(p.b, value, range(first, first + lanes))


def _instruction(p: Number, value: Val, exponent: Val) -> Val:
    bits = value.lanes * (32 if p.type == "float" else 64)
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if p.type == 'float' else 'pd'}.{bits}"
    everywhere = Val("-1", f"i{max(8, value.lanes)}")
    rounding = (Val(str(_CURRENT_ROUNDING), "i32"),) if bits == _REGISTER else ()
    return p.b.call(name, p.type, value.lanes, value, exponent, value, everywhere, *rounding)
