"""Running reductions: ``O(i) +=! (j <= i) ? X(j) : 0`` as one pass over ``X``.

Where a reduction over ``j`` is guarded by a comparison with an index ``i`` of the result, and its
terms do not depend on ``i``, each result is the one before it and one more term. So the nest has no
loop over ``j``, and its loop over ``i`` is that of a reduction, which writes what it has so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import bounds_of, parts
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.terms import guards
from tcl.codegen.loopir.walk import indices, loads, substituted
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import limits, provably_at_least
from tcl.grammar.syntax.types import BOOL, INT32, INT64


@dataclass(frozen=True, slots=True)
class _Triangle:
    """That ``term <= run + offset``, or ``>=`` where results run from the last point to the first:
    dimensions of a reduction and of a result."""

    term: ir.Dim
    run: ir.Dim
    offset: int
    forward: bool

    @staticmethod
    def from_condition(nest: ir.Nest, condition: ir.Value) -> _Triangle | None:
        """Of a condition that says nothing else."""
        bounds = bounds_of(condition) or []
        if len(bounds) != 1:
            return None
        ((index, bound),) = bounds
        if sorted(c for _, c in index.terms) != [-1, 1]:
            return None
        dims = sorted((nest.dim(name) for name, _ in index.terms), key=lambda d: d.reduction)
        run, term = dims
        if run.reduction or not term.reduction:
            return None
        forward = index.coefficient(term.name) == 1
        offset = bound - 1 - index.constant if forward else index.constant + 1 - bound
        return _Triangle(term, run, offset, forward)

    @property
    def starts_empty(self) -> bool:
        """Whether the first result has one term at most, so that there is none before it."""
        ends = _last(self.run) + self.offset, _last(self.term)
        first = self.run.first + self.offset
        return (
            provably_at_least(self.term.first, first)
            if self.forward
            else provably_at_least(ends[0], ends[1])
        )

    @property
    def place(self) -> ir.Affine:
        """The result at a point of the running dimension."""
        own = ir.Affine.variable(self.run.name)
        if self.forward:
            return own
        return own.scaled(-1) + ir.Affine((), self.run.first + _last(self.run))

    @property
    def added(self) -> ir.Affine:
        """The point whose term that result has and the one before it has not."""
        return self.place + ir.Affine((), self.offset)

    def ends(self) -> Iterator[ir.Value]:
        """What holds where there is such a point, as far as it is not known to hold."""
        low, high = self.run.first + self.offset, _last(self.run) + self.offset
        narrow = all(abs(x) < 2**31 for end in (low, high) for x in limits(end))
        type_ = INT32 if narrow else INT64
        at = ir.Position(self.added, type_)
        if not provably_at_least(low, self.term.first):
            yield ir.Binary(">=", at, ir.Const(self.term.first, type_), BOOL)
        if not provably_at_least(_last(self.term), high):
            yield ir.Binary("<=", at, ir.Const(_last(self.term), type_), BOOL)


def with_running_results(nest: ir.Nest) -> ir.Nest:
    """A nest that has just been lowered as one whose results run, if they do."""
    point = nest.point
    if nest.sequential or point.op == "=" or point.lets or nest.points == 0:
        return nest
    if any(load.ref.tensor == point.target.tensor for load in loads(point.value)):
        return nest
    if not point.target.is_affine:
        return nest
    conditions, value = guards(point.op, point.value)
    if not conditions:
        conditions, value = _conjunction(point.op, value)
    for k, condition in enumerate(conditions):
        triangle = _Triangle.from_condition(nest, condition)
        if triangle is None or not triangle.starts_empty:
            continue
        rest = [*conditions[:k], *conditions[k + 1 :]]
        run = triangle.run.name
        if not any(i.coefficient(run) for v in (*rest, value) for i in indices(v)):
            return _running(nest, triangle, rest, value)
    return nest


def _conjunction(op: str, value: ir.Value) -> tuple[list[ir.Value], ir.Value]:
    """As ``guards``: of ``a && b``, where false changes nothing, all of it is a condition of 1."""
    held = value.operand if isinstance(value, ir.Cast) else value
    both = isinstance(held, ir.Binary) and held.op == "&&"
    if both and identity(op, value.type).value == 0:
        return list(parts(held)), identity("*", value.type)
    return [], value


def _running(
    nest: ir.Nest, triangle: _Triangle, conditions: Sequence[ir.Value], value: ir.Value
) -> ir.Nest:
    point, run, term = nest.point, triangle.run, triangle.term
    ends = list(triangle.ends())

    def moved(value: ir.Value) -> ir.Value:
        return substituted(value, term.name, triangle.added, inside=not ends)

    value = moved(value)
    for condition in (*map(moved, reversed(conditions)), *ends):
        value = ir.Select(condition, value, identity(point.op, value.type), value.type)
    subscripts = (
        triangle.place if s == ir.Affine.variable(run.name) else s for s in point.target.subscripts
    )
    target = replace(point.target, subscripts=tuple(subscripts))
    results = [d for d in nest.dims if not d.reduction and d != run]
    others = [d for d in nest.dims if d.reduction and d != term]
    dims = (*results, replace(run, reduction=True), *others)
    loops = tuple(ir.Loop(ir.Fold(d.name, "point", 1, d.extent)) for d in dims)
    return replace(
        nest,
        dims=dims,
        loops=loops,
        point=replace(point, target=target, value=value),
        sequential=f"each element of {target.tensor} depends on the one before it along {run.name}",
        running=run.name,
    )


def _last(dim: ir.Dim) -> int:
    return dim.first + dim.extent - 1
