"""Which integers a value may have, and the narrowest type that holds them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import Size, limits
from tcl.grammar.syntax.types import ScalarType


def value_range(value: ir.Value) -> tuple[int, int]:
    """The smallest and the largest value that a bool or an integer may have, as far as its
    operations tell. What may wrap around may be anything of its type."""
    found = _unwrapped_range(value)
    low, high = value.type.limits
    return found if low <= found[0] and found[1] <= high else (low, high)


def narrowest(value: ir.Value, types: Iterable[ScalarType]) -> ScalarType | None:
    """The first of some types that holds whatever the value may be; None if none does."""
    low, high = value_range(value)
    for type_ in types:
        least, most = type_.limits
        if least <= low and high <= most:
            return type_
    return None


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "min": min,
    "max": max,
}
"""Those whose extreme values are at the ends of what they are applied to."""


def _unwrapped_range(value: ir.Value) -> tuple[int, int]:
    """As ``value_range``, before anything wraps around."""
    match value:
        case ir.Const(value=constant) if not value.type.is_float:
            return limits(constant) if isinstance(constant, Size) else (int(constant),) * 2
        case ir.Cast(operand=operand) if not operand.type.is_float:
            return value_range(operand)
        case ir.Unary(op="-", operand=operand):
            low, high = value_range(operand)
            return -high, -low
        case ir.Select(then=then, otherwise=otherwise):
            sides = value_range(then), value_range(otherwise)
            return min(s[0] for s in sides), max(s[1] for s in sides)
        case ir.Binary(op=op, left=left, right=right) if op in _OPERATIONS:
            sides = value_range(left), value_range(right)
            ends = [_OPERATIONS[op](a, b) for a, b in itertools.product(*sides)]
            return min(ends), max(ends)
    return value.type.limits
