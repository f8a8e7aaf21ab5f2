"""Divides results into chunks, which threads share among themselves."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import clipped


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
