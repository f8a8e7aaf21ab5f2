"""What a scatter becomes: elements that start from nothing, or copies of them, a nest that updates
them point after point, and where there are copies, one that makes results of these. Where many
points of a reduction update the same element, a nest before it reduces these.

Copies have a wider type where sums need one, and there is one for each part of the points where
threads share these. Their number does not depend on the threads, so that results do not either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import (
    dims_of_lets,
    dims_of_values,
    loads,
    moved,
    rebuilt,
    renamed,
    renamed_point,
    renamed_ref,
    variables,
    walk,
)
from tcl.codegen.passes.building import wrap
from tcl.codegen.passes.fusion.groups import long_calls
from tcl.codegen.passes.split import in_parts, scratch, unused
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import representative
from tcl.grammar.syntax.types import BOOL, INT64, ScalarType

_MANY = 8
"""Points that have a value in common, of which some count: it is computed before all of them."""
_WRITTEN_OUT = 16
"""Copies that are added up in one expression."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Takes a scatter apart. What updates keeps its name; ``NAME.terms``, what is computed
    ``ahead`` and ``NAME.clear`` are before it, and ``NAME.result`` after it."""

    nest: str
    held: ScalarType | None
    """The type of the copies; None if the target itself is updated."""
    dimension: int = 0
    """Position of the reduction whose points are in parts,"""
    parts: int = 1
    """and how many, each with a copy."""
    rest: int = 0
    """The last of these points, which are in no part, so that all parts have equally many: a nest
    ``NAME.rest`` updates the first copy with them."""
    owners: int = 1
    """How many go through the points of each part: each updates a range of the first place that
    data say, so that none of them meets another one."""
    reduced: frozenset[str] = frozenset()
    """Reductions whose points all update the same element: those of ``of_one_place``, or none."""
    ahead: int = 0
    """Bytes that a value with a name which functions are called for, as places in a histogram of
    logarithms, may take at all points to be computed before all updates, in a nest of its own: more
    where it reads more. None is if this is 0."""

    def __call__(self, program: ir.Program) -> ir.Program:
        whole = nest = program.nest(self.nest)
        terms: list[ir.Tensor] = []
        before: list[ir.Nest] = []
        if self.reduced:
            first, memory, nest = self._terms_apart(whole)
            terms, before = [memory], [first]
        for name in _calling_lets(nest) if self.ahead else ():
            first, memory, update = _computed_ahead(nest, name)
            values = (*(let.value for let in first.point.lets), first.point.value)
            read = {load.ref.tensor for value in values for load in loads(value)}
            sizes = [t.layout.bytes for t in (*program.tensors, *terms) if t.name in read]
            if representative(memory.layout.bytes) <= max(self.ahead, *map(representative, sizes)):
                terms.append(memory)
                before.append(first)
                nest = update
        boxes = _boxes(program, nest)
        own: ir.Tensor | None = None
        update, after = nest, list[ir.Nest]()
        if self.held is not None:
            own = self._memory(nest, self.held, boxes)
            after = [self._result(nest, own, boxes)]
            if self.rest:
                nest, last = self._rest_apart(nest)
                after = [replace(self, parts=1)._of_parts(last, own), *after]
            update = self._of_parts(nest, own)
        if own or nest.point.initialise:
            before.append(self._clear(nest, own, boxes))
        update = replace(update, point=replace(update.point, initialise=False))
        if self.owners > 1:
            update = self._owned(program, nest, update)
        found = [*before, update, *after]
        nests = [m for n in program.nests for m in (found if n is whole else [n])]
        tensors = (*program.tensors, *terms, *([own] if own else ()))
        return ir.Program(program.name, tensors, tuple(nests))

    def _terms_apart(self, nest: ir.Nest) -> tuple[ir.Nest, ir.Tensor, ir.Nest]:
        """The nest that reduces the points that update the same element, what it writes, and the
        nest that updates with these."""
        point, type_ = nest.point, nest.point.type.compute
        condition, _ = guard(point.op, point.value)
        rest = [d for d in nest.dims if d.name not in self.reduced]
        reduced = [d for d in nest.dims if d.name in self.reduced]
        first, memory, read = _apart(
            nest, f"{nest.name}.terms", point.value, type_, point.op, rest, reduced
        )
        value: ir.Value = read
        if condition is not None:
            value = ir.Select(condition, value, identity(point.op, type_), type_)
        lets = _needed(point.lets, [value, *_computed(point.target)])
        update = ir.Nest.over(
            nest.name, rest, replace(point, lets=lets, value=value), nest.sequential
        )
        return first, memory, update

    def _rest_apart(self, nest: ir.Nest) -> tuple[ir.Nest, ir.Nest]:
        """The nest without the rest of its points, and one with these alone."""
        name, point, dim = f"{nest.name}.rest", nest.point, nest.dims[self.dimension]
        names = {d.name: f"{name}.{d.name.rpartition('.')[2]}" for d in nest.dims}
        most = dim.extent - self.rest
        dims = [replace(d, name=names[d.name]) for d in nest.dims]
        dims[self.dimension] = replace(
            dims[self.dimension], first=dim.first + most, extent=self.rest
        )
        last = renamed_point(point, names)
        whole = [replace(d, extent=most) if d is dim else d for d in nest.dims]
        rest = ir.Nest.over(name, dims, last, nest.sequential)
        return ir.Nest.over(nest.name, whole, point, nest.sequential), rest

    def _memory(self, nest: ir.Nest, type_: ScalarType, boxes: list[ir.Dim]) -> ir.Tensor:
        name = f"{nest.name}.held"
        return scratch(name, type_, [ir.Dim(f"{name}.part", 0, self.parts, False), *boxes])

    def _clear(self, nest: ir.Nest, own: ir.Tensor | None, boxes: list[ir.Dim]) -> ir.Nest:
        """The nest that lets all elements start from nothing."""
        name, point = f"{nest.name}.clear", nest.point
        dims = [replace(d, name=f"{name}.{d.name}") for d in boxes]
        if own is None:
            type_, target = point.type, _whole(nest, dims)
        else:
            type_ = own.layout.type
            dims = [ir.Dim(f"{name}.part", 0, self.parts, False), *dims]
            target = ir.TensorRef(own.name, tuple(ir.Affine.variable(d.name) for d in dims))
        value = identity(point.op, type_)
        return ir.Nest.over(name, dims, ir.Point((), target, type_, "=", False, value))

    def _of_parts(self, nest: ir.Nest, own: ir.Tensor) -> ir.Nest:
        """The nest that updates copies."""
        type_, point = own.layout.type, nest.point
        offset, dims, there = ir.Affine(), nest.dims, None
        if self.parts > 1:
            dims, point, there = in_parts(nest, nest.dims[self.dimension], self.parts)
            offset = ir.Affine.variable(dims[0].name)
        condition, value = guard(point.op, point.value)
        if there is not None:
            both = None if condition is None else ir.Binary("&&", there, condition, BOOL)
            condition = both or there
        if value.type != type_:
            value = ir.Cast(value, type_)
        if condition is not None:
            value = ir.Select(condition, value, identity(point.op, type_), type_)
        target = ir.TensorRef(own.name, (offset, *_of_copy(nest)))
        made = ir.Point(point.lets, target, type_, point.op, False, value)
        return ir.Nest.over(nest.name, dims, made, nest.sequential)

    def _owned(self, program: ir.Program, nest: ir.Nest, update: ir.Nest) -> ir.Nest:
        """The nest with a dimension for those who own ranges, the first of whom has what is outside
        as well, so that it is found."""
        point, target = update.point, nest.point.target
        places = enumerate(target.subscripts)
        axis, s = next((k, s) for k, s in places if not isinstance(s, ir.Affine))
        layout = program.tensor(target.tensor).layout
        first, size = layout.origin[axis], -(-layout.extents[axis] // self.owners)
        owner = ir.Dim(unused(f"{nest.name}.owner", update.dims), 0, self.owners, False)
        assert isinstance(s, ir.Computed)
        place = s.value if s.value.type == INT64 else ir.Cast(s.value, INT64)
        begin = ir.Affine(((owner.name, size),), first)
        ends = begin, begin + ir.Affine((), size)
        own = _within(place, *(ir.Position(end, INT64) for end in ends))
        stop = first + layout.extents[axis]
        anywhere = _within(place, ir.Const(first, INT64), ir.Const(stop, INT64))
        number = ir.Position(ir.Affine.variable(owner.name), INT64)
        is_first = ir.Binary("==", number, ir.Const(0, INT64), BOOL)
        mine: ir.Value = ir.Select(anywhere, own, is_first, BOOL)
        condition, value = guard(point.op, point.value)
        if condition is not None:
            mine = ir.Binary("&&", condition, mine, BOOL)
        value = ir.Select(mine, value, identity(point.op, value.type), value.type)
        return ir.Nest.over(
            nest.name, (owner, *update.dims), replace(point, value=value), nest.sequential
        )

    def _result(self, nest: ir.Nest, own: ir.Tensor, boxes: list[ir.Dim]) -> ir.Nest:
        """The nest that makes results of copies: of a few one after the other, so that nothing
        else decides about the order, of many in a reduction."""
        name, point = f"{nest.name}.result", nest.point
        dims = [replace(d, name=f"{name}.{d.name}") for d in boxes]
        part = ir.Dim(f"{name}.part", 0, self.parts, True)
        many = self.parts > _WRITTEN_OUT

        def copy(at: ir.Affine) -> ir.Value:
            places = (at, *(ir.Affine.variable(d.name) for d in dims))
            return ir.Load(ir.TensorRef(own.name, places), own.layout.type, total=True)

        if many:
            value = copy(ir.Affine.variable(part.name))
        else:
            value = copy(ir.Affine())
            for k in range(1, self.parts):
                value = ir.Binary(point.op, value, copy(ir.Affine((), k)), value.type)
        if value.type != point.type.compute:
            value = ir.Cast(value, point.type.compute)
        op, initialise = point.op, point.initialise
        if initialise and not many:
            op, initialise = "=", False
        made = ir.Point((), _whole(nest, dims), point.type, op, initialise, value)
        return ir.Nest.over(name, [*dims, part] if many else dims, made)


def _calling_lets(nest: ir.Nest) -> list[str]:
    """The values with names that a scatter needs and calls functions for, and that can be computed
    at all points, whatever has been updated."""
    point, found = nest.point, list[str]()
    for let in _needed(point.lets, [point.value, *_computed(point.target)]):
        values = [x.value for x in (*_needed(point.lets, [let.value]), let)]
        read = [load for value in values for load in loads(value)]
        checks = (s for x in read for s in x.ref.computed)
        if (
            long_calls(let.value)
            and all(load.total and load.ref.tensor != point.target.tensor for load in read)
            and not any(s.check for s in checks)
        ):
            found.append(let.name)
    return found


def _computed_ahead(nest: ir.Nest, name: str) -> tuple[ir.Nest, ir.Tensor, ir.Nest]:
    """The nest that computes a value with a name at all points, what it writes, and the nest that
    reads it there."""
    point = nest.point
    let = next(x for x in point.lets if x.name == name)
    moving = dims_of_lets(point.lets)[name]
    rest = [d for d in nest.dims if d.name in moving]
    first, memory, read = _apart(nest, f"{nest.name}.{name}", let.value, let.value.type, "=", rest)
    lets = tuple(replace(x, value=read) if x is let else x for x in point.lets)
    lets = _needed(lets, [point.value, *_computed(point.target)], checked=True)
    return first, memory, replace(nest, point=replace(point, lets=lets))


def _apart(
    nest: ir.Nest,
    name: str,
    value: ir.Value,
    type_: ScalarType,
    op: str,
    dims: Sequence[ir.Dim],
    reduced: Sequence[ir.Dim] = (),
) -> tuple[ir.Nest, ir.Tensor, ir.Load]:
    """A nest that computes a value of another one along some of its dimensions, what it writes, and
    what the other one reads."""
    names = {d.name: f"{name}.{d.name.rpartition('.')[2]}" for d in (*dims, *reduced)}
    lets = _needed(nest.point.lets, [value], checked=bool(reduced))
    lets = tuple(replace(x, value=renamed(x.value, names)) for x in lets)
    ref = ir.TensorRef(name, tuple(ir.Affine.variable(d.name) for d in dims))
    point = ir.Point(lets, renamed_ref(ref, names), type_, op, op != "=", renamed(value, names))
    own = [replace(d, name=names[d.name], reduction=False) for d in dims]
    own += [replace(d, name=names[d.name]) for d in reduced]
    return ir.Nest.over(name, own, point), scratch(name, type_, dims), ir.Load(ref, type_, True)


def _within(value: ir.Value, low: ir.Value, stop: ir.Value) -> ir.Value:
    return ir.Binary(
        "&&", ir.Binary(">=", value, low, BOOL), ir.Binary("<", value, stop, BOOL), BOOL
    )


def _boxes(program: ir.Program, nest: ir.Nest) -> list[ir.Dim]:
    """For each axis of the target, the range of what may be written, named after its position."""
    layout = program.tensor(nest.point.target.tensor).layout
    found = []
    for axis, s in enumerate(nest.point.target.subscripts):
        if isinstance(s, ir.Affine):
            d = nest.dim(_dim_along(s))
            found.append(ir.Dim(f"{axis}", d.first, d.extent, False))
        else:
            found.append(ir.Dim(f"{axis}", layout.origin[axis], layout.extents[axis], False))
    return found


def _dim_along(s: ir.Affine) -> str:
    """The dimension of an axis in which no data say what is written."""
    ((name, _),) = s.terms
    return name


def _whole(nest: ir.Nest, dims: list[ir.Dim]) -> ir.TensorRef:
    """The element of the target at these dimensions, one for each axis."""
    target = nest.point.target
    places: list[ir.Subscript] = []
    for s, d in zip(target.subscripts, dims, strict=True):
        if isinstance(s, ir.Affine):
            places.append(moved(s, {_dim_along(s): d.name}))
        else:
            places.append(ir.Affine.variable(d.name))
    return replace(target, subscripts=tuple(places))


def _of_copy(nest: ir.Nest) -> list[ir.Subscript]:
    """The subscripts of a copy, which begins where the dimensions do."""
    target, found = nest.point.target, list[ir.Subscript]()
    for axis, s in enumerate(target.subscripts):
        if isinstance(s, ir.Affine):
            found.append(ir.Affine.variable(_dim_along(s)))
        else:
            found.append(replace(s, of=(target.tensor, axis)))
    return found


def _computed(target: ir.TensorRef) -> list[ir.Value]:
    """What says where to write."""
    return [s.value for s in target.computed]


def _needed(
    lets: Sequence[ir.Let], values: Sequence[ir.Value], *, checked: bool = False
) -> tuple[ir.Let, ...]:
    """Those values with names that others are computed with, in order. ``checked``: and those that
    may be an error, which they are at all points, needed or not."""
    found: list[ir.Let] = []
    used = {v.name for value in values for v in walk(value) if isinstance(v, ir.Variable)}
    for let in reversed(lets):
        checks = (s.check for load in loads(let.value) for s in load.ref.computed)
        if let.name in used or (checked and any(checks)):
            found.append(let)
            used |= {v.name for v in walk(let.value) if isinstance(v, ir.Variable)}
    return tuple(reversed(found))


def _undecided(nest: ir.Nest) -> set[str]:
    """Dimensions that say neither which place is written, nor whether a point counts."""
    point = nest.point
    moving = dims_of_lets(point.lets)
    condition, _ = guard(point.op, point.value)
    decide = [*_computed(point.target), *([] if condition is None else [condition])]
    named = dims_of_values(decide, moving)
    return {d.name for d in nest.dims} - named - {f"{nest.name}.part"}


def side_by_side(nest: ir.Nest) -> set[str]:
    """Results that have the same place in data, and count or do not together."""
    return _undecided(nest) - {d.name for d in nest.dims if d.reduction}


def of_one_place(nest: ir.Nest) -> frozenset[str]:
    """Reductions whose points all update the same element, and count or do not together."""
    return frozenset(_undecided(nest) & {d.name for d in nest.dims if d.reduction})


def updated_places(nest: ir.Nest, loops: Sequence[ir.Loop]) -> ir.Statement:
    """What happens in these loops of a scatter. Where to, and whether the point counts, is computed
    outside of those over results side by side: their lanes have it together. Threads of a GPU have
    nothing together."""
    point, beside = nest.point, side_by_side(nest)
    beside -= {x.fold.dim for x in loops if x.kind is ir.Kind.THREAD}
    count = len(list(takewhile(lambda x: x.fold.dim in beside, reversed(loops))))
    outer, inner = loops[: len(loops) - count], loops[len(loops) - count :]
    moving, own = dims_of_lets(point.lets), {x.fold.dim for x in inner}
    shared = [let for let in point.lets if not moving[let.name] & own]
    rest = [let for let in point.lets if moving[let.name] & own]
    condition, value = guard(point.op, point.value)
    if inner and condition is not None:
        shared.append(ir.Let("place.counts", condition))
        counts = ir.Variable("place.counts", BOOL)
        value = ir.Select(counts, value, identity(point.op, value.type), value.type)
    else:
        value = point.value
    value, calls = _calls_before(value, outer)
    update = ir.Update(point.target, point.op, value)
    several: tuple[ir.Statement, ...] = (*rest, update)
    each = (wrap(inner, ir.Block(several)),) if inner else several
    return wrap(outer, ir.Block((*nest.prefetched, *shared, *each)), calls)


def _calls_before(
    value: ir.Value, loops: Sequence[ir.Loop]
) -> tuple[ir.Value, dict[ir.Fold | None, list[ir.Let]]]:
    """A value with names for calls of functions that the last of the loops leave as they are, and
    these by the loop in which they are known, where nothing asks yet whether a point counts."""
    names: dict[ir.Call, ir.Variable] = {}
    found: dict[ir.Fold | None, list[ir.Let]] = {}

    def changed(value: ir.Value) -> ir.Value:
        if not isinstance(value, ir.Call) or not long_calls(value):
            return rebuilt(value, changed)
        moving = dims_of_values([value])
        most = max(
            (k for k, x in enumerate(loops) if moving & {x.fold.dim, x.fold.name}), default=-1
        )
        there = all(x.total and x.ref.is_affine for x in loads(value))
        points = math.prod(representative(x.fold.count) for x in loops[most + 1 :])
        if not there or variables([value]) or most < 0 or points < _MANY:
            return rebuilt(value, changed)
        if value not in names:
            names[value] = ir.Variable(f"place.call{len(names)}", value.type)
            let = ir.Let(names[value].name, value)
            found.setdefault(loops[most].fold, []).append(let)
        return names[value]

    serial = all(x.kind is ir.Kind.SERIAL and representative(x.fold.count) for x in loops)
    return (changed(value), found) if serial and long_calls(value) else (value, {})
