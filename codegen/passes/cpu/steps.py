"""The passes that give a nest its loops on a CPU, and its knobs: one list each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import PassStep
from tcl.codegen.passes.cpu.dot import UseDotProducts, dot_knobs
from tcl.codegen.passes.cpu.matrix import FeedMatrixUnit, UseMatrixUnit, mma_knobs
from tcl.codegen.passes.cpu.prefetch import PrefetchOperands, prefetch_knobs
from tcl.codegen.passes.cpu.register import Register, register_knobs
from tcl.codegen.passes.cpu.skip import Skip, skip_knobs
from tcl.codegen.passes.cpu.stage import Stage, stage_knobs
from tcl.codegen.passes.cpu.stores import PeelLoops, Stream, peel_knobs, stream_knobs
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.knobs import KnobSubject, OptionKnobs
from tcl.codegen.passes.order import Order, order_knobs
from tcl.codegen.passes.tile import Chunk, Tile, tile_knobs
from tcl.codegen.passes.vectorize import Vectorize, vectorize_knobs

# What threads share is outside of everything else, and decided before all other loops.
DIVIDING: tuple[PassStep[CpuProfile], ...] = (
    PassStep("chunk", ("chunk",), lambda nest, o, _: (Chunk(nest, o.chunk or ()),)),
    PassStep("fuse", ("fuse",), lambda nest, o, _: (Fuse(nest),) if o.fuse else ()),
)
LOOPS: tuple[PassStep[CpuProfile], ...] = (
    # Before the passes that name the folds that it makes.
    PassStep("tile", ("tile",), lambda nest, o, _: (Tile(nest, o.tile or ()),)),
    # Before lanes and register tiles, whose place does not depend on the order.
    PassStep(
        "order",
        ("order", "inner_order"),
        lambda nest, o, _: (
            Order(nest, "tile", o.order or ()),
            Order(nest, "point", o.inner_order or ()),
        ),
    ),
    PassStep("vectorize", ("vectorize",), lambda nest, o, _: (Vectorize(nest, *_lanes_of(o)),)),
    # After vectorising: dot products lie inside of lanes.
    PassStep(
        "dot",
        ("dot", "mma", "vectorize"),
        lambda nest, o, device: (
            UseDotProducts(nest, o.dot or (), _lanes_of(o), device, bool(o.mma)),
        ),
    ),
    # After dot products, several of which a matrix unit does at once.
    PassStep(
        "mma",
        ("mma",),
        lambda nest, o, device: (UseMatrixUnit(nest, o.mma or (), _lanes_of(o), device),),
    ),
    # After these: a register tile counts vectors, dot products and fragments.
    PassStep(
        "register",
        ("register", "vectorize"),
        lambda nest, o, d: (Register(nest, o.register or (), d),),
    ),
)
MARKS: tuple[PassStep[CpuProfile], ...] = (
    # After all passes that change loops: panels have an axis per loop.
    PassStep("stage", ("stage",), lambda nest, o, _: (Stage(nest, o.stage or ()),)),
    # After staging: a matrix unit reads panels alone.
    PassStep("feed", ("stage", "mma"), lambda nest, o, _: (FeedMatrixUnit(nest),) if o.mma else ()),
    # Which loop goes through compacted indices depends on all others.
    PassStep("skip", ("skip",), lambda nest, o, _: (Skip(nest),) if o.skip else ()),
    PassStep(
        "prefetch",
        ("prefetch", "stage", "vectorize"),
        lambda nest, o, _: (PrefetchOperands(nest, o.prefetch or ()),),
    ),
    # Which loop begins on a boundary depends on all others, and on what is copied.
    PassStep(
        "peel",
        ("peel", "stream", "stage", "vectorize"),
        lambda nest, o, _: (PeelLoops(nest, bool(o.stream)),) if o.peel else (),
    ),
    # Whole vectors go past the caches where a loop begins on boundaries.
    PassStep(
        "stream",
        ("stream", "peel", "vectorize"),
        lambda nest, o, _: (Stream(nest),) if o.stream else (),
    ),
)
STEPS = (*DIVIDING, *LOOPS, *MARKS)

SEARCHED: tuple[Callable[[KnobSubject], OptionKnobs], ...] = (
    tile_knobs,
    partial(order_knobs, option="order"),
    partial(order_knobs, option="inner_order"),
    mma_knobs,
    vectorize_knobs,
    dot_knobs,
    register_knobs,
    stage_knobs,
    skip_knobs,
    stream_knobs,
    peel_knobs,
    prefetch_knobs,
)
"""The knobs of a nest, each after those that it looks at. Those of chunks belong to several nests:
see ``tcl.tuner.space.cpu.mapping``."""


def _lanes_of(o: NestOptions) -> tuple[int, int]:
    return o.vectorize or (-1, 1)
