"""Formulas on LLVM values that read like formulas."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.cpu.llvm.builder import Builder, Val


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

    def _operate(self, name: str, other: Number | float) -> Number:
        right = other if isinstance(other, Number) else self.like(other)
        return Number(self.b, self.b.binary(name, self.value, right.value))

    def _compare(self, name: str, other: Number | float) -> Test:
        right = other if isinstance(other, Number) else self.like(other)
        return Test(self.b, self.b.compare(f"fcmp {name}", self.value, right.value))

    def __add__(self, other: Number | float) -> Number:
        return self._operate("fadd", other)

    def __sub__(self, other: Number | float) -> Number:
        return self._operate("fsub", other)

    def __mul__(self, other: Number | float) -> Number:
        return self._operate("fmul", other)

    def __truediv__(self, other: Number | float) -> Number:
        return self._operate("fdiv", other)

    def __mod__(self, other: Number | float) -> Number:
        return self._operate("frem", other)

    def __neg__(self) -> Number:
        text = f"fneg {self.value}"
        return Number(self.b, self.b.op(text, self.type, self.value.lanes))

    def __lt__(self, other: Number | float) -> Test:
        return self._compare("olt", other)

    def __le__(self, other: Number | float) -> Test:
        return self._compare("ole", other)

    def __gt__(self, other: Number | float) -> Test:
        return self._compare("ogt", other)

    def __ge__(self, other: Number | float) -> Test:
        return self._compare("oge", other)

    def __eq__(self, other: object) -> Test:  # type: ignore[override]
        if not isinstance(other, Number | float):
            return NotImplemented
        return self._compare("oeq", other)

    def _intrinsic(self, name: str, *others: Number) -> Number:
        return Number(self.b, self.b.intrinsic(name, self.value, *(o.value for o in others)))

    def abs(self) -> Number:
        return self._intrinsic("fabs")

    def sqrt(self) -> Number:
        return self._intrinsic("sqrt")

    def rint(self) -> Number:
        """Rounded to an integer, ties to even."""
        return self._intrinsic("rint")

    def maxnum(self, other: Number) -> Number:
        """The larger; a NaN loses."""
        return self._intrinsic("maxnum", other)

    def copysign(self, sign: Number) -> Number:
        return self._intrinsic("copysign", sign)

    def fma(self, factor: Number, summand: Number) -> Number:
        """``self * factor + summand``, rounded once."""
        return self._intrinsic("fma", factor, summand)

    def power_of_two(self) -> Number:
        """The power of two that a positive float64 starts with, kept to 2**-1000 .. 2**1000."""
        b = self.b
        low, high = self.like(2.0**-1000), self.like(2.0**1000)
        kept = (self < low).choose(low, (self > high).choose(high, self))
        bits = b.convert("bitcast", kept.value, "i64")
        head = b.binary("and", bits, b.constant(0x7FF << 52, "i64"))
        return Number(b, b.convert("bitcast", head, "double"))
