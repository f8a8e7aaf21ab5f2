"""All the loops of a nest on a CPU, told from its options alone."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.options.options import NestOptions
from tcl.codegen.passes.chunk import chunked
from tcl.codegen.passes.cpu.register import with_registers
from tcl.codegen.passes.order import ordered, why_not_ordered
from tcl.codegen.passes.tile import tiled, why_not_tiled
from tcl.codegen.passes.vectorize import vectorized, why_not_vectorized


def why_no_loops(nest: ir.Nest, o: NestOptions) -> str | None:
    """Why a nest cannot have these tiles, orders, or lanes, or None if it can."""
    return (
        why_not_tiled(nest, o.tile or ())
        or why_not_ordered(nest, o.order or ())
        or why_not_ordered(nest, o.inner_order or ())
        or why_not_vectorized(nest, *(o.vectorize or (-1, 1)))
    )


def with_loops(nest: ir.Nest, o: NestOptions) -> ir.Nest:
    """A nest that has one loop for each dimension inside of its chunks, and can have these options,
    with the loops that the passes give it."""
    nest = tiled(chunked(nest, o.chunk or ()), o.tile or ())
    nest = ordered(ordered(nest, "tile", o.order or ()), "point", o.inner_order or ())
    nest = vectorized(nest, *(o.vectorize or (-1, 1)))
    return with_registers(nest, o.register or ())
