"""All the loops of a nest on a CPU, told from its options alone."""

from __future__ import annotations

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import NestOptions
from tcl.codegen.passes.chunk import chunked, why_not_chunked
from tcl.codegen.passes.cpu.register import why_not_registers, with_registers
from tcl.codegen.passes.order import ordered, why_not_ordered
from tcl.codegen.passes.tile import points_inside, tiled, why_not_tiled
from tcl.codegen.passes.vectorize import vectorized, why_not_vectorized


def why_no_loops(nest: ir.Nest, chosen: NestOptions, device: CpuProfile) -> str | None:
    """Why a nest cannot have the loops of these options, or None if it can."""
    chunk, tile = chosen.chunk or (), chosen.tile or ()
    lanes = chosen.vectorize or (-1, 1)
    points = points_inside(nest, chunk, tile)
    return (
        why_not_chunked(nest, chunk)
        or why_not_tiled(nest, tile)
        or why_not_ordered(nest, chosen.order or ())
        or why_not_ordered(nest, chosen.inner_order or ())
        or why_not_vectorized(nest, *lanes)
        or why_not_registers(nest, chosen.register or (), points, lanes, device)
    )


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
