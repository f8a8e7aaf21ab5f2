"""Division of all lanes by the same number, by way of its reciprocal.

A vector of quotients keeps the divider busy for long; this takes a few ordinary instructions. With
``r`` the rounded reciprocal of ``s``, ``q = x * r`` is off by a unit or two in the last place, and
``q + (x - q * s) * r``, with fused operations, is the rounded quotient (P. Markstein, Computation
of elementary functions on the IBM RISC System/6000 processor, 1990), but for subnormal and
overflowing intermediate results. So quotients outside of a middle range stay ``q``, which is within
two units, and is right for zeros, infinities and NaN; and divisors so small or large that their
reciprocal may overflow or be subnormal, and has fewer digits then, go to the divider.
"""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Builder, Val
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
    labels = b.new_label("multiply"), b.new_label("divide")
    after = b.new_label("divided")
    b.branch_if(_exponent_within(b, right, form, 100), *labels)
    b.start(labels[1])
    slow = b.binary("fdiv", left, right)
    slow_end = b.block
    b.branch(after)
    b.start(labels[0])
    fast = _by_reciprocal(b, left, right, b.binary("fdiv", one, right), form)
    fast_end = b.block
    b.branch(after)
    b.start(after)
    return b.phi([(slow, slow_end), (fast, fast_end)])


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
