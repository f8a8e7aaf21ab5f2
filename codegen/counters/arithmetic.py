"""The instructions that values take on a GPU.

What a function of CUDA's takes was read in the machine code that NVRTC 13.5 makes for sm_90, less
that of a plain sum, without the paths for rare arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children
from tcl.grammar.syntax.types import ScalarType

Instructions: TypeAlias = Mapping[str, float]
"""How many of each kind: ``KINDS``."""
KINDS = (
    *("fma", "float", "double", "mufu", "convert", "integer", "branch"),
    *("mma", "shuffle", "memory", "barrier"),
)
"""``fma`` and ``float``: on float32, those that multiply and add, and all others. ``mufu``:
reciprocals, roots, powers and logarithms to base 2. ``memory``: requests, one for each vector."""


def _costs(**counts: int) -> Instructions:
    return counts


def added(one: Instructions, other: Instructions) -> Instructions:
    """Both."""
    return {k: one.get(k, 0) + other.get(k, 0) for k in (*one, *other)}


_ROUNDING = _costs(convert=1)
_NEAR_FREE = _costs(float=1)
FUNCTIONS: Mapping[str, Instructions] = {
    **dict.fromkeys(("floor", "ceil", "trunc"), _ROUNDING),
    **dict.fromkeys(("fabs", "fmax", "fmin", "copysign"), _NEAR_FREE),
    **dict.fromkeys(("log", "log10"), _costs(float=19, integer=13, convert=1)),
    **dict.fromkeys(("sin", "cos"), _costs(float=14, integer=8, convert=2, branch=3)),
    "round": _costs(float=2, integer=2, convert=1),
    "fma": _costs(fma=1),
    "fdivide": _costs(float=8, mufu=1, branch=3),
    "exp": _costs(float=6, integer=3, mufu=1),
    "exp10": _costs(float=8, integer=3, mufu=1),
    "exp2": _costs(float=3, mufu=1),
    "expm1": _costs(float=18, integer=6),
    "log2": _costs(float=21, integer=13, convert=1),
    "log1p": _costs(float=18, integer=16, convert=1, branch=1),
    "tanh": _costs(float=12, integer=3, mufu=2),
    "sqrt": _costs(float=5, integer=3, mufu=1, branch=3),
    "rsqrt": _costs(float=3, mufu=1),
    "erf": _costs(float=18, integer=15, mufu=1),
    "atan": _costs(float=15, integer=10, mufu=1),
    "cbrt": _costs(float=14, mufu=2),
    "fmod": _costs(float=20, integer=10, mufu=1, branch=4),
}
"""Of float32."""
_OTHER = _costs(double=60, integer=60, float=10, mufu=2, convert=3, branch=4)
"""Functions that are computed in float64."""
_WIDE = _costs(double=30, integer=20, mufu=1, branch=3)
"""Functions of float64."""
_DIVISION = _costs(integer=22, convert=2, mufu=1)
"""Of integers."""
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def own_instructions(value: ir.Value) -> Instructions:
    """What a value takes once the values directly inside it are known; index expressions and reads
    take nothing here."""
    type_ = value.type.compute
    match value:
        case ir.Unary(op=op):
            return _plain(type_) if op == "-" and not type_.is_float else {}
        case ir.Binary(op=op, left=left):
            return _operator(op, left.type.compute)
        case ir.Select():
            return _plain(type_)
        case ir.Call(name=name):
            if type_.bits == 64:
                return _costs(double=1) if name == "fma" else _WIDE
            return FUNCTIONS.get(name, _OTHER)
        case ir.Cast(operand=operand):
            return _conversion(operand.type, value.type)
    return {}


def _operator(op: str, type_: ScalarType) -> Instructions:
    if op in ("/", "%") and not type_.is_float:
        return _DIVISION
    if op == "/":
        return _costs(double=9, mufu=1, branch=3) if type_.bits == 64 else FUNCTIONS["fdivide"]
    if op == "%":
        return _WIDE if type_.bits == 64 else FUNCTIONS["fmod"]
    if op in ("min", "max") and type_.is_float and type_.bits == 32:
        return _costs(float=3)  # which zero, and what of NaN
    if op in _COMPARISONS or op in ("&&", "||"):
        return _plain(type_)
    return _plain(type_)


def _plain(type_: ScalarType) -> Instructions:
    """One instruction on numbers of a type."""
    if type_.is_float:
        return _costs(double=1) if type_.bits == 64 else _costs(float=1)
    return _costs(integer=2 if type_.bits == 64 else 1)


def _conversion(one: ScalarType, other: ScalarType) -> Instructions:
    if one == other or (one.compute == other.compute and one.is_float):
        return {} if one.compute == one and other.compute == other else _costs(float=1)
    if one.is_float or other.is_float:
        return _costs(convert=1)
    return _costs(integer=1)


def accumulated(op: str, value: ir.Value) -> Instructions:
    """One step of a reduction, with a product that is fused into a sum; what is inside of the value
    aside."""
    type_ = value.type.compute
    if op == "=":
        return own_instructions(value)
    if fused_product(op, value) is not None:
        return _costs(double=1) if type_.bits == 64 else _costs(fma=1)
    if op in ("min", "max") and type_.is_float and type_.bits == 32:
        step = _costs(float=1)  # no say in which of two zeros
    else:
        step = _operator(op, type_)
    return added(own_instructions(value), step)


def fused_product(op: str, value: ir.Value) -> ir.Binary | None:
    """The product that an instruction multiplies and adds in one."""
    plain = value.operand if isinstance(value, ir.Cast) else value
    if op == "+" and value.type.is_float and isinstance(plain, ir.Binary) and plain.op == "*":
        return plain
    return None


def inside(op: str, value: ir.Value) -> tuple[ir.Value, ...]:
    """The values that a step of a reduction needs first."""
    product = fused_product(op, value)
    return children(value if product is None else product)


def instructions_of(
    values: tuple[ir.Value, ...], times: Callable[[ir.Value], int]
) -> dict[str, float]:
    """All that these values take, and the values inside of them. ``times``: how often one is
    computed. Equal ones are computed once; sums of products are fused."""
    found: dict[str, float] = defaultdict(float)
    seen: set[ir.Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        own, needed = own_instructions(value), children(value)
        product = _summand(value)
        if product is not None:
            own = _costs(double=1) if value.type.compute.bits == 64 else _costs(fma=1)
            needed = tuple(v for v in needed if v is not product) + children(product)
        count = times(value)
        for kind, number in own.items():
            found[kind] += number * count
        pending.extend(needed)
    return found


def _summand(value: ir.Value) -> ir.Binary | None:
    """The product in a sum or a difference of floats that is fused with it."""
    if not isinstance(value, ir.Binary) or value.op not in ("+", "-") or not value.type.is_float:
        return None
    for part in (value.right, value.left):
        if isinstance(part, ir.Binary) and part.op == "*":
            return part
    return None
