"""Conversions between scalar types, and between registers and memory."""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type, register_type
from tcl.codegen.cpu.llvm.transpose import picked
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16, FLOAT64, Kind, ScalarType


def cast(b: Builder, value: Val, source: ScalarType, target: ScalarType, native_half: bool) -> Val:
    """``value`` of type ``source`` as ``target``, by the rules of ``checked.Cast``."""
    to = register_type(target)
    if target.is_bool:
        if source.is_bool:
            return value
        test = "fcmp une" if source.is_float else "icmp ne"
        return b.compare(test, value, b.constant(0, value.type))
    if target.is_float:
        if target.bits == 16:
            return widen16(b, narrow16(b, value, source, target, native_half), target, native_half)
        return _to_float(b, value, source, to)
    if source.is_float:
        return saturated(b, value, to, target.kind is Kind.INT)
    if target.bits < source.bits:
        return b.convert("trunc", value, to)
    return b.convert("sext" if source.kind is Kind.INT else "zext", value, to)


def _to_float(b: Builder, value: Val, source: ScalarType, to: str) -> Val:
    if source.is_float:
        return b.convert("fpext" if to == "double" else "fptrunc", value, to)
    return b.convert("sitofp" if source.kind is Kind.INT else "uitofp", value, to)


def saturated(b: Builder, value: Val, to: str, signed: bool = True) -> Val:
    """A float as an integer of type ``to``: cut off, the nearest limit beyond the limits, and 0 for
    NaN. AArch64 has an instruction for it. For x86 LLVM takes vectors of the intrinsic apart and
    converts each lane, where these are four operations on vectors."""
    if value.lanes == 1 or "neon" in b.features:
        return b.intrinsic("fptosi.sat" if signed else "fptoui.sat", value, of=to)
    bits = int(to.removeprefix("i"))
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    digits = 24 if value.type == "float" else 53
    least = b.constant(low, value.type)
    inside = b.select(b.compare("fcmp ogt", value, least), value, least)  # NaN becomes the least
    if exact := bits <= digits:
        most = b.constant(high, value.type)
        inside = b.select(b.compare("fcmp olt", inside, most), inside, most)
    through = "i32" if bits < 32 else to
    name = "fptosi" if signed or bits < 32 else "fptoui"
    result = b.convert(name, inside, through)
    if not exact:
        beyond = b.compare("fcmp oge", value, b.constant(high + 1, value.type))
        result = b.select(beyond, b.constant(high, through), result)
    if signed:
        nan = b.compare("fcmp uno", value, value)
        result = b.select(nan, b.constant(0, through), result)
    return b.convert("trunc", result, to)


def from_memory(b: Builder, value: Val, t: ScalarType, native_half: bool) -> Val:
    """A loaded element as a value to compute with."""
    if t.is_bool:
        return b.compare("icmp ne", value, b.constant(0, "i8"))
    if t.is_float and t.bits == 16:
        return widen16(b, value, t, native_half)
    return value


def to_memory(b: Builder, value: Val, t: ScalarType, native_half: bool) -> Val:
    """A value as an element to store."""
    if t.is_bool:
        return b.convert("zext", value, memory_type(t))
    if t.is_float and t.bits == 16:
        return narrow16(b, value, t, t, native_half)
    return value


# The 16-bit floats: bits in memory, float32 in registers.


def widen16(b: Builder, bits: Val, t: ScalarType, native_half: bool) -> Val:
    """Bits of a 16-bit float → float32, exactly."""
    if t == FLOAT16 and native_half:
        if bits.lanes == 1 and "f16c" in b.features:
            return _widened_alone(b, bits)
        return b.convert("fpext", b.convert("bitcast", bits, "half"), "float")
    wide = b.convert("zext", bits, "i32")
    if t == BFLOAT16:
        return b.convert("bitcast", b.binary("shl", wide, b.constant(16, "i32")), "float")
    body = b.binary("and", wide, b.constant(0x7FFF, "i32"))
    body = b.binary("shl", body, b.constant(13, "i32"))
    # Scaling by 2**112 moves the exponent bias and makes subnormals right as well.
    scaled = b.binary("fmul", b.convert("bitcast", body, "float"), b.constant(2.0**112, "float"))
    special = b.binary("or", body, b.constant(0x7F800000, "i32"))
    is_special = b.compare("icmp uge", body, b.constant(0x7C00 << 13, "i32"))
    magnitude = b.select(is_special, special, b.convert("bitcast", scaled, "i32"))
    sign = b.binary("and", b.binary("shl", wide, b.constant(16, "i32")), _sign(b))
    return b.convert("bitcast", b.binary("or", magnitude, sign), "float")


def _widened_alone(b: Builder, bits: Val) -> Val:
    """A float16 → float32, of x86, by way of a register of integers. What LLVM puts into a vector
    on its own (``vpinsrw``) waits for what that register had before: of 10571 values that are added
    to one of 56 sums each, each took 16 cycles on a Cascade Lake."""
    wide = b.convert("zext", bits, "i32")
    words = b.op(f"insertelement <4 x i32> zeroinitializer, {wide}, i32 0", "i32", 4)
    halves = b.op(f"bitcast {words} to <8 x half>", "half", 8)
    some = picked(b, halves, range(4))
    # LLVM would make a scalar of a plain conversion again.
    name, plain = "llvm.experimental.constrained.fpext.v4f32.v4f16", '!"fpexcept.ignore"'
    text = b.call_text(name, "<4 x float>", some, Val(plain, "metadata"))
    return b.lane(b.op(text, "float", 4), 0)


