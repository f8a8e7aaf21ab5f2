"""The passes that give a nest its loops on a CPU: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.options.options import NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.cpu.prefetch import Prefetch
from tcl.codegen.passes.cpu.register import Register
from tcl.codegen.passes.cpu.stage import Stage
from tcl.codegen.passes.cpu.stream import Stream
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.vectorize import Vectorize

LOOPS = ("tile", "order", "vectorize", "register")
STAGES = ("chunk", "fuse", *LOOPS, "stage", "prefetch", "stream")


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
        # After vectorising: a register tile counts vectors.
        "register": (Register(nest, o.register or (), device),),
        # After all passes that change loops: panels have an axis per loop.
        "stage": (Stage(nest, o.stage or ()),),
        "prefetch": (Prefetch(nest, o.prefetch or ()),),
        "stream": (Stream(nest),) if o.stream else (),
    }
