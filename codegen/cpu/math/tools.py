"""What the formulas of ``vector`` are written with: bits, polynomials, choices.

Everything works on scalars and on any number of lanes alike, and gives the same bits for both.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from tcl.codegen.cpu.llvm import branches
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.entry import ALIGNED
from tcl.codegen.cpu.llvm.expanded import rounded
from tcl.codegen.cpu.math.formula import Number, Test
from tcl.common.dataclass import dataclass

PURE = " nounwind willreturn memory(none)"
INLINED = " alwaysinline"


@dataclass(frozen=True, slots=True)
class FloatFields:
    """Where the fields of a float type are."""

    integer: str
    """LLVM's integer type of the same size."""
    digits: int
    """Explicit bits of the significand."""
    bias: int

    @property
    def mask(self) -> int:
        """The explicit bits of the significand."""
        return (1 << self.digits) - 1


LAYOUTS = {"float": FloatFields("i32", 23, 127), "double": FloatFields("i64", 52, 1023)}


def _operate(name: str) -> Callable[[Bits, Bits | int], Bits]:
    def operator(left: Bits, other: Bits | int) -> Bits:
        right = other.value if isinstance(other, Bits) else left.b.constant(other, left.type)
        return Bits(left.b, left.b.binary(name, left.value, right))

    return operator


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """An integer of a float's size, or one per lane. Operators emit instructions."""

    b: Builder
    value: Val

    __add__ = _operate("add")
    __sub__ = _operate("sub")
    __and__ = _operate("and")
    __or__ = _operate("or")
    __xor__ = _operate("xor")
    __lshift__ = _operate("shl")
    __rshift__ = _operate("lshr")  # zeros come in from above

    def is_zero(self) -> Test:
        return Test(self.b, self.b.compare("icmp eq", self.value, self.b.constant(0, self.type)))

    @property
    def type(self) -> str:
        return self.value.type

    def number(self) -> Number:
        type_ = "float" if self.type == "i32" else "double"
        return Number(self.b, self.b.convert("bitcast", self.value, type_))


def layout(x: Number) -> FloatFields:
    return LAYOUTS[x.type]


def bits(x: Number) -> Bits:
    return Bits(x.b, x.b.convert("bitcast", x.value, layout(x).integer))


def bits_of(value: float, type_: str) -> int:
    """The bits of a constant, as a signed integer."""
    if type_ == "float":
        return int(struct.unpack("<i", struct.pack("<f", value))[0])
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Horner's rule; the constant term comes first."""
    result = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result.fma(x, x.like(c))
    return result


def floor(x: Number) -> Number:
    return Number(x.b, rounded(x.b, "floor", x.value))


def is_nan(x: Number) -> Test:
    return Test(x.b, x.b.compare("fcmp uno", x.value, x.value))


def negative(x: Number) -> Test:
    """Whether the sign is set, of zeros and NaN too."""
    raw = bits(x)
    return Test(x.b, x.b.compare("icmp slt", raw.value, x.b.constant(0, raw.type)))


def at_least(x: Number, limit: float) -> Number:
    """The larger of both; a NaN stays."""
    return (x < limit).choose(x.like(limit), x)


def at_most(x: Number, limit: float) -> Number:
    """The smaller of both; a NaN stays."""
    return (x > limit).choose(x.like(limit), x)


def with_sign(magnitude: Number, sign: Number) -> Number:
    """A non-negative value with the sign of another."""
    low = -(1 << (31 if sign.type == "float" else 63))
    return (bits(magnitude) | (bits(sign) & low)).number()


def logistic(x: Number, exp: Callable[[Number], Number]) -> Number:
    """1 / (1 + exp(-x)), by an exponential that does not overflow; what sum and division round
    away is put back."""
    e, one = exp(-x.abs()), x.like(1.0)
    above, below = (x < 0.0).choose(e, one), e + 1.0
    lost = (one - below) + e
    inverse = one / below
    ratio = above * inverse
    rest = (-ratio).fma(below, above) - ratio * lost
    return rest.fma(inverse, ratio)


def round_shifted(x: Number, factor: float, base: int = 0) -> tuple[Number, Bits]:
    """n = ``x * factor`` rounded to an integer, as a float, and bits whose low half is
    ``n + base``.

    The sum with 1.5 times 2**digits rounds at the units; the product must stay under
    2**(digits - 2). The bits that come with it are zero under shifts by ``digits``.
    """
    magic = x.like(1.5 * 2.0 ** layout(x).digits + base)
    shifted = x.fma(x.like(factor), magic)
    return shifted - magic, bits(shifted)


