"""Quotients and remainders of floats where the machine's own way is slow.

Division of all lanes by the same number goes by way of its reciprocal. A vector of quotients keeps
the divider busy for long; this takes a few ordinary instructions. With ``r`` the rounded reciprocal
of ``s``, ``q = x * r`` is off by a unit or two in the last place, and ``q + (x - q * s) * r``, with
fused operations, is the rounded quotient (P. Markstein, Computation of elementary functions on the
IBM RISC System/6000 processor, 1990), but for subnormal and overflowing intermediate results. So
quotients outside of a middle range stay ``q``, which is within two units, and is right for zeros,
infinities and NaN; and divisors so small or large that their reciprocal may overflow or be
subnormal, and has fewer digits then, go to the divider.
"""

from __future__ import annotations

from tcl.codegen.cpu.llvm.branches import either, rarely
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.expanded import rounded
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Format:
    bits: int
    mantissa: int
    bias: int

    def power(self, exponent: int) -> int:
        """The bits of ``2**exponent``."""
        return (exponent + self.bias) << self.mantissa


_FORMATS = {"float": _Format(32, 23, 127), "double": _Format(64, 52, 1023)}


def quotient(b: Builder, left: Val, right: Val) -> Val:
    """``left / right`` for lanes on the left and one number on the right."""
    form = _FORMATS[right.type]
    one = b.constant(1.0, right.type)
    return either(
        b,
        _exponent_within(b, right, form, 100),
        lambda: _by_reciprocal(b, left, right, b.binary("fdiv", one, right), form),
        lambda: b.binary("fdiv", left, right),
        "multiply",
    )


def modulo(b: Builder, left: Val, right: Val) -> Val:
    """C's ``fmod``, exactly."""
    lanes = max(left.lanes, right.lanes)
    if lanes == 1 or not b.fused or _is_power_of_two(right):
        return b.binary("frem", left, right)
    return _modulo_of_vectors(b, *b.level(left, right))


def _modulo_of_vectors(b: Builder, left: Val, right: Val) -> Val:
    """With ``n`` the rounded quotient, cut off, ``left - n * right`` is a float, and one fused
    operation gives it; if rounding made n too large, by one then, it is negative. This holds while
    quotients have no more digits than floats. LLVM calls the C library for every lane; so do we
    where that or an infinity is in some lane.
    """
    form = _FORMATS[left.type]
    size, divisor = b.intrinsic("fabs", left), b.intrinsic("fabs", right)
    ratio = b.binary("fdiv", size, divisor)
    whole = rounded(b, "trunc", ratio)
    rest = b.intrinsic("fma", b.op(f"fneg {whole}", whole.type, whole.lanes), divisor, size)
    negative = b.compare("fcmp olt", rest, b.constant(0.0, rest.type))
    rest = b.select(negative, b.binary("fadd", rest, divisor), rest)
    near = b.compare("fcmp olt", ratio, b.constant(2.0**form.mantissa, ratio.type))
    exact = b.binary("and", near, b.compare("fcmp olt", rest, divisor))  # no NaN
    usual = b.intrinsic("copysign", rest, left)
    return rarely(b, b.negation(exact), usual, lambda: b.binary("frem", left, right))


def _is_power_of_two(divisor: Val) -> bool:
    """Whether it is a constant for which LLVM needs no call."""
    return divisor.text.startswith("0x") and not int(divisor.text, 16) & ((1 << 52) - 1)


def _by_reciprocal(b: Builder, x: Val, s: Val, r: Val, form: _Format) -> Val:
    q = b.binary("fmul", x, r)
    rest = b.intrinsic("fma", b.op(f"fneg {q}", q.type, q.lanes), s, x)
    corrected = b.intrinsic("fma", rest, r, q)
    # Neither the rest nor the product of anything is out of range.
    return b.select(_exponent_within(b, q, form, 60), corrected, q)


def _exponent_within(b: Builder, x: Val, form: _Format, exponent: int) -> Val:
    """Whether ``2**-exponent <= |x| < 2**exponent``."""
    integer = f"i{form.bits}"
    bits = b.convert("bitcast", x, integer)
    positive = b.binary("and", bits, Val(str((1 << form.bits - 1) - 1), integer))
    low, high = form.power(-exponent), form.power(exponent)
    above = b.binary("sub", positive, Val(str(low), integer))
    return b.compare("icmp ult", above, Val(str(high - low), integer))
