"""Conditions of values as tests of index expressions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, walk
from tcl.grammar.sizes.varying import provably_at_least
from tcl.grammar.syntax.types import BOOL, Kind

Bound = tuple[ir.Affine, int]
"""An index expression that is less than a number."""
SHORT = frozenset("fmin fmax fabs floor ceil trunc round rint copysign fma".split())
"""Built-in functions of one instruction."""
_CHEAP = 12
"""Nodes that may be computed in vain rather than branched around."""


def parts(condition: ir.Value) -> Iterator[ir.Value]:
    """Conditions all of which hold where this one does."""
    if isinstance(condition, ir.Binary) and condition.op == "&&":
        yield from parts(condition.left)
        yield from parts(condition.right)
    else:
        yield condition


def all_of(conditions: Iterable[ir.Value]) -> ir.Value | None:
    """What holds where all of these do; None if there are none."""
    found: ir.Value | None = None
    for each in conditions:
        found = each if found is None else ir.Binary("&&", found, each, BOOL)
    return found


def of_indices_and_data(condition: ir.Value) -> tuple[ir.Value | None, ir.Value | None]:
    """The part of a condition that compares indices, and the one that data decide."""
    known = [(part, bounds_of(part) is not None) for part in parts(condition)]
    return all_of(p for p, by in known if by), all_of(p for p, by in known if not by)


def bounds_within(conditions: Iterable[ir.Value]) -> tuple[Bound, ...]:
    """The bounds that hold where all of some conditions do."""
    return tuple(bound for each in conditions for bound in bounds_of(each) or ())


def besides(condition: ir.Value, known: Container[Bound]) -> ir.Value | None:
    """What is left of a condition where some bounds hold; None if nothing is."""

    def holds(part: ir.Value) -> bool:
        bounds = bounds_of(part)
        return bounds is not None and all(bound in known for bound in bounds)

    return all_of(part for part in parts(condition) if not holds(part))


def divides_index(value: ir.Value) -> bool:
    """Whether a value is made of a quotient or remainder of indices."""
    return any(
        isinstance(v, ir.Binary) and v.op in ("/", "%") and v.type.is_integral and not any(loads(v))
        for v in walk(value)
    )


def is_free(value: ir.Value) -> bool:
    """Whether it may and should be computed even where it is not needed."""
    for count, v in enumerate(walk(value)):
        if count > _CHEAP or (isinstance(v, ir.Load) and not v.total):
            return False
        if isinstance(v, ir.Call) and v.name not in SHORT:
            return False
    return True


def bounds_of(condition: ir.Value, *, holds: bool = True) -> list[Bound] | None:
    """The bounds that hold together where a condition does, or where it does not; None for one that
    is no such thing."""
    match condition if holds else ir.Unary("!", condition, BOOL):
        case ir.Binary(op="&&", left=left, right=right):
            first, second = bounds_of(left), bounds_of(right)
            return None if first is None or second is None else first + second
        case ir.Binary(op="<" | "<=" | ">" | ">=" | "==" as op, left=left, right=right):
            one, other = index_of(left), index_of(right)
            if one is None or other is None:
                return None
            less, more = one + other.scaled(-1), other + one.scaled(-1)
            return {
                "<": [(less, 0)],
                "<=": [(less, 1)],
                ">": [(more, 0)],
                ">=": [(more, 1)],
                "==": [(less, 1), (more, 1)],
            }[op]
        case ir.Unary(op="!", operand=operand):
            bounds = bounds_of(operand)
            if bounds is not None and len(bounds) == 1:
                ((affine, bound),) = bounds
                return [(affine.scaled(-1), 1 - bound)]
    return None


def index_of(value: ir.Value) -> ir.Affine | None:
    """A value as an index expression; None where it is none. Of unsigned types, which wrap below 0,
    only constants are."""
    found: ir.Affine | None = None
    match value:
        case ir.Position(index=index):
            return index
        case ir.Const(value=int() as number) if not isinstance(number, bool):
            return ir.Affine((), number)
        case ir.Cast(operand=operand, type=type_) if not (
            type_.is_float or operand.type.is_float or type_.bits < operand.type.bits
        ):
            found = index_of(operand)
        case ir.Unary(op="-", operand=operand):
            found = index_of(operand)
            found = None if found is None else found.scaled(-1)
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            one, other = index_of(left), index_of(right)
            if one is None or other is None:
                return None
            found = one + (other if op == "+" else other.scaled(-1))
    if found is None or (found.terms and value.type.kind is Kind.INT):
        return found
    least, most = value.type.limits
    held = provably_at_least(found.constant, least) and provably_at_least(most, found.constant)
    return found if held and not found.terms else None
