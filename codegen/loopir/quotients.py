"""Values that quotients and remainders of indices by constants decide, such as ``x / 8 + x % 8``:
at any point they are known without data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import representative


def dims_named(values: Iterable[ir.Value], lets: Mapping[str, ir.Value]) -> set[str] | None:
    """The dimensions that such values name; None if some are none. ``lets``: the values of
    variables."""
    found: set[str] = set()
    pending = list(values)
    while pending:
        match pending.pop():
            case ir.Position(index=index):
                found.update(name for name, _ in index.terms)
            case ir.Const(value=int()):
                pass
            case ir.Variable(name=name) if name in lets:
                pending.append(lets[name])
            case ir.Binary(op="/" | "%", left=left, right=right):
                if isinstance(right, ir.Position) and right.index.terms:
                    return None
                pending += left, right
            case ir.Binary(
                op="+" | "-" | "*" | "min" | "max", left=left, right=right, type=type_
            ) if type_.is_integral:
                pending += left, right
            case _:
                return None
    return found


def index_at(value: ir.Value, at: Mapping[str, Any], lets: Mapping[str, ir.Value]) -> Any:
    """Such a value where dimensions are ``at`` these points, numbers or arrays of them."""
    match value:
        case ir.Position(index=index):
            terms = (representative(c) * at[name] for name, c in index.terms)
            return sum(terms, representative(index.constant))
        case ir.Const(value=constant):
            return constant
        case ir.Variable(name=name):
            return index_at(lets[name], at, lets)
        case ir.Binary(op=op, left=left, right=right):
            one, other = (index_at(v, at, lets) for v in (left, right))
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
            times = np.where(other == 0, 0, np.trunc(one / np.where(other == 0, 1, other)))
            times = times.astype(np.int64)
            return times if op == "/" else np.where(other == 0, 0, one - times * other)
    raise ir.IRError("not decided by indices")


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
