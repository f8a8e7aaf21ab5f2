"""Reductions of what is under a condition, through those points alone at which it holds.

``O(m, n) +=! M(m, k) ? A(m, k) * B(k, n) : 0`` adds nothing where ``M`` is false. Which points that
is, is the same for all ``n``: for each ``m``, the ``k`` at which the condition holds are listed
once, and the loop over ``k`` goes through the list, without a condition in it.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import dims_of_values, loads, walk
from tcl.codegen.passes.base import map_nest, refuse
from tcl.codegen.passes.building import wrap
from tcl.codegen.passes.cpu.copies import as_kernel, fixed
from tcl.codegen.passes.cpu.levels import Levels
from tcl.codegen.passes.cpu.stage import MAX_BYTES, made_with
from tcl.codegen.passes.knobs import KnobSubject, OptionKnobs, flag_knobs
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import INT32, INT64

_SO_FAR = "listed"
"""The number of points of a list while it is made."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Marks the loop of a reduction that goes through the compacted indices of its points. Runs
    after all passes that change loops."""

    nest: str

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        refuse("skip", self.nest, why_not_skipped(nest, made_with(program.nests, nest)))
        condition, _ = guard(nest.point.op, nest.point.value)
        assert condition is not None
        *rows, own = _in_turn(nest, condition)
        extents, origin = [d.extent for d in rows], [d.first for d in rows]
        at = tuple(ir.Affine.variable(d.name) for d in rows)
        turn = ir.Computed(ir.Variable(ir.TURN, INT64), check=False)
        count = ir.Tensor(
            f"{nest.name}.count", ir.Role.SCRATCH, ir.contiguous(INT32, extents, origin)
        )
        offsets = ir.Tensor(
            f"{nest.name}.listed",
            ir.Role.SCRATCH,
            ir.contiguous(INT32, (*extents, own.extent), (*origin, 0)),
        )
        compacted = ir.Compacted(
            condition, ir.TensorRef(count.name, at), ir.TensorRef(offsets.name, (*at, turn))
        )
        loops = (
            replace(x, compacted=compacted) if x.fold.dim == own.name else x for x in nest.loops
        )
        changed = nest.with_loops(loops)
        program = replace(program, tensors=(*program.tensors, count, offsets))
        return map_nest(program, self.nest, lambda _: changed)


def why_not_skipped(nest: ir.Nest, made: Set[str]) -> str | None:
    """Why a nest with all of its loops cannot leave out points, or None if it can. ``made``: the
    tensors that nests whose chunks it shares write before it.

    What cannot be with the loops over its points and its lanes alone still cannot with more.
    """
    if reason := why_never_skipped(nest):
        return reason
    condition, _ = guard(nest.point.op, nest.point.value)
    assert condition is not None
    *rows, own = _in_turn(nest, condition)
    names = {d.name for d in (*rows, own)}
    for loop in nest.loops:
        if loop.fold.dim in names and fixed(loop):
            return f"its condition changes along {loop.fold.dim}, which is written out or in lanes"
    if not own.reduction:
        return f"its condition changes along the results of {own.name} inside of the reduction"
    if len(nest.folds(own.name)) > 1:
        return f"its condition changes along {own.name}, which is tiled"
    if all(x.fold.dim != own.name for x in Levels.from_nest(nest).inner):
        return f"results are in memory between the iterations of the reduction over {own.name}"
    if nest.dot_product is not None or nest.mma:
        return "an instruction that adds several points cannot skip single points"
    if any(load.ref.tensor in made for load in loads(condition)):
        return "the nests whose chunks it shares write what its condition reads"
    if math.prod(d.extent for d in (*rows, own)) * INT32.itemsize > MAX_BYTES:
        return "lists of its points would need too much memory"
    return None


def why_never_skipped(nest: ir.Nest) -> str | None:
    """Why a nest cannot leave out points, whatever its loops, or None if it may with some."""
    if nest.sequential:
        return nest.sequential
    condition, _ = guard(nest.point.op, nest.point.value)
    if condition is None:
        return "it is not a reduction that ignores a point unless one condition holds"
    if nest.point.lets or any(isinstance(v, ir.Variable) for v in walk(condition)):
        return "it computes values outside of its condition"
    if not any(d.reduction for d in condition_dims(nest, condition)):
        return "its condition is the same for all points of the reduction"
    if nest.points == 0:
        return "it has no points to skip"
    return None


def condition_dims(nest: ir.Nest, condition: ir.Value) -> tuple[ir.Dim, ...]:
    """The dimensions that a condition changes along."""
    named = dims_of_values([condition])
    return tuple(d for d in nest.dims if d.name in named)


def _in_turn(nest: ir.Nest, condition: ir.Value) -> list[ir.Dim]:
    """These, in the order of the innermost loops over them."""
    place = {x.fold.dim: k for k, x in enumerate(nest.loops)}
    return sorted(condition_dims(nest, condition), key=lambda d: place[d.name])


def compaction(nest: ir.Nest) -> tuple[ir.Grid, ir.Statement] | None:
    """What makes the lists of a nest with its loops, as a kernel's grid and body; None if it has
    none."""
    loop = nest.compacted
    if loop is None or loop.compacted is None:
        return None
    fold, compacted = loop.fold, loop.compacted
    so_far = ir.Variable(_SO_FAR, INT32)
    here = tuple(
        replace(s, value=ir.Cast(so_far, INT64)) if isinstance(s, ir.Computed) else s
        for s in compacted.offset.subscripts
    )
    # Every offset is written to where the next one goes that is to stay.
    offset = ir.Position(ir.Affine.variable(fold.name), INT32)
    holds = ir.Select(compacted.condition, ir.Const(1, INT32), ir.Const(0, INT32), INT32)
    each = ir.Block(
        (
            ir.Store(replace(compacted.offset, subscripts=here), offset),
            ir.Accumulate(_SO_FAR, "+", holds),
        )
    )
    one = ir.Block(
        (
            ir.Declare(_SO_FAR, INT32, (), ir.Const(0, INT32)),
            ir.For(replace(loop, compacted=None), each),
            ir.Store(compacted.count, so_far),
        )
    )
    rows = {d.name for d in condition_dims(nest, compacted.condition)} - {fold.dim}
    made = wrap([x for x in nest.loops if x.fold.dim in rows], one)
    grid, body = as_kernel(nest, made)
    if any(nest.dim(fold.dim).reduction for folds in grid for fold in folds):
        return (), made  # few lists, all of which every result goes through
    return grid, body


def unguarded(point: ir.Point) -> ir.Point:
    """What a point does where its condition holds."""
    return replace(point, value=guard(point.op, point.value)[1])


def skip_knobs(on: KnobSubject) -> OptionKnobs:
    return flag_knobs(on, "skip", able=on.may_have(skip=True))
