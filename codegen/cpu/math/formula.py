"""Formulas on LLVM values that read like formulas."""

from __future__ import annotations

from collections.abc import Callable

from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.division import modulo
from tcl.codegen.cpu.llvm.expanded import fused, rounded
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """A bool, or one per lane."""

    b: Builder
    value: Val

    def choose(self, then: Number, otherwise: Number) -> Number:
        """``then`` where it holds; both are computed."""
        return Number(self.b, self.b.select(self.value, then.value, otherwise.value))

    def __or__(self, other: Test) -> Test:
        return Test(self.b, self.b.binary("or", self.value, other.value))

    def __and__(self, other: Test) -> Test:
        return Test(self.b, self.b.binary("and", self.value, other.value))

    def __invert__(self) -> Test:
        return Test(self.b, self.b.negation(self.value))


def _operate(name: str) -> Callable[[Number, Number | float], Number]:
    def operator(left: Number, other: Number | float) -> Number:
        right = other if isinstance(other, Number) else left.like(other)
        return Number(left.b, left.b.binary(name, left.value, right.value))

    return operator


def _compare(name: str) -> Callable[[Number, Number | float], Test]:
    def operator(left: Number, other: Number | float) -> Test:
        right = other if isinstance(other, Number) else left.like(other)
        return Test(left.b, left.b.compare(f"fcmp {name}", left.value, right.value))

    return operator


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A float32 or float64, or one per lane. Operators emit instructions."""

    b: Builder
    value: Val

    @property
    def type(self) -> str:
        """LLVM type of one lane."""
        return self.value.type

    def like(self, constant: float) -> Number:
        """A constant of the same type."""
        return Number(self.b, self.b.constant(constant, self.type))

    def to(self, type_: str) -> Number:
        """In ``float`` or ``double``."""
        name = "fpext" if type_ == "double" else "fptrunc"
        return Number(self.b, self.b.convert(name, self.value, type_))

    __add__ = _operate("fadd")
    __sub__ = _operate("fsub")
    __mul__ = _operate("fmul")
    __truediv__ = _operate("fdiv")

    def __mod__(self, other: Number | float) -> Number:
        right = other if isinstance(other, Number) else self.like(other)
        return Number(self.b, modulo(self.b, self.value, right.value))

    def __neg__(self) -> Number:
        text = f"fneg {self.value}"
        return Number(self.b, self.b.op(text, self.type, self.value.lanes))

    __lt__ = _compare("olt")
    __le__ = _compare("ole")
    __gt__ = _compare("ogt")
    __ge__ = _compare("oge")

    def __eq__(self, other: object) -> Test:  # type: ignore[override]
        if not isinstance(other, Number | float):
            return NotImplemented
        return _compare("oeq")(self, other)

    def _intrinsic(self, name: str, *others: Number) -> Number:
        return Number(self.b, self.b.intrinsic(name, self.value, *(o.value for o in others)))

    def abs(self) -> Number:
        return self._intrinsic("fabs")

    def sqrt(self) -> Number:
        return self._intrinsic("sqrt")

    def rint(self) -> Number:
        """Rounded to an integer, ties to even."""
        return Number(self.b, rounded(self.b, "rint", self.value))

    def maxnum(self, other: Number) -> Number:
        """The larger; a NaN loses."""
        return self._intrinsic("maxnum", other)

    def copysign(self, sign: Number) -> Number:
        return self._intrinsic("copysign", sign)

    def fma(self, factor: Number, summand: Number) -> Number:
        """``self * factor + summand``, rounded once, as ``fused`` says."""
        return Number(self.b, fused(self.b, self.value, factor.value, summand.value))

    def power_of_two(self) -> Number:
        """The power of two that a positive float64 starts with, kept to 2**-1000 .. 2**1000."""
        b = self.b
        low, high = self.like(2.0**-1000), self.like(2.0**1000)
        kept = (self < low).choose(low, (self > high).choose(high, self))
        bits = b.convert("bitcast", kept.value, "i64")
        head = b.binary("and", bits, b.constant(0x7FF << 52, "i64"))
        return Number(b, b.convert("bitcast", head, "double"))
