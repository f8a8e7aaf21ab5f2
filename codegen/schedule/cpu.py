"""The schedule: a pure function from a def, options and a device to loops.

The passes run from top to bottom of ``passes_for``. Options are honoured there or refused with
``OptionsError``; nothing has been compiled by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.codegen.common.recursion import with_room
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.cpu.build import Build
from tcl.codegen.passes.cpu.prefetch import Prefetch
from tcl.codegen.passes.cpu.register import Register
from tcl.codegen.passes.cpu.stage import Stage
from tcl.codegen.passes.cpu.stream import Stream
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.fusion.chunk_order import OrderChunks
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.vectorize import Vectorize
from tcl.codegen.schedule.resolve_cpu import resolve
from tcl.grammar.sized import SizedDef


def passes_for(
    program: ir.Program, options: MappingOptions, device: CpuProfile
) -> Iterator[tuple[str, tuple[Pass, ...]]]:
    """The named passes, in the order in which they run."""
    chosen = resolve(program, options, device)
    nests = [(n.name, chosen[n.name]) for n in program.nests]
    # Outside of everything else: what threads share.
    yield "chunk", tuple(Chunk(name, o.chunk or ()) for name, o in nests)
    order = OrderChunks({name: o.chunk_order or () for name, o in nests})
    yield "fuse", (*(Fuse(name) for name, o in nests if o.fuse), order)
    # Before the passes that name the folds that it makes.
    yield "tile", tuple(Tile(name, o.tile or ()) for name, o in nests)
    # Before lanes and register tiles, whose place does not depend on the order.
    yield (
        "order",
        tuple(
            order
            for name, o in nests
            for order in (
                Order(name, "tile", o.order or ()),
                Order(name, "point", o.inner_order or ()),
            )
        ),
    )
    yield "vectorize", tuple(Vectorize(name, *(o.vectorize or (-1, 1))) for name, o in nests)
    # After vectorising: a register tile counts vectors.
    yield "register", tuple(Register(name, o.register or (), device) for name, o in nests)
    # After all passes that change loops: panels have an axis per loop.
    yield "stage", tuple(Stage(name, o.stage or ()) for name, o in nests)
    yield "prefetch", tuple(Prefetch(name, o.prefetch or ()) for name, o in nests)
    yield "stream", tuple(Stream(name) for name, o in nests if o.stream)
    # Last: from here on the loops are a tree, and no pass looks for them in a list.
    yield "build", (Build(device),)


def stages(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> Iterator[tuple[str, ir.Program]]:
    """(name, program) after lowering, merging, and each of the passes."""
    for name, program in begun(sized, options, layouts or cpu_layouts(sized)):
        yield name, program
    for name, passes in passes_for(program, options, device):
        for each in passes:
            program = each(program)
        verify(program)
        yield name, program


def begun(
    sized: SizedDef, options: MappingOptions, layouts: Mapping[str, ir.Layout]
) -> Iterator[tuple[str, ir.Program]]:
    """(name, program) after what is the same for all devices: lowering and merging."""
    program = lower(sized, layouts)
    verify(program)
    yield "lower", program
    if options.merges:
        program = merged(program)
        verify(program)
    yield "merge", program


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Program:
    """The loops for these options. ``layouts``: of all tensors, where it is not
    ``cpu_layouts(sized)`` that is meant.

    Raises ``OptionsError`` for options that cannot be applied.
    """
    *_, (_, program) = with_room(lambda: list(stages(sized, options, device, layouts)))
    return program