def exponent(x: Number) -> Number:
    """Of a positive, normal x."""
    form = layout(x)
    # The biased exponent, put into the digits of a power of two, makes a float of it.
    carrier = 2.0**form.digits
    e = ((bits(x) >> form.digits) | bits_of(carrier, x.type)).number()
    return e - (carrier + form.bias)


def split(x: Number) -> tuple[Number, Number]:
    """``x = m * 2**e`` for a positive, normal x: m from sqrt(1/2) to sqrt(2), and e, exactly."""
    form = layout(x)
    low = bits_of(0.5**0.5, x.type)
    one = form.bias << form.digits
    moved = bits(x) + (one - low)
    m = ((moved & form.mask) + low).number()
    return m, exponent(moved.number())


def log_edges(x: Number, result: Number) -> Number:
    """The logarithm of x, made right where x is not a positive number."""
    result = (x > 0.0).choose(result, x.like(math.nan))
    result = (x == x.like(0.0)).choose(x.like(-math.inf), result)
    return (x == x.like(math.inf)).choose(x, result)


def log_times(f: Number, rest: Number, whole: Number, parts: tuple[float, float]) -> Number:
    """``whole + (f + rest) * factor`` for a factor in two parts, with one rounding that counts."""
    high = f.fma(f.like(parts[0]), whole)
    lost = f.fma(f.like(parts[0]), whole - high)
    return f.fma(f.like(parts[1]), rest.fma(f.like(parts[0]), lost)) + high


def normal(x: Number) -> tuple[Number, Number]:
    """A positive x made normal by a power of two, and the exponent to add for it."""
    form = layout(x)
    tiny = x < 2.0 ** (1 - form.bias)
    up = form.digits + 2
    zero = x.like(0.0)
    return tiny.choose(x * 2.0**up, x), tiny.choose(x.like(-float(up)), zero)


def rarely(test: Test, usual: Number, otherwise: Callable[[], Number]) -> Number:
    """``usual`` where the test fails, as ``branches.rarely`` has it."""
    b = test.b
    return Number(b, branches.rarely(b, test.value, usual.value, lambda: otherwise().value))


def either_side(test: Test, then: Callable[[], Number], otherwise: Callable[[], Number]) -> Number:
    """Float64; of both sides, those are run that some lane needs."""
    nothing = Number(test.b, test.b.spread(test.b.constant(0.0, "double"), test.value.lanes))
    return rarely(test, rarely(~test, nothing, otherwise), then)


def call_formula(
    b: Builder,
    symbol: str,
    formula: Callable[..., Number],
    arguments: Sequence[Val],
    inlined: int = 0,
) -> Val:
    """The formula on arguments of one type, as a function ``symbol`` that is added to the module
    when first needed. One with fewer instructions than ``inlined`` is inlined always."""
    real, lanes = arguments[0].type, arguments[0].lanes
    if symbol not in b.defined:
        b.defined[symbol] = ""  # claims the name while the body asks for others
        inner = b.inner()
        parameters = [Val(f"%a{k}", real, lanes) for k in range(len(arguments))]
        result = formula(*(Number(inner, p) for p in parameters)).value
        lines = inner.finished()
        how = INLINED if len(lines) < inlined else ""
        own = [f"@{name}(" for name, text in b.defined.items() if INLINED not in text]
        if any(name in line for line in lines for name in own):
            how += f" {ALIGNED}"  # what it needs after a call waits on its stack
        head = f"define internal {result.ty} @{symbol}({', '.join(map(str, parameters))})"
        body = ["entry:", *inner.entry, *lines, f"  ret {result}", "}", ""]
        b.defined[symbol] = "\n".join([f"{head}{PURE}{how} {{", *body])
    return b.call(symbol, real, lanes, *arguments)


def lane_by_lane(name: str, *arguments: Number) -> Number:
    """The C library's float64 function in every lane."""
    b = arguments[0].b
    lanes = max(a.value.lanes for a in arguments)
    results = [
        b.call(name, "double", 1, *(b.lane(a.value, k) for a in arguments), note=PURE)
        for k in range(lanes)
    ]
    return Number(b, b.gather_lanes(results))
