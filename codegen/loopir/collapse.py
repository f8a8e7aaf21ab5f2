"""Dimensions that lie together in memory, run as one.

Where rows follow each other in all that a nest reads and writes, a loop over rows and one over
their elements go through memory from front to back: one loop over all elements does, whose vectors
do not end where a row ends. The last of such dimensions gets all of the points, and those before
it one point each, so that every dimension keeps its place. The axes of the tensors change alike;
what their elements' addresses are does not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import index_of
from tcl.codegen.loopir.walk import indices, loads, rebuilt, rewritten, values_of, with_values
from tcl.grammar.sizes.varying import Size, provably_equal, representative
from tcl.grammar.syntax.types import INT64

_Place: TypeAlias = tuple[str, str, int]
"""Two dimensions of a ``nest`` that follow each other, or two axes of a ``tensor``: its name, and
the position of the first."""
_LONG_ROW = 16
"""Elements of a row that fill vectors. On a Cascade Lake, sums of squares of windows over pairs of
int16 take .4 of the time merged, convolutions of 3 channels 1.03, of 32 to 64 .99, and one of rows
of 255 along time 1.18."""


def merged(program: ir.Program) -> ir.Program:
    """The program with all dimensions merged that can be. It may be the same."""
    program = replace(program, nests=tuple(map(_without_single_points, program.nests)))
    together = _together(program)
    if not together:
        return program
    tensors = {t.name: t for t in program.tensors}
    axes = {
        name: _runs("tensor", name, len(t.layout.extents), together) for name, t in tensors.items()
    }
    changed = {name: _merged_tensor(t, axes[name]) for name, t in tensors.items()}
    nests = tuple(_merged_nest(n, tensors, axes, together) for n in program.nests)
    return ir.Program(program.name, tuple(changed.values()), nests)


def _without_single_points(nest: ir.Nest) -> ir.Nest:
    """Sums in subscripts without dimensions of a single point, which move nothing: ``i + r`` is
    ``i`` where a window has one row, and then goes along an axis as ``_along`` wants it."""
    points = {d.name: d.first for d in nest.dims if provably_equal(d.extent, 1)}

    def subscript(s: ir.Subscript) -> ir.Subscript:
        if not isinstance(s, ir.Affine) or len(s.terms) < 2:
            return s
        fixed = sum(c * points[name] for name, c in s.terms if name in points)
        terms = tuple((name, c) for name, c in s.terms if name not in points)
        return ir.Affine(terms, s.constant + fixed)

    def load(value: ir.Load) -> ir.Value:
        return replace(value, ref=_changed(value.ref, map(subscript, value.ref.subscripts)))

    return _rewritten(nest, load) if points else nest


def _together(program: ir.Program) -> set[_Place]:
    """The pairs of dimensions and of axes that become one.

    Axes can if wherever their tensor is read or written, a pair of dimensions that can goes along
    them; dimensions can if wherever they occur, they go along a pair of axes that can. So what
    cannot takes all with it that it is linked to.
    """
    links: dict[_Place, set[_Place]] = defaultdict(set)
    cannot: set[_Place] = set()
    tensors = {t.name: t for t in program.tensors}
    for nest in program.nests:
        pairs = {(a.name, b.name): k for k, (a, b) in enumerate(pairwise(nest.dims))}
        cannot |= {("nest", nest.name, k) for k in pairs.values() if not _alike(nest, k)}
        for ref, inside in _refs(nest):
            layout = tensors[ref.tensor].layout
            found = [_along(nest, layout, ref, k) for k in range(len(ref.subscripts) - 1)]
            along = [pairs.get(x) if x and not inside else None for x in found]
            for axis, k in enumerate(along):
                place = "tensor", ref.tensor, axis
                if k is None:
                    cannot.add(place)
                else:
                    links[place].add(("nest", nest.name, k))
                    links["nest", nest.name, k].add(place)
            cannot |= {("nest", nest.name, k) for k in _unpaired(nest, ref, along)}
    pending = list(cannot)
    while pending:
        for other in links.get(pending.pop(), ()):
            if other not in cannot:
                cannot.add(other)
                pending.append(other)
    return set(links) - cannot


def _alike(nest: ir.Nest, k: int) -> bool:
    """Whether a dimension and the next one may be one, whatever they are used for."""
    one, other = nest.dims[k : k + 2]
    computed = (rewritten(v, lambda _: ir.Const(0, INT64)) for v in values_of(nest.point))
    named = {name for value in computed for index in indices(value) for name, _ in index.terms}
    return (
        (nest.sequential is None or nest.point.scatters)  # which stay in order
        and one.reduction == other.reduction
        and one.extent > 0 < other.extent
        and not named & {one.name, other.name}
    )


def _refs(nest: ir.Nest) -> Iterator[tuple[ir.TensorRef, bool]]:
    """What is read and written, and whether that is inside of a subscript."""
    yield nest.point.target, False
    for value in values_of(nest.point):
        for load in loads(value):
            yield load.ref, False
            for s in load.ref.computed:
                yield from ((inner.ref, True) for inner in loads(s.value))


def _along(
    nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef, axis: int
) -> tuple[str, str] | None:
    """The dimensions that go along an axis and the next one, row after row. Others may move by
    whole rows, as places of a window (``_merges_in_window``), and the ends of the axis may hold
    them up (``_clamped``)."""
    one, other = ref.subscripts[axis : axis + 2]
    rows, length = layout.extents[axis : axis + 2]
    row, step = layout.strides[axis : axis + 2]
    if min(representative(rows), representative(length)) < 2 or not provably_equal(
        row, step * length
    ):
        return None
    if not isinstance(other, ir.Affine) or [c for _, c in other.terms] != [1]:
        return None
    ((b, _),) = other.terms
    dim, first = nest.dim(b), layout.origin[axis + 1]
    ends = _clamped(one)
    window = isinstance(one, ir.Computed) or len(one.terms) > 1
    if isinstance(one, ir.Computed) and isinstance(row, Size):
        return None
    if window and not _merges_in_window(nest, ref, dim, row // layout.itemsize):
        return None
    if dim.first + other.constant != first or not provably_equal(dim.extent, length):
        return None
    position = nest.dims.index(dim)
    a = nest.dims[position - 1].name if position else b
    along = {x.coefficient(a) for x in ends}
    return (a, b) if {1} <= along <= {0, 1} and not any(x.coefficient(b) for x in ends) else None


def _clamped(subscript: ir.Subscript) -> list[ir.Affine]:
    """The index expressions of which a subscript is one, or the smaller or larger; empty if it is
    no such thing."""
    if isinstance(subscript, ir.Affine):
        return [subscript]
    found, pending = list[ir.Affine](), [] if subscript.check else [subscript.value]
    while pending:
        match pending.pop():
            case ir.Binary(op="min" | "max", left=left, right=right, type=type_) if type_ == INT64:
                pending += left, right
            case value if (index := index_of(value)) is not None and value.type == INT64:
                found.append(index)
            case _:
                return []
    return found


def _merges_in_window(nest: ir.Nest, ref: ir.TensorRef, dim: ir.Dim, length: int) -> bool:
    """Whether rows of so many elements, along ``dim`` and what lies in it, that a window moves over
    are better merged: short ones. Of long ones, in which vectors fit as they are, points of the
    window and of results share what they read only while both are dimensions; and lanes go along a
    reduction only if no results share what it reads."""
    if representative(length) >= _LONG_ROW:
        return False
    named = {name for s in ref.subscripts for index in _clamped(s) for name, _ in index.terms}
    results = (d for d in nest.dims if not d.reduction and not provably_equal(d.extent, 1))
    return not dim.reduction or all(d.name in named for d in results)


def _unpaired(nest: ir.Nest, ref: ir.TensorRef, along: Sequence[int | None]) -> Iterator[int]:
    """Pairs of dimensions of which an axis has one without the other one along the next axis.
    Positions -1 and that of the last dimension may be among them: no pair begins there."""
    position = {d.name: k for k, d in enumerate(nest.dims)}
    for axis, s in enumerate(ref.subscripts):
        here = {*along[max(0, axis - 1) : axis + 1]}
        for index in (s,) if isinstance(s, ir.Affine) else indices(s.value):
            for name, _ in index.terms:
                yield from {position[name] - 1, position[name]} - here


def _changed(ref: ir.TensorRef, subscripts: Iterable[ir.Subscript]) -> ir.TensorRef:
    return replace(ref, subscripts=tuple(subscripts))


def _rewritten(nest: ir.Nest, change: Callable[[ir.Load], ir.Value]) -> ir.Nest:
    """The nest with its reads changed, but those inside of subscripts."""
    return replace(nest, point=with_values(nest.point, lambda value: rewritten(value, change)))


def _runs(kind: str, name: str, count: int, together: set[_Place]) -> list[range]:
    """Ranges of positions that become one, those of a single position left off."""
    found, first = [], 0
    for k in range(count):
        if (kind, name, k) not in together:
            if k > first:
                found.append(range(first, k + 1))
            first = k + 1
    return found


def _merged_tensor(tensor: ir.Tensor, runs: list[range]) -> ir.Tensor:
    layout = tensor.layout
    extents, origin = list(layout.extents), list(layout.origin)
    for run in runs:
        extents[run[-1]] = math.prod(layout.extents[k] for k in run)
        origin[run[-1]] = 0
        for k in run[:-1]:
            extents[k] = 1
    return replace(tensor, layout=replace(layout, extents=tuple(extents), origin=tuple(origin)))


def _merged_nest(
    nest: ir.Nest,
    tensors: Mapping[str, ir.Tensor],
    axes: Mapping[str, list[range]],
    together: set[_Place],
) -> ir.Nest:
    dims = list(nest.dims)
    runs = _runs("nest", nest.name, len(dims), together)
    for run in runs:
        points = math.prod(nest.dims[k].extent for k in run)
        dims[run[-1]] = replace(dims[run[-1]], first=0, extent=points)
        for k in run[:-1]:
            dims[k] = replace(dims[k], extent=1)

    def ref(old: ir.TensorRef) -> ir.TensorRef:
        layout, subscripts = tensors[old.tensor].layout, list(old.subscripts)
        for run in axes[old.tensor]:
            here = slice(run[0], run[-1] + 1)
            subscripts[here] = _in_one(nest, layout, run, subscripts[here])
        return _changed(old, subscripts)

    changed = _rewritten(nest, lambda load: replace(load, ref=ref(load.ref)))
    changed = replace(changed, point=replace(changed.point, target=ref(nest.point.target)))
    loops = (ir.Loop(ir.Fold(d.name, "point", 1, d.extent)) for d in dims)
    return replace(changed, dims=tuple(dims)).with_loops(loops)


def _in_one(
    nest: ir.Nest, layout: ir.Layout, run: range, subscripts: Sequence[ir.Subscript]
) -> Iterator[ir.Subscript]:
    """The subscripts of the same element along a run of axes: the last axis counts all of its
    points from 0, and the others stay at their first index."""
    whole, *inside = subscripts
    along = [s for s in inside if isinstance(s, ir.Affine)]
    if len(along) < len(inside):
        raise ir.IRError("an axis that is merged depends on data")
    ((name, _),) = along[-1].terms
    end, last = nest.dims.index(nest.dim(name)) + 1, ir.Affine.variable(name)
    dims = nest.dims[end - len(run) : end]
    own = [
        ir.Affine.variable(d.name) + ir.Affine((), layout.origin[k] - d.first)
        for k, d in zip(run, dims, strict=True)
    ]
    row, rest = 1, ir.Affine()  # of the first point in the run, rows before columns
    for k, low, at in zip(run[1:], along, own[1:], strict=True):
        row *= layout.extents[k]
        rest = rest.scaled(layout.extents[k]) + low + at.scaled(-1)

    def place(index: ir.Affine) -> ir.Affine:
        return last + (index + own[0].scaled(-1)).scaled(row) + rest

    def clamped(value: ir.Value) -> ir.Value:
        index = index_of(value)
        if index is None:
            return rebuilt(value, clamped)
        if index.coefficient(dims[0].name):
            return ir.Position(place(index), INT64)
        # Whatever the first dimension is, the others are where they are in a row.
        fixed = (index + ir.Affine((), -layout.origin[run[0]])).scaled(row) + rest
        inner = ir.Binary("%", ir.Position(last, INT64), ir.Const(row, INT64), INT64)
        return ir.Binary("+", ir.Position(fixed, INT64), inner, INT64)

    yield from own[:-1]
    if isinstance(whole, ir.Affine):
        yield place(whole)
    else:
        yield ir.Computed(clamped(whole.value), check=False)
