"""The passes that give a nest its loops on a CPU: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.chunk import Chunk, chunked
from tcl.codegen.passes.cpu.dot import Dot, dotted
from tcl.codegen.passes.cpu.matrix import FeedMatrixUnit, Matrix, with_matrix
from tcl.codegen.passes.cpu.peel import Peel
from tcl.codegen.passes.cpu.prefetch import Prefetch
from tcl.codegen.passes.cpu.register import Register, with_registers
from tcl.codegen.passes.cpu.skip import Skip
from tcl.codegen.passes.cpu.stage import Stage
from tcl.codegen.passes.cpu.stream import Stream
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.order import Order, ordered, why_not_ordered
from tcl.codegen.passes.tile import Tile, tiled, why_not_tiled
from tcl.codegen.passes.vectorize import Vectorize, vectorized, why_not_vectorized

LOOPS = ("tile", "order", "vectorize", "dot", "mma", "register")
STAGES = ("chunk", "fuse", *LOOPS, "stage", "feed", "skip", "prefetch", "peel", "stream")


def steps(nest: str, o: NestOptions, device: CpuProfile) -> Mapping[str, tuple[Pass, ...]]:
    """The passes of a nest, by stage. A stage begins when all nests are through the one before."""
    return {
        # Outside of everything else: what threads share.
        "chunk": (Chunk(nest, o.chunk or ()),),
        "fuse": (Fuse(nest),) if o.fuse else (),
        # Before the passes that name the folds that it makes.
        "tile": (Tile(nest, o.tile or ()),),
        # Before lanes and register tiles, whose place does not depend on the order.
        "order": (
            Order(nest, "tile", o.order or ()),
            Order(nest, "point", o.inner_order or ()),
        ),
        "vectorize": (Vectorize(nest, *(o.vectorize or (-1, 1))),),
        # After vectorising: dot products lie inside of lanes.
        "dot": (Dot(nest, o.dot or (), o.vectorize or (-1, 1), device, bool(o.mma)),),
        # After dot products, several of which a matrix unit does at once.
        "mma": (Matrix(nest, o.mma or (), o.vectorize or (-1, 1), device),),
        # After these: a register tile counts vectors, dot products and fragments.
        "register": (Register(nest, o.register or (), device),),
        # After all passes that change loops: panels have an axis per loop.
        "stage": (Stage(nest, o.stage or ()),),
        # After staging: a matrix unit reads panels alone.
        "feed": (FeedMatrixUnit(nest),) if o.mma else (),
        # Which loop goes through lists depends on all others.
        "skip": (Skip(nest),) if o.skip else (),
        "prefetch": (Prefetch(nest, o.prefetch or ()),),
        # Which loop begins on a boundary depends on all others, and on what is copied.
        "peel": (Peel(nest, bool(o.stream)),) if o.peel else (),
        # Whole vectors go past the caches where a loop begins on boundaries.
        "stream": (Stream(nest),) if o.stream else (),
    }


def why_no_loops(nest: ir.Nest, o: NestOptions) -> str | None:
    """Why a nest cannot have these tiles, orders or lanes, or None if it can."""
    return (
        why_not_tiled(nest, o.tile or ())
        or why_not_ordered(nest, o.order or ())
        or why_not_ordered(nest, o.inner_order or ())
        or why_not_vectorized(nest, *(o.vectorize or (-1, 1)))
    )


def with_loops(nest: ir.Nest, o: NestOptions, device: CpuProfile) -> ir.Nest:
    """A nest that has one loop for each dimension inside of its chunks, and can have these options,
    with the loops that the passes give it."""
    nest = tiled(chunked(nest, o.chunk or ()), o.tile or ())
    nest = ordered(ordered(nest, "tile", o.order or ()), "point", o.inner_order or ())
    nest = vectorized(nest, *(o.vectorize or (-1, 1)))
    nest = dotted(nest, o.dot or (), device, bool(o.mma))
    nest = with_matrix(nest, o.mma or (), device)
    return with_registers(nest, o.register or ())
