"""The instructions that values take on a GPU.

What a function of CUDA's takes is what warps execute in the machine code that NVRTC 13.5 makes for
sm_90, less what the same kernel without it takes, and without the paths for rare arguments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.reciprocals import known_number
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import children, walk
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16, FLOAT32, ScalarType

Instructions: TypeAlias = Mapping[str, float]
"""How many of each kind: ``KINDS``."""
KINDS = (
    *("fma", "float", "double", "mufu", "convert", "integer", "branch"),
    *("mma", "wgmma", "panel", "shuffle", "memory", "local", "barrier"),
)
"""``fma`` and ``float``: on float32, those that multiply and add, and all others. ``mufu``:
reciprocals, roots, powers and logarithms to base 2. ``memory``: requests, one for each vector.
``wgmma``: what warpgroups multiply, as the instructions of ``mma`` that would do the same;
``panel``: wavefronts in which they read panels. ``local``: words that are read or written because
they do not stay in registers."""


def _costs(**counts: int) -> Instructions:
    return counts


_ROUNDING = _costs(convert=1)
_NEAR_FREE = _costs(float=1)
_DIVIDED = _costs(fma=5, float=1, mufu=1, branch=3)
FUNCTIONS: Mapping[str, Instructions] = {
    **dict.fromkeys(("floor", "ceil", "trunc"), _ROUNDING),
    **dict.fromkeys(("fabs", "fmax", "fmin"), _NEAR_FREE),
    "copysign": _costs(integer=1),
    "log": _costs(fma=12, float=7, integer=5, convert=1),
    "log2": _costs(fma=12, float=9, integer=5, convert=1),
    "log10": _costs(fma=12, float=8, integer=5, convert=1),
    "log1p": _costs(fma=11, float=4, integer=5, convert=1, branch=3),
    **dict.fromkeys(("sin", "cos"), _costs(fma=9, float=6, integer=5, convert=2, branch=3)),
    "round": _costs(float=1, integer=1, convert=1),
    "fma": _costs(fma=1),
    "fdivide": _DIVIDED,
    **dict.fromkeys(("exp", "exp10"), _costs(fma=4, float=2, integer=1, mufu=1)),
    "exp2": _costs(float=3, mufu=1),
    "expm1": _costs(fma=10, float=8, integer=3),
    "tanh": _costs(fma=6, float=6, integer=1, mufu=2),
    "sqrt": _costs(fma=2, float=2, integer=2, mufu=1, branch=3),
    "rsqrt": _costs(float=3, mufu=1),
    "erf": _costs(fma=7, float=11, integer=3, mufu=1),
    "atan": _costs(fma=9, float=6, integer=2, mufu=1),
    "cbrt": _costs(fma=2, float=12, mufu=2),
    "fmod": _costs(float=20, integer=10, mufu=1, branch=4),
}
"""Of float32."""
_OTHER = _costs(double=60, integer=60, float=10, mufu=2, convert=3, branch=4)
"""Functions that are computed in float64."""
_WIDE = _costs(double=30, integer=20, mufu=1, branch=3)
"""Functions of float64."""
_DIVISION = _costs(integer=22, convert=2, mufu=1)
"""Of integers."""


def constant(value: ir.Value) -> bool:
    """Whether a value depends on nothing."""
    return all(isinstance(v, ir.Const) for v in walk(value) if not children(v))


def own_instructions(value: ir.Value) -> Instructions:
    """What a value takes once the values directly inside it are known; index expressions and reads
    take nothing here."""
    type_ = value.type.compute
    inner = children(value)
    if inner and all(map(constant, inner)):
        return {}  # compilers compute it
    match value:
        case ir.Unary(op=op):
            return _plain(type_) if op == "-" and not type_.is_float else {}
        case ir.Load() if not type_.is_float and value.type.bits < 32:
            return _costs(integer=2)  # out of the word that was read
        case ir.Binary(op="/", left=left, right=right) if value.type.compute == FLOAT32:
            return _quotient(known_number(left), known_number(right))
        case ir.Binary(op=op, left=left):
            return _operator(op, left.type.compute)
        case ir.Select():
            return _plain(type_)
        case ir.Call(name=name):
            if type_.bits == 64:
                return _costs(double=1) if name == "fma" else _WIDE
            return FUNCTIONS.get(name, _OTHER)
        case ir.Cast(operand=operand):
            return conversion(operand.type, value.type)
    return {}


def constants_of(value: ir.Value) -> Iterator[str | float]:
    """What in a value needs constants in registers: functions, and divisors."""
    for v in walk(value):
        if isinstance(v, ir.Call) and v.name in ("exp", "exp10") and v.type.compute == FLOAT32:
            yield v.name
        elif isinstance(v, ir.Binary) and v.op == "/" and v.type.compute == FLOAT32:
            right = known_number(v.right)
            if right is not None and not _exact(right):
                yield right


def _exact(divisor: float) -> bool:
    """Whether its reciprocal is a number."""
    return abs(math.frexp(divisor)[0]) == 0.5


def _quotient(left: float | None, right: float | None) -> Instructions:
    """Of float32; the reciprocal of a constant is known."""
    if right is not None:
        return _costs(float=1) if _exact(right) else _costs(fma=5, float=1, branch=3)
    return _costs(fma=2, float=1, mufu=1, integer=3, branch=3) if left == 1 else _DIVIDED


def _operator(op: str, type_: ScalarType) -> Instructions:
    if op in ("/", "%") and not type_.is_float:
        return _DIVISION
    if op == "/":
        return _costs(double=9, mufu=1, branch=3) if type_.bits == 64 else _DIVIDED
    if op == "%":
        return _WIDE if type_.bits == 64 else FUNCTIONS["fmod"]
    if op in ("min", "max") and type_.is_float and type_.bits == 32:
        return _costs(float=3)  # which zero, and what of NaN
    return _plain(type_)


def _plain(type_: ScalarType) -> Instructions:
    if type_.is_float:
        return _costs(double=1) if type_.bits == 64 else _costs(float=1)
    return _costs(integer=2 if type_.bits == 64 else 1)


def conversion(one: ScalarType, other: ScalarType) -> Instructions:
    """Of a number; two of 32 bits become two of 16 in one instruction."""
    if one == FLOAT32 and other == FLOAT16:
        return {"convert": 0.5}
    if one == FLOAT32 and other == BFLOAT16:
        return _costs(float=1, integer=5)
    if one == other or (one.compute == other.compute and one.is_float):
        return {} if one.compute == one and other.compute == other else _costs(float=1)
    if one.is_float or other.is_float:
        return _costs(convert=1)
    return _costs(integer=1)


def accumulated(op: str, value: ir.Value) -> Instructions:
    """One step of a reduction, with a product that is fused into a sum; the value aside."""
    type_ = value.type.compute
    if op == "=":
        return {}
    if fused_product(op, value) is not None:
        return _costs(double=1) if type_.bits == 64 else _costs(fma=1)
    if op in ("min", "max") and type_.is_float and type_.bits == 32:
        return _costs(float=1)  # no say in which of two zeros
    return _operator(op, type_)


def fused_product(op: str, value: ir.Value) -> ir.Binary | None:
    """The product that an instruction multiplies and adds in one, under a condition or not."""
    _, value = guard(op, value)
    plain = value.operand if isinstance(value, ir.Cast) else value
    if op == "+" and value.type.is_float and isinstance(plain, ir.Binary) and plain.op == "*":
        return plain
    return None


def inside(op: str, value: ir.Value) -> tuple[ir.Value, ...]:
    """The values that a step of a reduction needs first."""
    product = fused_product(op, value)
    if product is None:
        return (value,)
    condition, _ = guard(op, value)
    return (*children(product), *(() if condition is None else (condition,)))


def instructions_of(
    values: tuple[ir.Value, ...], times: Callable[[ir.Value], int], known: Collection[ir.Value] = ()
) -> dict[str, float]:
    """All that these values take, and the values inside of them, but for ``known`` ones. ``times``:
    how often one is computed. Equal ones are computed once; what a condition chooses, wherever it
    is asked."""
    found: dict[str, float] = defaultdict(float)
    seen = set(known)
    pending = [(value, 1) for value in values]
    while pending:
        value, least = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        count = max(least, times(value))
        for kind, number in own_instructions(value).items():
            found[kind] += number * count
        chosen = (value.then, value.otherwise) if isinstance(value, ir.Select) else ()
        pending.extend((v, count if v in chosen else least) for v in children(value))
    return found
