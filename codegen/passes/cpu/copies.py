"""Loops around statements, and the copies of operands that are made in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import replaced
from tcl.codegen.passes.cpu.register import MAX_POINTS
from tcl.codegen.passes.cpu.stage import ALIGNMENT


def fixed(loop: ir.Loop) -> bool:
    """Whether the loop is written out, or lanes."""
    return loop.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR)


def wrap(loops: Sequence[ir.Loop], body: ir.Statement, nest: ir.Nest | None = None) -> ir.Statement:
    """Loops around a body. With the nest whose points it is, its panels are filled in them."""
    for loop in reversed(loops):
        copies = [c for c in nest.staged if c.inside == loop.fold] if nest else []
        if nest and copies:
            body = ir.Block((*(copy(nest, c) for c in copies), body))
        body = ir.For(loop, body)
    return body


def copy(nest: ir.Nest, staged: ir.Staged) -> ir.Statement:
    """Fills a panel: every point of the loops that its subscript names."""
    (subscript,) = staged.panel.subscripts
    if not isinstance(subscript, ir.Affine):
        raise ir.IRError(f"the place in {staged.panel.tensor} depends on data")
    names = {name for name, _ in subscript.terms}
    loops = [x for x in nest.loops if x.fold.name in names]
    if staged.across:
        loops, subscript = _several_at_once(loops, staged, subscript)
    panel = ir.TensorRef(staged.panel.tensor, (subscript,))
    return wrap(loops, ir.Store(panel, staged.value))


def _several_at_once(
    loops: list[ir.Loop], staged: ir.Staged, place: ir.Affine
) -> tuple[list[ir.Loop], ir.Affine]:
    """The loops of a copy and the place in its panel, with the innermost loop along ``across``
    written out in part: as many points as fit into a cache line are read for all lanes and then
    transposed."""
    serial = [x for x in loops if x.kind is ir.Kind.SERIAL]
    held = [x for x in loops if fixed(x)]
    chunks = [x for x in loops if x.kind is ir.Kind.PARALLEL]
    fold = [x.fold for x in serial if x.fold.dim == staged.across][-1]
    line = max(1, ALIGNMENT // staged.source.type.itemsize)
    room = MAX_POINTS // math.prod(x.fold.count for x in held if x.kind is ir.Kind.UNROLL)
    count = min(line // fold.step, room, fold.count)
    if count > 1:
        longer = replace(fold, step=fold.step * count, count=-(-fold.count // count))
        serial = [ir.Loop(longer) if x.fold == fold else x for x in serial]
        part = ir.Fold(fold.dim, "across", fold.step, count)
        held.insert(0, ir.Loop(part, ir.Kind.UNROLL))
        place = place + ir.Affine.of(part.name).scaled(place.coefficient(fold.name))
    own = [x for x in held if x.fold.dim == staged.across and x.kind is ir.Kind.UNROLL]
    rest = [x for x in held if x not in own]
    lanes = [x for x in rest if x.kind is ir.Kind.VECTOR]
    return [*chunks, *serial, *(x for x in rest if x not in lanes), *own, *lanes], place


def reading_panels(nest: ir.Nest) -> ir.Nest:
    """The nest with what was copied changed to reads of the copies."""
    point = nest.point
    for staged in nest.staged:
        read = ir.Load(staged.panel, staged.value.type, total=True)
        lets = tuple(replace(x, value=replaced(x.value, staged.value, read)) for x in point.lets)
        point = replace(point, lets=lets, value=replaced(point.value, staged.value, read))
    return replace(nest, point=point)


def shared(nest: ir.Nest, made: ir.Statement) -> ir.Statement:
    """A copy whose outermost loop is shared among threads, if the nest's are."""
    if not (isinstance(made, ir.For) and made.loop.kind is ir.Kind.SERIAL and nest.chunks):
        return made
    fold, inner = made.loop.fold, made.body
    while isinstance(inner, ir.For) and inner.loop.fold.dim != fold.dim:
        inner = inner.body
    # Loops that are written out have to know the length of what is around them.
    written_out = isinstance(inner, ir.For) and fixed(inner.loop)
    if written_out and nest.dim(fold.dim).extent % fold.step:
        return made
    return replace(made, loop=replace(made.loop, kind=ir.Kind.PARALLEL))
