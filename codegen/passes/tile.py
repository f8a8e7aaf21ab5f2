"""Splits loops into loops over tiles and loops inside a tile."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest


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
        if len(self.sizes) > len(nest.dims):
            raise OptionsError(
                f"tile: nest {nest.name} has {len(nest.dims)} dimensions, "
                f"{len(self.sizes)} sizes were given"
            )
        sizes = dict(zip((d.name for d in nest.dims), self.sizes, strict=False))
        chunks: list[ir.Loop] = []
        tiles: list[ir.Loop] = []
        points: list[ir.Loop] = []
        for loop in nest.loops:
            fold, extent = loop.fold, loop.fold.count
            size = sizes.get(fold.dim, 0)
            if loop.kind is ir.Kind.PARALLEL:
                chunks.append(loop)
                continue
            if size == 0 or size >= extent:
                points.append(loop)
                continue
            tiles.append(ir.Loop(ir.Fold(fold.dim, "tile", size, -(-extent // size))))
            points.append(ir.Loop(ir.Fold(fold.dim, "point", 1, size)))
        if tiles and nest.sequential:
            raise OptionsError(f"tile: nest {nest.name} cannot be tiled: {nest.sequential}")
        return nest.with_loops(chunks + tiles + points)
