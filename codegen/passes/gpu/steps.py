"""The passes that give a nest its loops on a GPU: the one list of them.

Who schedules applies all of them, stage by stage; who chooses options asks with them whether a nest
could have some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import PassStep, Trials
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.gpu.bind import Bind
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.mma_panels import FeedTensorCores
from tcl.codegen.passes.gpu.stage_shared import StageShared
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Chunk, Tile
from tcl.common.errors import OptionsError

# What blocks share is outside of everything else, and decided before all other loops.
DIVIDING: tuple[PassStep[GpuProfile], ...] = (
    PassStep("chunk", ("chunk",), lambda nest, o, _: (Chunk(nest, o.chunk or (), clip=False),)),
    PassStep("fuse", ("fuse",), lambda nest, o, _: (Fuse(nest),) if o.fuse else ()),
)
LOOPS: tuple[PassStep[GpuProfile], ...] = (
    # Tiles of reductions are what panels are filled for.
    PassStep(
        "tile",
        ("tile", "order", "inner_order"),
        lambda nest, o, _: (
            Tile(nest, o.tile or ()),
            Order(nest, "tile", o.order or ()),
            Order(nest, "point", o.inner_order or ()),
        ),
    ),
    PassStep(
        "bind",
        ("vectorize", "threads", "register", "mma"),
        lambda nest, o, profile: (Bind.from_options(nest, o, profile),),
    ),
    # After all passes that change loops: footprints are those of folds.
    PassStep(
        "share",
        ("stage", "buffers"),
        lambda nest, o, _: (
            StageShared(nest, o.stage or (), o.buffers or 1),
            FeedTensorCores(nest, o.mma or ()),
        ),
    ),
)
STEPS = (*DIVIDING, *LOOPS)


def alone(
    program: ir.Program, nest: ir.Nest, o: NestOptions, profile: GpuProfile, last: str = "share"
) -> ir.Program | None:
    """The program of this nest alone, through the steps up to ``last``; None if it cannot have
    these options."""
    program = replace(program, nests=(replace(nest, joined=False),))
    own = replace(o, fuse=False) if o.fuse else o
    found = Trials(program, STEPS, profile).through(last, nest.name, own)
    if isinstance(found, OptionsError):
        return None
    try:
        return WithinLimits(profile)(found) if last == "share" else found
    except OptionsError:
        return None


def together(
    program: ir.Program, options: Mapping[str, NestOptions], profile: GpuProfile
) -> ir.Program | None:
    """The program of the nests of which options are given, through all steps; None if they cannot
    have these."""
    program = replace(program, nests=tuple(n for n in program.nests if n.name in options))
    try:
        for step in STEPS:
            for name, o in options.items():
                for one in step.passes(name, o, profile):
                    program = one(program)
        return WithinLimits(profile)(program)
    except OptionsError:
        return None