def narrow16(
    b: Builder, value: Val, source: ScalarType, target: ScalarType, native_half: bool
) -> Val:
    """A value of type ``source`` → bits of a 16-bit float, rounded once to nearest, ties to
    even."""
    if source.is_float:
        single = _odd_single(b, value) if source == FLOAT64 else value
    elif source.bits <= 16:
        single = _to_float(b, value, source, "float")
    else:
        single = _odd_single(b, _odd_double(b, value, source))
    if target == BFLOAT16:
        return _narrow_bfloat(b, single)
    if native_half:
        return b.convert("bitcast", b.convert("fptrunc", single, "half"), "i16")
    return _narrow_half(b, single)


def _sign(b: Builder) -> Val:
    return b.constant(-(2**31), "i32")


def _odd_single(b: Builder, value: Val) -> Val:
    """float64 → float32 with inexact results made odd, so that rounding once more to far fewer
    digits gives what one rounding would (Boldo and Melquiond, "Emulation of FMA and correctly
    rounded sums", 2008)."""
    single = b.convert("fptrunc", value, "float")
    back = b.convert("fpext", single, "double")
    bits = b.convert("bitcast", single, "i32")
    away = b.compare("fcmp ogt", b.intrinsic("fabs", back), b.intrinsic("fabs", value))
    toward = b.binary("sub", bits, b.convert("zext", away, "i32"))
    odd = b.binary("or", toward, b.constant(1, "i32"))
    inexact = b.compare("fcmp one", back, value)
    return b.convert("bitcast", b.select(inexact, odd, bits), "float")


def _odd_double(b: Builder, value: Val, source: ScalarType) -> Val:
    """An integer → float64, likewise; exact up to 53 bits."""
    signed = source.kind is Kind.INT
    to_float = "sitofp" if signed else "uitofp"
    if source.bits < 64:
        return b.convert(to_float, value, "double")
    kept = b.binary("ashr" if signed else "lshr", value, b.constant(11, "i64"))
    lost = b.compare("icmp ne", b.binary("shl", kept, b.constant(11, "i64")), value)
    kept = b.binary("or", kept, b.convert("zext", lost, "i64"))
    large = b.binary("fmul", b.convert(to_float, kept, "double"), b.constant(2048.0, "double"))
    limit = b.constant(2**53, "i64")
    small = b.compare("icmp ule", value, limit)
    if signed:
        low = b.compare("icmp sge", value, b.constant(-(2**53), "i64"))
        small = b.binary("and", low, b.compare("icmp sle", value, limit))
    return b.select(small, b.convert(to_float, value, "double"), large)


def _narrow_bfloat(b: Builder, single: Val) -> Val:
    bits = b.convert("bitcast", single, "i32")
    shifted = b.binary("lshr", bits, b.constant(16, "i32"))
    even = b.binary("and", shifted, b.constant(1, "i32"))
    bias = b.binary("add", even, b.constant(0x7FFF, "i32"))
    rounded = b.binary("lshr", b.binary("add", bits, bias), b.constant(16, "i32"))
    # A NaN whose high bits are all zero would become an infinity.
    nan = b.binary("or", shifted, b.constant(0x40, "i32"))
    is_nan = b.compare("fcmp uno", single, single)
    return b.convert("trunc", b.select(is_nan, nan, rounded), "i16")


def _narrow_half(b: Builder, single: Val) -> Val:
    """float32 → float16 in integer arithmetic, for hosts without the instruction."""
    bits = b.convert("bitcast", single, "i32")
    sign = b.binary("and", bits, _sign(b))
    magnitude = b.binary("xor", bits, sign)
    # Normal results: rebias the exponent by -112 and round the 13 bits that go.
    even = b.binary("lshr", magnitude, b.constant(13, "i32"))
    even = b.binary("and", even, b.constant(1, "i32"))
    bias = b.binary("add", even, b.constant(0xFFF - (112 << 23), "i32"))
    normal = b.binary("lshr", b.binary("add", magnitude, bias), b.constant(13, "i32"))
    # Subnormal results: adding 0.5 leaves the rounded multiple of 2**-24 in the low bits.
    half = b.constant(0.5, "float")
    small = b.binary("fadd", b.convert("bitcast", magnitude, "float"), half)
    small_bits = b.convert("bitcast", small, "i32")
    subnormal = b.binary("sub", small_bits, b.constant(0x3F000000, "i32"))
    is_subnormal = b.compare("icmp ult", magnitude, b.constant(113 << 23, "i32"))
    result = b.select(is_subnormal, subnormal, normal)
    overflow = b.compare("icmp uge", magnitude, b.constant((127 + 16) << 23, "i32"))
    result = b.select(overflow, b.constant(0x7C00, "i32"), result)
    is_nan = b.compare("icmp ugt", magnitude, b.constant(0x7F800000, "i32"))
    result = b.select(is_nan, b.constant(0x7E00, "i32"), result)
    sign = b.binary("lshr", sign, b.constant(16, "i32"))
    return b.convert("trunc", b.binary("or", result, sign), "i16")
