"""The schedule: a pure function from a def, options and a device to loops.

The passes run from top to bottom of ``passes_for``. Options are honoured there or refused with
``OptionsError``; nothing has been compiled by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.errors import OptionsError
from tcl.codegen.ir_verify import verify
from tcl.codegen.ir_walk import operands
from tcl.codegen.lower import lower
from tcl.codegen.merge import merged
from tcl.codegen.options import MappingOptions, NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.beside import may_go_along
from tcl.codegen.passes.build import Build
from tcl.codegen.passes.chunk import Chunk, why_no_chunks
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.prefetch import Prefetch, why_not_prefetched
from tcl.codegen.passes.register import Register, why_not_registers
from tcl.codegen.passes.stage import Stage
from tcl.codegen.passes.stream import Stream, why_not_streamed
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.vectorize import Vectorize, why_not
from tcl.codegen.presets import chunks, distances, preset
from tcl.codegen.recursion import with_room
from tcl.grammar.sized import SizedDef


def passes_for(
    program: ir.Program, options: MappingOptions, device: CpuProfile
) -> Iterator[tuple[str, tuple[Pass, ...]]]:
    """The named passes, in the order in which they run."""
    chosen = resolve(program, options, device)
    nests = [(n.name, chosen[n.name]) for n in program.nests]
    # Outside of everything else: what threads share.
    yield "chunk", tuple(Chunk(name, o.chunk or ()) for name, o in nests)
    yield "fuse", tuple(Fuse(name) for name, o in nests if o.fuse)
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
    program = lower(sized, layouts)
    verify(program)
    yield "lower", program
    if options.merges:
        program = merged(program)
        verify(program)
    yield "merge", program
    for name, passes in passes_for(program, options, device):
        for each in passes:
            program = each(program)
        verify(program)
        yield name, program


def schedule(
    sized: SizedDef,
    options: MappingOptions,
    device: CpuProfile,
    layouts: Mapping[str, ir.Layout] | None = None,
) -> ir.Program:
    """The loops for these options. ``layouts`` are those that are not row-major.

    Raises ``OptionsError`` for options that cannot be applied.
    """
    *_, (_, program) = with_room(lambda: list(stages(sized, options, device, layouts)))
    return program


def resolve(
    program: ir.Program, options: MappingOptions, device: CpuProfile
) -> dict[str, NestOptions]:
    """Every nest's choices, with nothing left open: its own, else the default, else the preset's.

    Raises ``OptionsError`` for choices for a nest that the program lacks.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(
            f"nests: choices for {len(options.nests)} nests were given, "
            f"{program.name} has {len(program.nests)}"
        )
    plan = chunks(options.preset, program, device)
    ahead = distances(options.preset, program, plan, device)
    chosen: dict[str, NestOptions] = {}
    leader: tuple[ir.Nest, NestOptions] | None = None
    for position, nest in enumerate(program.nests):
        own = options.own(position)
        wide = fitting(nest, options.default).over(plan.get(nest.name, NestOptions()))
        divided, program = _divided(program, nest.name, own, wide)
        nest = program.nest(nest.name)
        led = leader is not None and may_go_along(leader[0], nest)
        loops = leader[1] if leader is not None and led else None
        base = preset(options.preset, program, nest, device, loops)
        base = replace(base, prefetch=() if led else ahead.get(nest.name, ()))
        if leader is None or not led:
            leader = nest, base
        base = fitting(nest, options.default).over(base)
        chosen[nest.name] = _resolved(nest.name, program, own, divided.over(own.over(base)), device)
    return chosen


def _divided(
    program: ir.Program, name: str, own: NestOptions, wide: NestOptions
) -> tuple[NestOptions, ir.Program]:
    """A nest's chunks, and the program in which it has them. ``wide`` is what was chosen for all
    nests, and is left off where it cannot be."""
    asked = own.over(wide)
    chunk, fuse = asked.chunk or (), bool(asked.fuse)
    if not why_no_chunks(program.nest(name), chunk):
        program = Chunk(name, chunk)(program)
    if fuse and why_not_fused(program, name) is None:
        program = Fuse(name)(program)
    elif own.fuse is None:
        fuse = False
    return NestOptions(chunk=chunk, fuse=fuse), program


def _resolved(
    name: str, program: ir.Program, own: NestOptions, chosen: NestOptions, device: CpuProfile
) -> NestOptions:
    """The choices for a nest that has its chunks, without those that were not its ``own`` and
    cannot be."""
    # Asked for in all nests, or made for other lanes and tiles than this nest now has.
    try:
        program = Tile(name, chosen.tile or ())(program)
        program = Vectorize(name, *(chosen.vectorize or (-1, 1)))(program)
    except OptionsError:  # refused with its reason by the pass itself
        return chosen
    if own.register is None and why_not_registers(
        program.nest(name), chosen.register or (), device
    ):
        chosen = replace(chosen, register=())
    try:
        program = Stage(name, chosen.stage or ())(program)
    except OptionsError:
        if own.stage is None:
            chosen = replace(chosen, stage=())
    if own.prefetch is None and chosen.prefetch:
        chosen = replace(chosen, prefetch=_able(program, program.nest(name), chosen.prefetch))
    if own.stream is None and chosen.stream and why_not_streamed(program, name):
        chosen = replace(chosen, stream=False)
    return chosen


def _able(program: ir.Program, nest: ir.Nest, ahead: tuple[int, ...]) -> tuple[int, ...]:
    """Distances at which to prefetch, without those of operands where that cannot be."""
    pairs = zip(operands(nest.point), ahead, strict=False)
    found = [0 if why_not_prefetched(program, nest, load) else n for load, n in pairs]
    return tuple(found) if any(found) else ()


def fitting(nest: ir.Nest, choices: NestOptions) -> NestOptions:
    """The part of choices for all nests that applies to this one."""
    rank = len(nest.dims)
    results = sum(not d.reduction for d in nest.dims)
    chunk = choices.chunk
    if chunk is not None:
        chunk = () if nest.sequential else chunk[:results]
    tile, vectorize, register = choices.tile, choices.vectorize, choices.register
    if tile is not None:
        tile = () if nest.sequential else tile[:rank]
    if vectorize is not None and why_not(nest, vectorize[0]):
        vectorize = (-1, 1)
    if register is not None:
        register = () if nest.sequential else register[:rank]
    stage = choices.stage
    if stage is not None:
        stage = stage[: len(operands(nest.point))]
    prefetch = choices.prefetch
    if prefetch is not None:
        prefetch = prefetch[: len(operands(nest.point))]

    def order(permutation: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if permutation is None:
            return None
        return permutation if len(permutation) == rank and not nest.sequential else ()

    return NestOptions(
        tile,
        order(choices.order),
        order(choices.inner_order),
        vectorize,
        register,
        stage,
        chunk,
        choices.fuse,
        choices.stream,
        prefetch,
    )
