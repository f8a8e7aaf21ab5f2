"""Copies of operands, in loops that fill panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir import ir
from tcl.codegen.passes.building import wrap
from tcl.codegen.passes.cpu.register import MAX_POINTS
from tcl.grammar.sizes.varying import clipped

_COPIED = 32
"""Bytes that are copied at once of an operand that all lanes share."""


def fixed(loop: ir.Loop) -> bool:
    """Whether the loop is written out, or lanes, or done at once."""
    return loop.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR, ir.Kind.DOT, ir.Kind.MMA)


def copy_loops(nest: ir.Nest, staged: ir.Staged) -> ir.Statement:
    """Fills a panel: every point of the loops that its subscript names."""
    (subscript,) = staged.panel.subscripts
    if not isinstance(subscript, ir.Affine):
        raise ir.IRError(f"the place in {staged.panel.tensor} depends on data")
    names = {name for name, _ in subscript.terms}
    # All that may be read is copied, whatever is left out.
    loops = [replace(x, compacted=None) for x in nest.loops if x.fold.name in names]
    own = [x.fold for x in loops]
    shared = bool(nest.chunks) and staged.inside is None  # by threads: the outermost loop as it is
    before = staged.inside is None or staged.inside in nest.chunks
    if staged.across:
        loops, subscript = _several_at_once(loops, staged, subscript)
    elif nest.dot_product is not None and nest.dot_product.name in names and nest.lane not in own:
        loops, subscript = _along(nest, nest.dot_product, loops, staged, subscript)
    elif nest.lane is not None and not shared and (nest.mma or (before and nest.lane in own)):
        # Rows of memory are read from end to end: pieces of them may lie in as many pages.
        lane = nest.lane.dim
        loops.sort(key=lambda x: 2 if fixed(x) else int(x.fold.dim == lane))
    panel = ir.TensorRef(staged.panel.tensor, (subscript,))
    # A matrix unit multiplies whole fragments: what is not there has to add nothing.
    return wrap(loops, ir.Store(panel, staged.value, padded=bool(nest.mma)))


def _along(
    nest: ir.Nest, words: ir.Fold, loops: list[ir.Loop], staged: ir.Staged, place: ir.Affine
) -> tuple[list[ir.Loop], ir.Affine]:
    """The loops of a copy without the nest's lanes, and the place in its panel, with lanes along
    the dot products: all of a fragment's row, or, where the panel lies in order along them, as
    many as are copied at once."""
    own = [x.fold for x in loops if x.fold.dim == words.dim and x.fold.level != "tile"]
    if nest.mma:
        own = [f for f in own if f in nest.mma or f == words]
        around, lanes = [], math.prod(f.count for f in own)
    else:
        lanes = max(_COPIED // staged.value.type.itemsize, words.count)
        tiles = (f.step for f in nest.folds(words.dim) if f.level == "tile")
        whole = next(tiles, nest.dim(words.dim).extent)
        around = [ir.Fold(words.dim, own[0].level, lanes, -(-whole // lanes))]
    part = ir.Fold(words.dim, "along", 1, lanes)
    left = {f.name for f in own}
    kept = tuple((name, c) for name, c in place.terms if name not in left)
    place = ir.Affine(kept, place.constant)
    for fold in (*around, part):
        place = place + ir.Affine.variable(fold.name)
    # Rows are not written out: each is a loop of its own.
    serial = ir.Kind.SERIAL
    written_out = (ir.Kind.UNROLL, ir.Kind.MMA)
    rest = [
        ir.Loop(x.fold, serial) if x.kind in written_out else x for x in loops if x.fold not in own
    ]
    rest.sort(key=lambda x: x.fold.dim == words.dim and x.fold.level != "tile")
    return [*rest, *map(ir.Loop, around), ir.Loop(part, ir.Kind.VECTOR)], place


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
    line = max(1, LINE // staged.source.type.itemsize)
    room = MAX_POINTS // math.prod(x.fold.count for x in held if x.kind is ir.Kind.UNROLL)
    count = clipped(min(line // fold.step, room), fold.count)
    if count > 1:
        longer = replace(fold, step=fold.step * count, count=-(-fold.count // count))
        serial = [ir.Loop(longer) if x.fold == fold else x for x in serial]
        part = ir.Fold(fold.dim, "across", fold.step, count)
        held.insert(0, ir.Loop(part, ir.Kind.UNROLL))
        place = place + ir.Affine.variable(part.name).scaled(place.coefficient(fold.name))
    # Those along it stay in their order: a padded loop fills what its part of the outer ones has.
    written_out = (ir.Kind.UNROLL, ir.Kind.MMA)
    own = [x for x in held if x.fold.dim == staged.across and x.kind in written_out]
    rest = [x for x in held if x not in own]
    lanes = [x for x in rest if x.kind in (ir.Kind.VECTOR, ir.Kind.DOT)]
    return [*chunks, *serial, *(x for x in rest if x not in lanes), *own, *lanes], place


def fill_kernel(nest: ir.Nest, staged: ir.Staged) -> ir.Kernel:
    """What fills a panel before all loops."""
    if staged.fill is None:
        return ir.Kernel(*as_kernel(nest, copy_loops(nest, staged)), (nest.space,), ())
    fill = staged.fill
    made = wrap(fill.loops, ir.Store(fill.point.target, fill.point.value))
    return ir.Kernel(*as_kernel(nest, made, fill.dims), (fill.space,), ())


def as_kernel(
    nest: ir.Nest, made: ir.Statement, dims: Sequence[ir.Dim] = ()
) -> tuple[ir.Grid, ir.Statement]:
    """A copy as a kernel's grid and body: threads share its loops over chunks, or its outermost
    loop, if they share the nest's chunks. ``dims``: those of its loops, if not the nest's."""
    chunks: list[tuple[ir.Fold, ...]] = []
    while isinstance(made, ir.For) and made.loop.kind is ir.Kind.PARALLEL:
        chunks.append((made.loop.fold,))
        made = made.body
    if chunks or not nest.chunks or not isinstance(made, ir.For) or fixed(made.loop):
        return tuple(chunks), made
    fold, inner = made.loop.fold, made.body
    while isinstance(inner, ir.For) and inner.loop.fold.dim != fold.dim:
        inner = inner.body
    # Loops that are written out have to know the length of what is around them.
    written_out = isinstance(inner, ir.For) and fixed(inner.loop)
    extents = {d.name: d.extent for d in dims or nest.dims}
    if written_out and extents[fold.dim] % fold.step:
        return (), made
    return ((fold,),), made.body
