"""The schedule for a GPU: a pure function from a def, options and a profile to loops.

As ``tcl.codegen.schedule.cpu``, whose passes it shares as far as both machines are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.common.recursion import with_room
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions, NestOptions
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.fuse import Fuse, groups
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.passes.gpu.bind import Bind, thread_count
from tcl.codegen.passes.gpu.build_blocks import BuildBlocks
from tcl.codegen.passes.gpu.limits import within_limits
from tcl.codegen.passes.gpu.mma_panels import check_mma
from tcl.codegen.passes.gpu.stage_shared import Share
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile
from tcl.codegen.schedule.cpu import begun
from tcl.codegen.schedule.resolve_gpu import resolve
from tcl.grammar.sized import SizedDef


def stages(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> Iterator[tuple[str, ir.Program]]:
    """(name, program) after lowering, merging, and each of the passes."""
    for name, program in begun(sized, options, layouts or gpu_layouts(sized)):
        yield name, program
    program, chosen = resolve(program, options, profile)
    verify(program)
    yield "split", program
    for name, made in scheduled(program, chosen, profile):
        verify(made)
        yield name, made


def scheduled(
    program: ir.Program, chosen: Mapping[str, NestOptions], profile: GpuProfile
) -> Iterator[tuple[str, ir.Program]]:
    """(name, program) after each of the passes, for choices with nothing left open."""
    # Outside of everything else: the work of a block.
    for name, o in chosen.items():
        program = Chunk(name, o.chunk or (), clip=False)(program)
    yield "chunk", program
    for name, o in chosen.items():
        if o.fuse:
            program = Fuse(name)(program)
    program = OrderChunks({name: o.chunk_order or () for name, o in chosen.items()})(program)
    yield "fuse", program
    # Tiles of reductions are what panels are filled for.
    for name, o in chosen.items():
        program = Tile(name, o.tile or ())(program)
        program = Order(name, "tile", o.order or ())(program)
        program = Order(name, "point", o.inner_order or ())(program)
    yield "tile", program
    for name, o in chosen.items():
        program = Bind.of(name, o, profile)(program)
    yield "bind", program
    # After all passes that change loops: footprints are those of folds.
    for group in groups(program.nests):
        threads = max(map(thread_count, group))
        for nest in group:
            o = chosen[nest.name]
            program = Share(nest.name, o.stage or (), threads, o.buffers or 1)(program)
            check_mma(program, nest.name, o.mma or ())
    within_limits(program, profile)
    yield "share", program
    yield "build", BuildBlocks()(program)


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    profile: GpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Program:
    """The loops for these options. ``layouts``: of all tensors, where it is not
    ``gpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be applied.
    """
    *_, (_, program) = with_room(lambda: list(stages(sized, options, profile, layouts)))
    return program
