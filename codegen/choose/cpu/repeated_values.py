"""Values that several points of a register tile compute alike, in nests that reduce nothing: of the
difference of a row and the next one, which two rows of results take, LLVM computes one.

Values are alike if the same operations are done with the same elements. Which elements these are in
a register tile is known from addresses, as of ``OperandAccess``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.operation_costs import adds_floats
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children, walk
from tcl.common.dataclass import dataclass

_MOST = 12
"""Elements that a value is made of, at most."""


@dataclass(frozen=True, slots=True)
class RepeatedValue:
    """A value that neighbouring points may compute, too."""

    kind: Hashable
    """Of values that differ in their elements only."""
    reads: tuple[OperandAccess, ...]
    """These, in order."""
    dims: frozenset[str]
    """The dimensions that move them."""
    cycles: float
    """To compute it."""

    def places(self, sizes: Mapping[str, int], lane: str, lanes: int) -> Iterator[Hashable]:
        """Where its elements lie at each point of a register tile."""
        dims = [d for d in sizes if d in self.dims]
        for point in itertools.product(*(range(sizes[d]) for d in dims)):
            steps = [(d, k * (lanes if d == lane else 1)) for d, k in zip(dims, point, strict=True)]
            yield tuple([a.first + sum([_moved(a, d, k) for d, k in steps]) for a in self.reads])


def _moved(access: OperandAccess, dim: str, points: int) -> int:
    """Bytes by which so many points along a dimension move an operand."""
    if (moved := access.moved.get(dim)) is not None:
        return moved[points] if points < len(moved) else moved[-1] + points
    return access.strides.get(dim, 0) * points


def repeated_cycles(
    values: Sequence[RepeatedValue],
    sizes: Mapping[str, int],
    lane: str,
    lanes: int,
) -> float:
    """Cycles of those values of a register tile that other points of it compute."""
    seen: set[Hashable] = set()
    found = 0.0
    for value in values:
        if lane in value.dims:
            for places in value.places(sizes, lane, lanes):
                key = value.kind, places
                found += value.cycles if key in seen else 0.0
                seen.add(key)
    return found


def repeated_values(
    nest: ir.Nest,
    reads: Mapping[ir.TensorRef, OperandAccess],
    cycles: Callable[[ir.Value], float],
    converted: bool,
) -> tuple[RepeatedValue, ...]:
    """The values of a nest's points that others may compute, too, but for products that an
    instruction adds up. ``converted``: what is made another type as it is read counts elsewhere."""
    if nest.reduces or len(reads) < 2:
        return ()
    numbers: dict[Hashable, int] = {}
    known: dict[str, _Parts | None] = {}
    found: dict[Hashable, RepeatedValue] = {}
    named = [(let.name, let.value) for let in nest.point.lets]
    for name, value in (*named, ("", nest.point.value)):
        every = list(walk(value))
        fused = {id(c) for v in every if adds_floats(v) for c in children(v)}
        parts: dict[int, _Parts | None] = {}
        for v in reversed(every):  # what is inside comes first
            parts[id(v)] = made = _parts(v, [parts[id(c)] for c in children(v)], reads, known)
            if made is None or (id(v) in fused and isinstance(v, ir.Binary) and v.op == "*"):
                continue
            read = isinstance(v, ir.Cast) and isinstance(v.operand, ir.Load) and converted
            kind = numbers.setdefault(made.kind, len(numbers))
            parts[id(v)] = made = _Parts(kind, made.reads)
            if made.reads and not read and (each := cycles(v)):
                dims = frozenset[str]().union(*(a.moving for a in made.reads))
                place = kind, tuple([a.first for a in made.reads])
                found.setdefault(place, RepeatedValue(kind, made.reads, dims, each))
        known[name] = parts[id(value)]
    kinds = Counter(value.kind for value in found.values())
    several = (v for v in found.values() if kinds[v.kind] > 1 or any(a.moved for a in v.reads))
    return tuple(several)


class _Parts(NamedTuple):
    """What a value is made of: what is done, and with which elements."""

    kind: Hashable
    reads: tuple[OperandAccess, ...]


def _parts(
    value: ir.Value,
    inside: Sequence[_Parts | None],
    reads: Mapping[ir.TensorRef, OperandAccess],
    known: Mapping[str, _Parts | None],
) -> _Parts | None:
    """None of a value that depends on indices themselves, on data that select elements, or on many
    elements."""
    if isinstance(value, ir.Variable):
        return known.get(value.name)
    if isinstance(value, ir.Load):
        access = reads.get(value.ref)
        if access is None or (access.scattered and not access.moved):
            return None
        steps = (tuple(sorted(each.items())) for each in (access.strides, access.moved))
        return _Parts((access.tensor, *steps), (access,))
    parts = [each for each in inside if each is not None]
    if len(parts) < len(inside) or isinstance(value, ir.Position):
        return None
    every = tuple(itertools.chain.from_iterable(each.reads for each in parts))
    return (
        _Parts((_operation(value), *(x.kind for x in parts)), every)
        if len(every) <= _MOST
        else None
    )


def _operation(value: ir.Value) -> Hashable:
    """What is done, without what it is done with."""
    match value:
        case ir.Binary(op=op) | ir.Unary(op=op) | ir.Call(name=op):
            return type(value), op, value.type
        case ir.Cast() | ir.Select():
            return type(value), value.type
    return value
