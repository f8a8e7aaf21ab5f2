"""The passes that give a nest its loops on a CPU: the one list of them."""

from __future__ import annotations

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import Step
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.cpu.dot import Dot
from tcl.codegen.passes.cpu.matrix import FeedMatrixUnit, Matrix
from tcl.codegen.passes.cpu.peel import Peel
from tcl.codegen.passes.cpu.prefetch import Prefetch
from tcl.codegen.passes.cpu.register import Register
from tcl.codegen.passes.cpu.skip import Skip
from tcl.codegen.passes.cpu.stage import Stage
from tcl.codegen.passes.cpu.stream import Stream
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.vectorize import Vectorize

# What threads share is outside of everything else, and decided before all other loops.
DIVIDING: tuple[Step[CpuProfile], ...] = (
    Step("chunk", ("chunk",), lambda nest, o, _: (Chunk(nest, o.chunk or ()),)),
    Step("fuse", ("fuse",), lambda nest, o, _: (Fuse(nest),) if o.fuse else ()),
)
LOOPS: tuple[Step[CpuProfile], ...] = (
    # Before the passes that name the folds that it makes.
    Step("tile", ("tile",), lambda nest, o, _: (Tile(nest, o.tile or ()),)),
    # Before lanes and register tiles, whose place does not depend on the order.
    Step(
        "order",
        ("order", "inner_order"),
        lambda nest, o, _: (
            Order(nest, "tile", o.order or ()),
            Order(nest, "point", o.inner_order or ()),
        ),
    ),
    Step("vectorize", ("vectorize",), lambda nest, o, _: (Vectorize(nest, *_lanes_of(o)),)),
    # After vectorising: dot products lie inside of lanes.
    Step(
        "dot",
        ("dot", "mma", "vectorize"),
        lambda nest, o, device: (Dot(nest, o.dot or (), _lanes_of(o), device, bool(o.mma)),),
    ),
    # After dot products, several of which a matrix unit does at once.
    Step(
        "mma", ("mma",), lambda nest, o, device: (Matrix(nest, o.mma or (), _lanes_of(o), device),)
    ),
    # After these: a register tile counts vectors, dot products and fragments.
    Step(
        "register",
        ("register", "vectorize"),
        lambda nest, o, d: (Register(nest, o.register or (), d),),
    ),
)
MARKS: tuple[Step[CpuProfile], ...] = (
    # After all passes that change loops: panels have an axis per loop.
    Step("stage", ("stage",), lambda nest, o, _: (Stage(nest, o.stage or ()),)),
    # After staging: a matrix unit reads panels alone.
    Step("feed", ("stage", "mma"), lambda nest, o, _: (FeedMatrixUnit(nest),) if o.mma else ()),
    # Which loop goes through compacted indices depends on all others.
    Step("skip", ("skip",), lambda nest, o, _: (Skip(nest),) if o.skip else ()),
    Step(
        "prefetch",
        ("prefetch", "stage", "vectorize"),
        lambda nest, o, _: (Prefetch(nest, o.prefetch or ()),),
    ),
    # Which loop begins on a boundary depends on all others, and on what is copied.
    Step(
        "peel",
        ("peel", "stream", "stage", "vectorize"),
        lambda nest, o, _: (Peel(nest, bool(o.stream)),) if o.peel else (),
    ),
    # Whole vectors go past the caches where a loop begins on boundaries.
    Step(
        "stream",
        ("stream", "peel", "vectorize"),
        lambda nest, o, _: (Stream(nest),) if o.stream else (),
    ),
)
STEPS = (*DIVIDING, *LOOPS, *MARKS)


def _lanes_of(o: NestOptions) -> tuple[int, int]:
    return o.vectorize or (-1, 1)
