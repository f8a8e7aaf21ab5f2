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
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.gpu.bind import Bind
from tcl.codegen.passes.gpu.limits import WithinLimits
from tcl.codegen.passes.gpu.mma_panels import FeedTensorCores
from tcl.codegen.passes.gpu.stage_shared import StageShared
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile
from tcl.common.errors import OptionsError

STAGES = ("chunk", "fuse", "tile", "bind", "share")


def steps(nest: str, o: NestOptions, profile: GpuProfile) -> Mapping[str, tuple[Pass, ...]]:
    """The passes of a nest, by stage. A stage begins when all nests are through the one before."""
    return {
        # Outside of everything else: the work of a block.
        "chunk": (Chunk(nest, o.chunk or (), clip=False),),
        "fuse": (Fuse(nest),) if o.fuse else (),
        # Tiles of reductions are what panels are filled for.
        "tile": (
            Tile(nest, o.tile or ()),
            Order(nest, "tile", o.order or ()),
            Order(nest, "point", o.inner_order or ()),
        ),
        "bind": (Bind.of(nest, o, profile),),
        # After all passes that change loops: footprints are those of folds.
        "share": (
            StageShared(nest, o.stage or (), o.buffers or 1),
            FeedTensorCores(nest, o.mma or ()),
        ),
    }


def alone(
    program: ir.Program, nest: ir.Nest, o: NestOptions, profile: GpuProfile, last: str = "share"
) -> ir.Program | None:
    """The program of this nest alone, through the stages up to ``last``; None if it cannot have
    these options."""
    program = replace(program, nests=(replace(nest, joined=False),))
    of_nest = steps(nest.name, replace(o, fuse=False), profile)
    try:
        for stage in STAGES[: STAGES.index(last) + 1]:
            for each in of_nest[stage]:
                program = each(program)
        return WithinLimits(profile)(program) if last == "share" else program
    except OptionsError:
        return None
