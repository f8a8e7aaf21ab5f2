"""Splits reductions among blocks: parts are reduced on their own, and then a nest of its own
reduces the parts. So a few results of long sums keep a whole device busy, and every run gives the
same sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.walk import (
    loads,
    renamed,
    renamed_ref,
    rewritten,
    substituted,
    with_values,
)
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.fuse import crossing, refs
from tcl.codegen.passes.fusion.siblings import sibling
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import Size, provably, provably_equal
from tcl.grammar.syntax.types import BOOL, INT64, ScalarType


@dataclass(frozen=True, slots=True)
class Split:
    """Replaces a nest by one with a result for each part, and one that reduces these.

    The first keeps its name, and has a new leading dimension, the part; the other one is called
    ``NAME.whole``.
    """

    nest: str
    parts: tuple[int, ...]
    """Per dimension; 0, 1 or a missing number does not split."""

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        chosen = [k for k, n in enumerate(self.parts) if n > 1]
        if not chosen:
            return program
        reason = self._why_not_split(nest, chosen)
        if reason:
            raise OptionsError(f"split: nest {nest.name}: {reason}")
        k = chosen[0]
        dim = nest.dims[k]
        count = self.parts[k]
        results = (d for d in nest.dims if not d.reduction)
        held = ir.Dim("part", 0, count, False), *results
        memory = scratch(f"{nest.name}.parts", nest.point.type.compute, held)
        tensors = (*program.tensors, memory)
        beside = _beside(program.nests, nest, dim, count, memory)
        if beside is not None:
            return ir.Program(program.name, tensors, beside)
        first = _of_parts(nest, dim, count, memory)
        second = _of_whole(nest, count, memory)
        nests = [m for n in program.nests for m in ((first, second) if n is nest else (n,))]
        return ir.Program(program.name, tensors, tuple(nests))

    def _why_not_split(self, nest: ir.Nest, chosen: list[int]) -> str | None:
        if len(self.parts) > len(nest.dims):
            return f"it has {len(nest.dims)} dimensions, but {len(self.parts)} numbers were given"
        if nest.sequential:
            return nest.sequential
        if len(chosen) > 1:
            return "only one of its reductions can be split"
        dim = nest.dims[chosen[0]]
        if not dim.reduction:
            return f"{dim.name} is not a reduction: use chunk to divide its points"
        if nest.points == 0:
            return "there is nothing to reduce"
        parts = self.parts[chosen[0]]
        if provably(lambda: parts > dim.extent):
            return f"{dim.name} has only {dim.extent} points for {parts} parts"
        if isinstance(dim.extent, Size):
            return None  # the last parts may be empty
        size = part_size(dim.extent, parts)
        made = -(-dim.extent // size)
        if made != parts:
            return f"{dim.extent} points of {dim.name} fill only {made} of {parts} parts of {size}"
        return None


_LINE = 16
"""Points that parts of an extent begin at multiples of which is known only at the launch: so what
they begin with can be read in vectors."""


def part_size(extent: int, count: int) -> int:
    """The points of each of so many parts, of which the last ones may have fewer."""
    unit = _LINE if isinstance(extent, Size) else 1
    return -(-extent // (count * unit)) * unit


def is_whole(nest: ir.Nest) -> bool:
    """Whether a nest reduces the parts of one that was split."""
    return nest.name.endswith(".whole")


def adding_up(parts: Sequence[ir.Nest], nests: Sequence[ir.Nest]) -> ir.Fold | None:
    """The chunks among which the last block can do what ``nests`` do, after blocks that do what
    ``parts`` do: those over the parts of a reduction, where both have the same chunks of results.
    None where blocks would need what those of other results write."""
    leader, whole = parts[0], nests[0]
    if not is_whole(whole) or all(whole.name != f"{n.name}.whole" for n in parts):
        return None
    part = next((f for f in leader.chunks if f.dim == _part_of(leader)), None)
    if part is None or part.step != 1:
        return None
    made = {f"{n.name}.parts" for n in parts}
    for one in parts:
        own = [f for f in one.chunks if f.dim != _part_of(one)]
        for other in nests:
            if _sizes(one, own) != _sizes(other, other.chunks):
                return None
            written = {one.point.target.tensor, *(s.ref.tensor for s in one.point.kept)}
            pairs = [(a.dim, b.dim) for a, b in zip(own, other.chunks, strict=True)]
            needs = {ref.tensor for ref in refs(other)} & written
            changes = {other.point.target.tensor, *(s.ref.tensor for s in other.point.kept)}
            changes &= {r.tensor for r in refs(one)} | written
            if needs - made or changes or crossing(one, other, pairs):
                return None
    return part


def _part_of(nest: ir.Nest) -> str | None:
    """The dimension over the parts of a nest that was split."""
    return nest.dims[0].name if nest.point.target.tensor == f"{nest.name}.parts" else None


def unused(name: str, dims: Iterable[ir.Dim]) -> str:
    """A name for a dimension beside these, of which one may have an index that is called so."""
    taken = {d.name for d in dims}
    while name in taken:
        name += "_"
    return name


def _sizes(nest: ir.Nest, folds: Sequence[ir.Fold]) -> list[tuple[int, int, int, int]]:
    dims = map(nest.dim, (f.dim for f in folds))
    return [(f.step, f.count, d.extent, d.first) for f, d in zip(folds, dims, strict=True)]


def shifted(options: NestOptions) -> NestOptions:
    """Choices for a nest, as choices for what it is once it has a leading dimension of parts."""
    chunk = None if options.chunk is None else (1, *options.chunk)  # each part is a block's
    return replace(options.with_leading(), chunk=chunk, split=())


def scratch(name: str, type_: ScalarType, dims: Sequence[ir.Dim]) -> ir.Tensor:
    """Memory for an element at each point along dimensions."""
    layout = ir.contiguous(type_, [d.extent for d in dims], [d.first for d in dims])
    return ir.Tensor(name, ir.Role.SCRATCH, replace(layout, alignment=layout.itemsize, base=16))


def in_parts(
    nest: ir.Nest, dim: ir.Dim, count: int
) -> tuple[tuple[ir.Dim, ...], ir.Point, ir.Value | None]:
    """The dimensions of a nest where one of them has the points of a part, behind that over so many
    parts; its point there; and a condition for that to be one, if the last part is shorter."""
    size, point = part_size(dim.extent, count), nest.point
    part = ir.Dim(unused(f"{nest.name}.part", nest.dims), 0, count, False)
    dims = (part, *(replace(d, extent=size) if d is dim else d for d in nest.dims))
    whole = provably_equal(size * count, dim.extent)
    place = ir.Affine.variable(part.name).scaled(size) + ir.Affine.variable(dim.name)
    point = with_values(point, lambda value: substituted(value, dim.name, place, inside=whole))
    if whole:
        return dims, point, None
    there = ir.Binary("<", ir.Position(place, INT64), ir.Const(dim.first + dim.extent, INT64), BOOL)
    lets = tuple(replace(x, value=_only_if(there, x.value)) for x in point.lets)
    return dims, replace(point, lets=lets), there


def _of_parts(nest: ir.Nest, dim: ir.Dim, count: int, memory: ir.Tensor) -> ir.Nest:
    """The nest that reduces each part."""
    dims, point, there = in_parts(nest, dim, count)
    value = point.value
    if there is not None:
        value = ir.Select(there, value, identity(point.op, value.type), value.type)
    results = (ir.Affine.variable(d.name) for d in dims if not d.reduction)
    target = ir.TensorRef(memory.name, tuple(results))
    made = ir.Point(point.lets, target, memory.layout.type, point.op, True, value)
    return ir.Nest.over(nest.name, dims, made)


def _beside(
    nests: tuple[ir.Nest, ...],
    nest: ir.Nest,
    dim: ir.Dim,
    count: int,
    memory: ir.Tensor,
) -> tuple[ir.Nest, ...] | None:
    """The nests, where the one before was split into the same parts: what reduces those of both
    runs together, and so does what reduces their results. None where they cannot.

    A point that counts only where it has the extreme value of all counts in its part where it has
    that of the part; of the parts, those count whose extreme value is that of all.
    """
    at = nests.index(nest)
    if at < 2 or nests[at - 1].name != f"{nests[at - 2].name}.whole":
        return None
    leader, whole = nests[at - 2 : at]
    if not is_whole(whole) or not provably_equal(part_size(dim.extent, count) * count, dim.extent):
        return None
    results = [d.name for d in nest.dims if not d.reduction]
    own = dict(zip(results, (d.name for d in whole.dims if not d.reduction), strict=False))
    places = map(ir.Affine.variable, (unused(f"{nest.name}.part", nest.dims), *results))
    extreme = leader.point.target, whole.point.target
    of_part = ir.Load(replace(extreme[0], subscripts=tuple(places)), leader.point.type, total=True)

    def in_part(value: ir.Load) -> ir.Value:
        moved = renamed(value, own)
        return of_part if isinstance(moved, ir.Load) and moved.ref == extreme[1] else value

    point = replace(nest.point, value=rewritten(nest.point.value, in_part))
    first = _of_parts(replace(nest, point=point), dim, count, memory)
    second = _of_whole(nest, count, memory)
    if first.dims[0].extent != leader.dims[0].extent or (found := sibling(leader, first)) is None:
        return None
    if not found.always:
        chosen = point.value
        assert isinstance(chosen, ir.Select)  # as it is such a sibling
        parts, none = second.point.value, chosen.otherwise
        bounded = ir.Binary(point.op, parts, none, parts.type)  # as it is: says how far it goes
        names = {b.name: a.name for a, b in zip(whole.dims, second.dims, strict=True)}
        back = {a: b for b, a in names.items()}
        reached = ir.Load(extreme[1], whole.point.type, total=True)
        has = ir.Binary("==", renamed(whole.point.value, back), renamed(reached, back), BOOL)
        value = ir.Select(has, bounded, none, parts.type)
        second = replace(second, point=replace(second.point, value=value))
        if sibling(whole, second) is None:
            return None
    return (*nests[: at - 2], leader, first, whole, second, *nests[at + 1 :])


def _only_if(there: ir.Value, value: ir.Value) -> ir.Value:
    """The value; nothing is read for it where there is nothing."""
    if all(load.total for load in loads(value)):
        return value
    zero = ir.Const(False if value.type.is_bool else 0, value.type)
    return ir.Select(there, value, zero, value.type)


def _of_whole(nest: ir.Nest, count: int, memory: ir.Tensor) -> ir.Nest:
    """The nest that reduces the parts."""
    name = f"{nest.name}.whole"
    names = {d.name: f"{name}.{d.name.rpartition('.')[2]}" for d in nest.dims}
    results = [replace(d, name=names[d.name]) for d in nest.dims if not d.reduction]
    part = ir.Dim(unused(f"{name}.part", results), 0, count, True)
    places = (ir.Affine.variable(d.name) for d in (part, *results))
    parts = ir.Load(ir.TensorRef(memory.name, tuple(places)), memory.layout.type, total=True)
    point = nest.point
    target = renamed_ref(point.target, names)
    made = ir.Point((), target, point.type, point.op, point.initialise, parts)
    return ir.Nest.over(name, (*results, part), made)


VECTOR = 4
"""Points of a part that a GPU's threads copy at once: parts are whole vectors where they can be."""


def parts_of(extent: int, wanted: int, least: int, vector: int = 1) -> int:
    """Into how many parts to split a dimension: about as many as are wanted, all of the same size,
    which is at least so much; 1 if there are none. Parts are whole ``vector``s where the dimension
    is."""
    most = min(wanted, extent // max(1, least))
    unit = math.gcd(extent, vector)
    return max((p for p in range(1, most + 1) if extent % (p * unit) == 0), default=1)
