"""Values that quotients and remainders of indices by constants decide, such as ``x / 8 + x % 8``
and ``x % 2 == 0 ? x + 1 : x - 1``: at any point they are known without data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import behind_names, children
from tcl.grammar.sizes.varying import Size, representative
from tcl.grammar.syntax.types import INT64, ScalarType
from tcl.grammar.tree.size_expressions import OPERATIONS

COMPARISONS = {op: OPERATIONS[op] for op in ("<", "<=", ">", ">=", "==", "!=")}
_POINTS = 1 << 14
"""Points at which ``interval_at_points`` computes a value, at most."""


def dims_named(values: Iterable[ir.Value], lets: Mapping[str, ir.Value]) -> set[str] | None:
    """The dimensions that such values name; None if some are none. ``lets``: the values of
    variables."""
    found, seen = set[str](), set[str]()
    pending = list(values)
    while pending:
        match pending.pop():
            case ir.Position(index=index):
                found.update(name for name, _ in index.terms)
            case ir.Const(value=int()):
                pass
            case ir.Variable(name=name) if name in lets:
                pending += [lets[name]] if name not in seen else []
                seen.add(name)
            case ir.Binary(op="/" | "%", left=left, right=right):
                if isinstance(right, ir.Position) and right.index.terms:
                    return None
                pending += left, right
            case ir.Binary(
                op="+" | "-" | "*" | "min" | "max", left=left, right=right, type=type_
            ) if type_.is_integral:
                pending += left, right
            case ir.Binary(op=op, left=left, right=right) if (
                op in COMPARISONS and left.type.is_integral and right.type.is_integral
            ):
                pending += left, right
            case ir.Select(condition=condition, then=then, otherwise=otherwise, type=type_) if (
                type_.is_integral
            ):
                pending += condition, then, otherwise
            case _:
                return None
    return found


def decided(value: ir.Value, at: Mapping[str, Any], lets: Mapping[str, ir.Value]) -> Any:
    """As ``index_at``; None of other values."""
    try:
        return index_at(value, at, lets)
    except ir.IRError:
        return None


def index_at(
    value: ir.Value,
    at: Mapping[str, Any],
    lets: Mapping[str, ir.Value],
    known: dict[str, Any] | None = None,
) -> Any:
    """A value that indices decide where dimensions are ``at`` these points, numbers or arrays of
    them. ``known``: the variables that came up before."""
    known = {} if known is None else known
    inner = (index_at(part, at, lets, known) for part in children(value))
    match value:
        case ir.Position(index=index):
            terms = (representative(c) * at[name] for name, c in index.terms)
            return _wrapped(sum(terms, representative(index.constant)), value.type)
        case ir.Const(value=constant):
            return constant
        case ir.Variable(name=name):
            if name not in known:
                known[name] = index_at(lets[name], at, lets, known)
            return known[name]
        case ir.Cast(operand=operand, type=type_) if type_.is_integral and operand.type.is_integral:
            return _wrapped(next(inner), type_)
        case ir.Select():
            return np.where(*inner)
        case ir.Unary(op=op, type=type_) if not type_.is_float:
            return np.logical_not(*inner) if op == "!" else _wrapped(-next(inner), type_)
        case ir.Binary(op="&&" | "||" as op):
            return np.logical_and(*inner) if op == "&&" else np.logical_or(*inner)
        case ir.Binary(op=op) if op in COMPARISONS:
            return COMPARISONS[op](*inner)
        case ir.Binary(op=op, type=type_) if type_.is_integral:
            return _wrapped(_operation(op, *inner), type_)
    raise ir.IRError("not decided by indices")


def _wrapped(value: Any, type_: ScalarType) -> Any:
    """What becomes of a value in 64 bits that is made one of a type."""
    if type_.bits >= INT64.bits:
        return value
    low, high = type_.limits
    return (value - low) % (high - low + 1) + low


def _operation(op: str, one: Any, other: Any) -> Any:
    """As of C, and 0 where a divisor is 0."""
    match op:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "min":
            return np.minimum(one, other)
        case "max":
            return np.maximum(one, other)
    size = np.abs(one) // np.where(other == 0, 1, np.abs(other))
    times = np.where(other == 0, 0, np.where((one < 0) == (other < 0), size, -size))
    return times if op == "/" else np.where(other == 0, 0, one - times * other)


def interval_at_points(
    value: ir.Value, dims: Mapping[str, ir.Dim], lets: Mapping[str, ir.Value]
) -> tuple[int, int] | None:
    """The smallest and the largest of such a value, which is computed at all points; None of other
    values, where these are too many or sizes vary."""
    named = dims_named((value,), lets)
    if named is None:
        return None
    moving = [dims[name] for name in sorted(named)]
    ends = [end for d in moving for end in (d.first, d.extent)]
    if any(isinstance(x, Size) for x in (*ends, *_numbers(value, lets))):
        return None
    extents = [d.extent for d in moving]
    if not 0 < math.prod(extents) <= _POINTS:
        return None
    steps = np.indices(extents, sparse=True) if extents else ()
    at = {d.name: d.first + n for d, n in zip(moving, steps, strict=True)}
    found = index_at(value, at, lets)
    return int(np.min(found)), int(np.max(found))


def _numbers(value: ir.Value, lets: Mapping[str, ir.Value]) -> Iterator[int]:
    """The numbers in such a value."""
    for v in behind_names([value], lets):
        match v:
            case ir.Position(index=index):
                yield from (index.constant, *(c for _, c in index.terms))
            case ir.Const(value=int(constant)):
                yield constant


_ROWS = 4
"""Rows at most: a pixel shuffle takes lanes out of two planes in turns."""


def short_rows(places: Sequence[int], size: int, lanes: int) -> list[tuple[int, int]] | None:
    """The first byte and the elements of each of a few short rows that have all places; None if
    there are no such rows. ``size``: the bytes of an element."""
    several = sorted(set(places))
    if any((x - several[0]) % size for x in several):
        return None
    if several[-1] - several[0] < 2 * lanes * size:
        return [(several[0], (several[-1] - several[0]) // size + 1)]
    groups = [[several[0]]]
    for before, x in pairwise(several):
        if x - before > size:
            groups.append([])
        groups[-1].append(x)
    return [(g[0], len(g)) for g in groups] if len(groups) <= _ROWS and lanes > _ROWS else None
