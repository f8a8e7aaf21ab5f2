"""What an accumulation adds: products, one after the other, each perhaps under a condition."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from tcl.codegen.loopir import ir, walk
from tcl.codegen.loopir.conditions import all_of, divides_index, parts
from tcl.codegen.loopir.identity import neutral
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16, FLOAT32, ScalarType


def terms(op: str, value: ir.Value) -> tuple[ir.Value, ...]:
    """The values to be accumulated in turn instead of ``value``.

    A sum or a difference of products, each of which may be under a condition, is added product by
    product: one instruction for each where the machine can multiply and add in one. That rounds
    as well as adding their sum, where products are rounded, too. Other sums stay whole: a small
    difference of large numbers must not pass through an accumulator.
    """
    found = _products(value) if op == "+" and value.type.is_float else []
    return tuple(found) if len(found) > 1 else (value,)


def _products(value: ir.Value) -> list[ir.Value]:
    """The products of a sum, with their signs and conditions, or none if there is anything else
    in it."""
    found: list[ir.Value] = []
    pending: list[tuple[ir.Value, bool, ir.Select | None]] = [(value, False, None)]
    while pending:
        current, negative, under = pending.pop()
        condition, then = guard("+", current)
        if product(current) is not None:
            own = _negated(current) if negative else current
            found.append(own if under is None else replace(under, then=own))
        elif condition is not None and isinstance(current, ir.Select) and under is None:
            pending.append((then, negative, current))
        elif isinstance(current, ir.Binary) and current.op in ("+", "-"):
            pending.append((current.right, negative != (current.op == "-"), under))
            pending.append((current.left, negative, under))
        else:
            return []
    return found


def _negated(value: ir.Value) -> ir.Value:
    assert isinstance(value, ir.Binary)  # a product
    left = ir.Unary("-", value.left, value.left.type)
    return ir.Binary("*", left, value.right, value.type)


def product(value: ir.Value) -> ir.Binary | None:
    """The value, if it is a product of floats."""
    if isinstance(value, ir.Binary) and value.op == "*" and value.type.is_float:
        return value
    return None


def guard(op: str, value: ir.Value) -> tuple[ir.Value | None, ir.Value]:
    """A condition and a value, where accumulating changes nothing unless the condition holds."""
    if op == "=" or not isinstance(value, ir.Select):
        return None, value
    return (value.condition, value.then) if neutral(op, value.otherwise) else (None, value)


_WRITTEN_OUT = 32
"""Operations behind a name, at which it is not written out: each of them may name another twice."""


def common_guard(loop: ir.For) -> ir.Value | None:
    """The conditions unless which a loop changes nothing, the same ones in all of it; None if there
    are none, or there is anything but accumulation in it, into registers or tensors. Where there
    are others beside them, those that compare indices alone are left to cuts and bounds: one that
    divides an index, as of every second row, decides, and no data do."""
    found: list[ir.Value] | None = None
    moving: set[str] = set()
    lets: dict[str, ir.Value] = {}
    others: dict[str, ir.Value] = {}
    every = True
    for s in walk.statements(loop):
        match s:
            case ir.For(loop=ir.Loop(fold=fold, kind=kind, compacted=None, alignment=None)) if (
                kind in (ir.Kind.SERIAL, ir.Kind.UNROLL, ir.Kind.VECTOR)
            ):
                moving |= {fold.dim, fold.name}
            case ir.Accumulate(op=op, value=value) | ir.Update(op=op, value=value):
                condition, _ = guard(op, value)
                if condition is None:
                    return None
                own = list(parts(walk.written_out(condition, lets)))
                every = every and found in (None, own)
                found = own if found is None else [part for part in found if part in own]
            case ir.Let(name=name, value=value):
                asked = [*islice(walk.behind_names([value], lets | others), _WRITTEN_OUT)]
                long = len(asked) == _WRITTEN_OUT or any(isinstance(v, ir.Load) for v in asked)
                lets.pop(name, None)  # that of another nest in this loop
                (others if long else lets)[name] = value if long else walk.written_out(value, lets)
            case ir.Block() | ir.Carry() | ir.Prefetch():
                pass
            case _:
                return None
    same = [p for p in found or () if not walk.dims_of_values((p,), {}) & moving]
    if not every or lets or others or len(same) < len(found or ()):
        same = [
            p for p in same if not any(walk.loads(p)) and walk.variables([p]).isdisjoint(others)
        ]
        if not any(map(divides_index, same)):
            return None
    return all_of(same)


def guards(op: str, value: ir.Value) -> tuple[list[ir.Value], ir.Value]:
    """The conditions, all of which have to hold, and the value, as of ``guard``, where there is
    no other condition around it."""
    found: list[ir.Value] = []
    condition, value = guard(op, value)
    while condition is not None:
        found += parts(condition)
        condition, value = guard(op, value)
    return found, value


def factors(value: ir.Value) -> tuple[ir.Load, ir.Load] | None:
    """The two reads whose product a value is, both of the same type; None if it is none."""
    if not isinstance(value, ir.Binary) or value.op != "*":
        return None
    sides = [_before_widening(v) for v in (value.left, value.right)]
    if sides[0] is None or sides[1] is None or sides[0].type != sides[1].type:
        return None
    return sides[0], sides[1]


def _before_widening(value: ir.Value) -> ir.Load | None:
    if isinstance(value, ir.Cast) and value.type == FLOAT32:
        value = value.operand
    return value if isinstance(value, ir.Load) else None


def mma_type(value: ir.Value) -> ScalarType | None:
    """The type of the factors, if tensor cores multiply it."""
    found = factors(value)
    known = (FLOAT16, BFLOAT16, FLOAT32)
    return found[0].type if found is not None and found[0].type in known else None


def dot_factors(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The factors that an instruction takes of a product that is part of a dot product."""
    if not isinstance(value, ir.Binary) or value.op != "*":
        raise ir.IRError("a dot product adds up something else than products")
    return taken(value.left), taken(value.right)


def moved_byte(factor: ir.Value) -> ir.Load | None:
    """What is read for a factor that is a byte of memory plus or minus 128, so that its highest bit
    is the other one; None if the factor is something else."""
    match factor:
        case ir.Cast(operand=ir.Binary(op="+", left=value, right=ir.Const(value=128 | -128))):
            while isinstance(value, ir.Cast) and value.type.is_integral and value.type.bits >= 8:
                value = value.operand
            bits = {value.type.bits, factor.type.bits}
            if isinstance(value, ir.Load) and value.type.is_integral and bits == {8}:
                return value
    return None


def taken(factor: ir.Value) -> ir.Value:
    """What an instruction takes of a factor: what is only then made wider."""
    return factor.operand if isinstance(factor, ir.Cast) else factor
