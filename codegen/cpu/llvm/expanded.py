"""Operations that some machines have no instruction for, made of others.

x86-64 multiplies and adds with one rounding since FMA3, and rounds to integers since SSE4.1. For
machines without, LLVM calls the C library for each lane.
"""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Builder, Val

ROUNDINGS = frozenset("floor ceil trunc rint round".split())
"""To an integer: down, up, towards zero, to the nearest with ties to even, with ties away."""

_SPLITTER = 2.0**27 + 1


def fused(b: Builder, x: Val, y: Val, z: Val) -> Val:
    """``x * y + z`` for formulas: rounded once where the machine can, else with an error of at most
    a little more than half a unit in the last place, and in float64 like ``x * y + z`` where that
    overflows on the way."""
    if b.fused:
        return b.intrinsic("fma", x, y, z)
    x, y, z = b.level(x, y, z)
    if x.type == "float":  # the product of two float32 is exact in float64
        wide = [b.convert("fpext", v, "double") for v in (x, y, z)]
        total = b.binary("fadd", b.binary("fmul", wide[0], wide[1]), wide[2])
        return b.convert("fptrunc", total, "float")
    # The products' and the sum's errors, exactly (T. J. Dekker, A floating-point technique for
    # extending the available precision, 1971; D. E. Knuth, Seminumerical Algorithms, 4.2.2).
    (x1, x2), (y1, y2) = _halves(b, x), _halves(b, y)
    product = b.binary("fmul", x, y)
    lost = b.binary("fsub", b.binary("fmul", x1, y1), product)
    for left, right in ((x1, y2), (x2, y1), (x2, y2)):
        lost = b.binary("fadd", lost, b.binary("fmul", left, right))
    total = b.binary("fadd", product, z)
    part = b.binary("fsub", total, product)
    rest = b.binary("fsub", product, b.binary("fsub", total, part))
    rest = b.binary("fadd", rest, b.binary("fsub", z, part))
    result = b.binary("fadd", total, b.binary("fadd", rest, lost))
    return b.select(b.compare("fcmp ord", result, result), result, total)


def _halves(b: Builder, x: Val) -> tuple[Val, Val]:
    """The sum of two numbers of half as many digits."""
    scaled = b.binary("fmul", x, b.constant(_SPLITTER, x.type))
    high = b.binary("fsub", scaled, b.binary("fsub", scaled, x))
    return high, b.binary("fsub", x, high)


def rounded(b: Builder, name: str, x: Val) -> Val:
    """``x`` rounded to an integer; ``name`` is one of ``ROUNDINGS``."""
    if b.rounds:
        return b.intrinsic(name, x)
    one = b.constant(1.0, x.type)
    zero = b.constant(0.0, x.type)
    # From here on all numbers are integers, and sums are rounded to integers.
    whole = b.constant(2.0 ** (23 if x.type == "float" else 52), x.type)
    size = b.intrinsic("fabs", x)
    nearest = b.binary("fsub", b.binary("fadd", size, whole), whole)
    if name in ("floor", "ceil"):
        nearest = b.intrinsic("copysign", nearest, x)
        wrong = b.compare("fcmp ogt" if name == "floor" else "fcmp olt", nearest, x)
        step = b.select(wrong, one, zero)
        nearest = b.binary("fsub" if name == "floor" else "fadd", nearest, step)
    elif name in ("trunc", "round"):
        over = b.compare("fcmp ogt", nearest, size)
        nearest = b.binary("fsub", nearest, b.select(over, one, zero))
        if name == "round":
            half = b.compare("fcmp oge", b.binary("fsub", size, nearest), b.constant(0.5, x.type))
            nearest = b.binary("fadd", nearest, b.select(half, one, zero))
    small = b.compare("fcmp olt", size, whole)
    return b.select(small, b.intrinsic("copysign", nearest, x), x)
