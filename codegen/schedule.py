"""The schedule: a pure function from a def, options and a device to loops.

The passes run from top to bottom of ``passes_for``. Options are honoured there or refused with
``OptionsError``; nothing has been compiled by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.errors import OptionsError
from tcl.codegen.ir_verify import verify
from tcl.codegen.ir_walk import operands
from tcl.codegen.lower import lower
from tcl.codegen.merge import merged
from tcl.codegen.options import MappingOptions, NestOptions
from tcl.codegen.passes.base import Pass
from tcl.codegen.passes.beside import Beside
from tcl.codegen.passes.build import Build
from tcl.codegen.passes.chunk import Chunk, why_no_chunks
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.prefetch import Prefetch, why_not_prefetched
from tcl.codegen.passes.register import Register, why_not_registers
from tcl.codegen.passes.stage import Stage
from tcl.codegen.passes.stream import Stream, why_not_streamed
from tcl.codegen.passes.tile import Tile
from tcl.codegen.passes.units import Unit, Untiled, may_have_epilogues, results_at_once, units
from tcl.codegen.passes.vectorize import Vectorize, why_not
from tcl.codegen.presets import along, block_distances, chunks, distances, preset, writes_past
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
    own = {n.name: options.own(k) for k, n in enumerate(program.nests)}
    divided: dict[str, NestOptions] = {}
    for nest in program.nests:
        wide = fitting(nest, options.default).over(plan.get(nest.name, NestOptions()))
        divided[nest.name], program = _divided(program, nest.name, own[nest.name], wide)

    def choose(nest: ir.Nest, base: NestOptions) -> NestOptions:
        base = fitting(nest, options.default).over(base)
        choices = divided[nest.name].over(own[nest.name].over(base))
        return _resolved(nest.name, program, own[nest.name], choices, device)

    sums = {u.leader.name: u.sums for u in units(program.nests, Untiled())}

    @cache
    def leading(name: str) -> NestOptions:
        nest = program.nest(name)
        base = preset(options.preset, program, nest, device, sums.get(name, 1))
        near = ahead.get(name) or block_distances(options.preset, program, nest, base, device)
        return choose(nest, replace(base, prefetch=near))

    chosen: dict[str, NestOptions] = {}
    for unit in units(program.nests, _Led(program, device, options.preset, leading)):
        chosen[unit.leader.name] = leading(unit.leader.name)
        for name in unit.others:
            nest = program.nest(name)
            base = along(chosen[unit.leader.name], unit.leader, nest)
            stream = writes_past(options.preset, program, nest, device)
            chosen[name] = choose(nest, replace(base, stream=stream))
    return {n.name: chosen[n.name] for n in program.nests}


@dataclass(frozen=True, slots=True)
class _Led:
    """For nests with chunks, of which those that can go along with another one get its loops."""

    program: ir.Program
    device: CpuProfile
    preset: str
    leading: Callable[[str], NestOptions]
    """What is chosen for a nest that goes along with none."""

    def points(self, unit: Unit, other: Beside, nest: ir.Nest) -> bool:
        loops = self._loops(unit.leader)
        if loops is None or not results_at_once(loops):
            return False
        # Without lanes, two values per point take longer than a second pass with them.
        return self.preset == "naive" or any(x.kind is ir.Kind.VECTOR for x in loops.loops)

    def results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        loops = self._loops(leader)
        return loops is not None and may_have_epilogues(loops, calls)

    def _loops(self, nest: ir.Nest) -> ir.Nest | None:
        """The nest with all of its loops; None if they cannot be made, which will be said later."""
        name, o = nest.name, self.leading(nest.name)
        steps = (
            Tile(name, o.tile or ()),
            Order(name, "tile", o.order or ()),
            Order(name, "point", o.inner_order or ()),
            Vectorize(name, *(o.vectorize or (-1, 1))),
            Register(name, o.register or (), self.device),
        )
        program = self.program
        try:
            for step in steps:
                program = step(program)
        except OptionsError:
            return None
        return program.nest(name)


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
