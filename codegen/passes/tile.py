"""Splits loops into loops over tiles and loops inside a tile."""

from __future__ import annotations

from itertools import zip_longest

from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least, representative


@dataclass(frozen=True, slots=True)
class Tile:
    """Tiles a nest, or its chunks: all loops over tiles first, then all loops inside a tile."""

    nest: str
    sizes: tuple[int, ...]
    """Points per tile, per dimension; 0, a missing size, or one that covers the whole
    dimension or chunk leaves it one loop, inside the tile."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._tile)

    def _tile(self, nest: ir.Nest) -> ir.Nest:
        refuse("tile", nest.name, why_not_tiled(nest, self.sizes))
        return tiled(nest, self.sizes)


def why_not_tiled(nest: ir.Nest, sizes: tuple[int, ...]) -> str | None:
    """Why a nest, whatever its loops, cannot have tiles of these sizes, or None if it can."""
    if reason := too_many(nest, sizes):
        return reason
    if nest.sequential and any(
        0 < size < d.extent and (d.reduction or nest.running is None)
        for d, size in zip(nest.dims, sizes, strict=False)
    ):
        return nest.sequential
    return None


def tiled(nest: ir.Nest, sizes: tuple[int, ...]) -> ir.Nest:
    """A nest that can have these tiles, with the loops over them. As ``Tile``."""
    if not any(sizes):
        return nest
    by_dim = dict(zip((d.name for d in nest.dims), sizes, strict=False))
    chunks: list[ir.Loop] = []
    tiles: list[ir.Loop] = []
    points: list[ir.Loop] = []
    for loop in nest.loops:
        fold, extent = loop.fold, loop.fold.count
        size = by_dim.get(fold.dim, 0)
        if loop.kind is ir.Kind.PARALLEL:
            chunks.append(loop)
            continue
        if size == 0 or provably_at_least(size, extent):
            points.append(loop)
            continue
        tiles.append(ir.Loop(ir.Fold(fold.dim, "tile", size, -(-extent // size))))
        points.append(ir.Loop(ir.Fold(fold.dim, "point", 1, size)))
    return nest.with_loops(chunks + tiles + points)


def points_inside(nest: ir.Nest, chunk: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    """The points that a nest will have inside of a tile, per dimension."""
    found = []
    for dim, *sizes in zip_longest(nest.dims, chunk[: len(nest.dims)], tile[: len(nest.dims)]):
        found.append(
            min(representative(dim.extent), *(size or representative(dim.extent) for size in sizes))
        )
    return tuple(found)
