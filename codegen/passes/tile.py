"""Splits loops: over chunks, which threads share among themselves, and over tiles."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value, tile_sizes
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.codegen.passes.knobs import Decoded, KnobSubject, OptionKnobs, Values, and_own, padded
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import clipped, provably_at_least


@dataclass(frozen=True, slots=True)
class Chunk:
    """Splits the loops of output dimensions into loops over chunks, outside of all others, and
    loops inside of a chunk."""

    nest: str
    sizes: tuple[int, ...]
    """Points per chunk, per dimension; 0 or a missing size leaves the dimension whole."""
    clip: bool = True
    """Whether a chunk has no more points than the dimension. The threads of a GPU's block are as
    many, however few points there are."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._chunk) if any(self.sizes) else program

    def _chunk(self, nest: ir.Nest) -> ir.Nest:
        refuse("chunk", nest.name, why_not_chunked(nest, self.sizes))
        return chunked(nest, self.sizes, self.clip)


def why_not_chunked(nest: ir.Nest, sizes: tuple[int, ...]) -> str | None:
    """Why a nest, whatever its loops, cannot have these chunks, or None if it can."""
    if reason := too_many(nest, sizes):
        return reason
    if not any(sizes):
        return None
    if nest.sequential and nest.running is None:
        return nest.sequential
    for dim, size in zip(nest.dims, sizes, strict=False):
        if size and dim.reduction:
            return f"{dim.name} is reduced over: its points cannot be divided among threads"
    return None


def chunked(nest: ir.Nest, sizes: tuple[int, ...], clip: bool = True) -> ir.Nest:
    """An untiled nest that can have these chunks, with the loops over them. As ``Chunk``."""
    if not any(sizes):
        return nest
    by_dim = dict(zip((d.name for d in nest.dims), sizes, strict=False))
    chunks: list[ir.Loop] = []
    points: list[ir.Loop] = []
    for loop in nest.loops:
        fold = loop.fold
        size = by_dim.get(fold.dim, 0)
        if clip:
            size = clipped(size, fold.count)
        if size == 0:
            points.append(loop)
            continue
        chunk = ir.Fold(fold.dim, "chunk", size, -(-fold.count // size))
        chunks.append(ir.Loop(chunk, ir.Kind.PARALLEL))
        points.append(ir.Loop(ir.Fold(fold.dim, fold.level, 1, size)))
    return nest.with_loops(chunks + points)


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


def tile_knobs(on: KnobSubject) -> OptionKnobs:
    """A size for each dimension; its extent leaves it untiled."""
    dims, own = on.nest.dims, padded(on.default.tile, len(on.nest.dims))
    knobs = {
        k: Knob(
            f"{dims[k].name}.tile",
            and_own(tile_sizes(dims[k].extent), own[k]),
            dims[k].extent,
            ordered=True,
        )
        for k in on.movable
    }

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        sizes = [0] * len(dims)
        for k, knob in knobs.items():
            size = int(values[knob.name])
            sizes[k] = size if size < dims[k].extent else 0
        return tuple(sizes) if any(sizes) else ()

    def encode(o: NestOptions) -> dict[str, Value]:
        sizes = padded(o.tile, len(dims))
        inside = on.points_inside(o.chunk or (), ())
        return {
            knob.name: sizes[k] if 0 < sizes[k] < inside[k] else dims[k].extent
            for k, knob in knobs.items()
        }

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        """A tile that is no smaller than the chunk is none."""
        inside = on.points_inside(decoded.chunk, ())
        whole = {knob.name: dims[k].extent for k, knob in knobs.items()}
        return {
            knob.name: values[knob.name] if int(values[knob.name]) < inside[k] else whole[knob.name]
            for k, knob in knobs.items()
        }

    return OptionKnobs("tile", tuple(knobs.values()), decode, encode, canonical, exact=False)
