"""At how many points of a nest a condition on indices holds."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children

_MOST = 1 << 20
"""Points up to which a condition is decided one by one."""


def share_of_points(
    condition: ir.Value, dims: Mapping[str, ir.Dim], lets: Mapping[str, ir.Value]
) -> float | None:
    """The share of the points of these dimensions at which the condition holds; None if it depends
    on data, on more than simple arithmetic, or on too many points to look at each."""
    names = _names(condition, lets)
    if names is None or math.prod(dims[n].extent for n in names) > _MOST:
        return None
    places = {
        name: np.arange(dims[name].first, dims[name].first + dims[name].extent).reshape(
            [-1 if name == other else 1 for other in names]
        )
        for name in names
    }
    found = _decided(condition, places, lets, {})
    return None if found is None else float(np.mean(found))


def _names(value: ir.Value, lets: Mapping[str, ir.Value]) -> list[str] | None:
    """The dimensions that a value depends on; None if it depends on data."""
    found: set[str] = set()
    pending, seen = [value], set[str]()
    while pending:
        current = pending.pop()
        if isinstance(current, ir.Load | ir.Combined):
            return None
        if isinstance(current, ir.Variable) and current.name not in seen:
            seen.add(current.name)
            pending.append(lets[current.name])
        if isinstance(current, ir.Position):
            found.update(name for name, _ in current.index.terms)
        pending.extend(children(current))
    return sorted(found)


def _decided(
    value: ir.Value,
    places: Mapping[str, Any],
    lets: Mapping[str, ir.Value],
    known: dict[str, Any],
) -> Any:
    """The value at every point, as an array with an axis per dimension; None if it is not made of
    indices by simple arithmetic. ``known`` are the lets that came up."""
    match value:
        case ir.Const(value=constant):
            return constant
        case ir.Position(index=index):
            return sum((c * places[name] for name, c in index.terms), np.asarray(index.constant))
        case ir.Variable(name=name):
            if name not in known:
                known[name] = _decided(lets[name], places, lets, known)
            return known[name]
        case ir.Cast(operand=operand) if value.type.is_integral and operand.type.is_integral:
            return _decided(operand, places, lets, known)
        case ir.Unary(op=op) | ir.Binary(op=op) if (op, len(children(value))) in _ARITHMETIC:
            parts = [_decided(part, places, lets, known) for part in children(value)]
            if any(part is None for part in parts):
                return None
            return _ARITHMETIC[op, len(parts)](*parts)
    return None


_ARITHMETIC: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): operator.add,
    ("-", 2): operator.sub,
    ("*", 2): operator.mul,
    ("-", 1): operator.neg,
    ("!", 1): np.logical_not,
    ("&&", 2): np.logical_and,
    ("||", 2): np.logical_or,
    ("min", 2): np.minimum,
    ("max", 2): np.maximum,
    ("<", 2): operator.lt,
    ("<=", 2): operator.le,
    (">", 2): operator.gt,
    (">=", 2): operator.ge,
    ("==", 2): operator.eq,
    ("!=", 2): operator.ne,
}
