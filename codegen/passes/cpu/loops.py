"""All the loops of a nest on a CPU, told from its options alone."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.passes.chunk import chunked
from tcl.codegen.passes.cpu.register import with_registers
from tcl.codegen.passes.order import ordered
from tcl.codegen.passes.tile import tiled
from tcl.codegen.passes.vectorize import vectorized


def with_loops(
    nest: ir.Nest,
    chunk: tuple[int, ...],
    tile: tuple[int, ...],
    order: tuple[int, ...],
    inner_order: tuple[int, ...],
    lanes: tuple[int, int],
    register: tuple[int, ...],
) -> ir.Nest:
    """A nest that has one loop for each dimension, and can have these options, with the loops that
    the passes give it."""
    nest = tiled(chunked(nest, chunk), tile)
    nest = ordered(ordered(nest, "tile", order), "point", inner_order)
    return with_registers(vectorized(nest, *lanes), register)
