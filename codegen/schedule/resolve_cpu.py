"""What is chosen for each nest: its own options, else those for all nests, else the preset's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tcl.codegen.choose.cpu.presets import (
    along,
    chunks,
    distances,
    preset,
    tile_distances,
    writes_past,
)
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.kinds import Kind, Lanes, Permutation, Sizes
from tcl.codegen.options.options import OPTIONS, MappingOptions, NestOptions
from tcl.codegen.passes.chunk import Chunk, why_not_chunked
from tcl.codegen.passes.cpu.fusion_limits import may_have_epilogues, results_at_once
from tcl.codegen.passes.cpu.prefetch import why_not_prefetched
from tcl.codegen.passes.cpu.register import Register, why_not_registers
from tcl.codegen.passes.cpu.stage import made_with, why_not_staged
from tcl.codegen.passes.cpu.stream import why_not_streamed
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.fusion.siblings import Sibling
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.tile import Tile, points_inside, tiled, why_not_tiled
from tcl.codegen.passes.vectorize import Vectorize, vector_dim, vectorized, why_not_vectorized


def resolve(
    program: ir.Program, options: MappingOptions, device: CpuProfile
) -> dict[str, NestOptions]:
    """Every nest's choices, with nothing left open. A nest that can go along with another one gets
    the loops that were chosen for that, where nothing else is said of it.

    Raises ``OptionsError`` for choices for a nest that the program lacks.
    """
    if len(options.nests) > len(program.nests):
        raise OptionsError(options.no_nest(program.name, len(program.nests)))
    options.default.check_on("CPU", "all nests")
    for nest, asked in zip(program.nests, options.nests, strict=False):
        asked.check_on("CPU", f"nest {nest.name}")
    plan = chunks(options.preset, program, device)
    ahead = distances(options.preset, program, plan, device)
    divided: dict[str, NestOptions] = {}
    own = {n.name: options.own(k) for k, n in enumerate(program.nests)}
    for nest in program.nests:
        wide = fitting(nest, options.default).over(plan.get(nest.name, NestOptions()))
        divided[nest.name], program = _divided(program, nest.name, own[nest.name], wide)
    choices = _Choices(program, options, device, own, divided, ahead)
    chosen: dict[str, NestOptions] = {}
    for unit in fusion_groups(program.nests, choices):
        chosen[unit.leader.name] = choices.leading(unit.leader)
        for name in unit.followers:
            chosen[name] = choices.following(unit.leader, program.nest(name))
    return {n.name: chosen[n.name] for n in program.nests}


@dataclass(frozen=True, slots=True)
class _Choices:
    """Choices for nests that have their chunks, and which of them go along with others: those that
    can, once these have their loops."""

    program: ir.Program
    options: MappingOptions
    device: CpuProfile
    own: Mapping[str, NestOptions]
    """What was asked for, by nest."""
    divided: Mapping[str, NestOptions]
    """Chunks, by nest."""
    ahead: Mapping[str, tuple[int, ...]]
    """The preset's distances of prefetching, by nest."""
    sums: Mapping[str, int] = field(init=False)
    """Accumulators for each result, by nest."""
    known: dict[str, NestOptions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sums = {u.leader.name: u.sums for u in fusion_groups(self.program.nests)}
        object.__setattr__(self, "sums", sums)

    def leading(self, nest: ir.Nest) -> NestOptions:
        """What is chosen for a nest that goes along with none."""
        if nest.name not in self.known:
            own = self.own[nest.name]  # a search makes all choices, ten times a second
            base = own if own.complete else self._preset(nest)
            self.known[nest.name] = self._chosen(nest, base)
        return self.known[nest.name]

    def _preset(self, nest: ir.Nest) -> NestOptions:
        """The preset's choices for a nest that goes along with none."""
        which, program, device = self.options.preset, self.program, self.device
        base = preset(which, program, nest, device, self.sums.get(nest.name, 1))
        ahead = self.ahead.get(nest.name) or tile_distances(which, program, nest, base, device)
        return replace(base, prefetch=ahead)

    def following(self, leader: ir.Nest, nest: ir.Nest) -> NestOptions:
        """What is chosen for a nest that goes along with another one."""
        stream = writes_past(self.options.preset, self.program, nest, self.device)
        return self._chosen(nest, replace(along(self.leading(leader), leader, nest), stream=stream))

    def _chosen(self, nest: ir.Nest, base: NestOptions) -> NestOptions:
        own = self.own[nest.name]
        base = fitting(nest, self.options.default).over(base)
        choices = self.divided[nest.name].over(own.over(base))
        return _resolved(nest.name, self.program, own, choices, self.device)

    def fits_points(self, unit: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """As a ``FusionLimits``: whether the nest of a reduction can get the leader's loops."""
        loops = self._loops(unit.leader)
        if loops is None or not results_at_once(loops):
            return False
        # Without lanes, two values per point take longer than a second pass with them.
        lanes = any(x.kind is ir.Kind.VECTOR for x in loops.loops)
        return lanes or self.options.preset == "naive"

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """As a ``FusionLimits``: whether the nest can get the leader's loops over its results."""
        loops = self._loops(leader)
        return loops is not None and may_have_epilogues(loops, calls)

    def _loops(self, nest: ir.Nest) -> ir.Nest | None:
        """The nest with all of its loops; None if they cannot be made, which will be said later."""
        name, o = nest.name, self.leading(nest)
        steps = (
            Tile(name, o.tile or ()),
            Order(name, "tile", o.order or ()),
            Order(name, "point", o.inner_order or ()),
            Vectorize(name, *(o.vectorize or (-1, 1))),
            Register(name, o.register or (), self.device),
        )
        program = ir.Program(self.program.name, (), (nest,))
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
    if not why_not_chunked(program.nest(name), chunk):
        program = Chunk(name, chunk)(program)
    if fuse and why_not_fused(program.nests, name) is None:
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
    nest, tile, lanes = program.nest(name), chosen.tile or (), chosen.vectorize or (-1, 1)
    if why_not_tiled(nest, tile) or why_not_vectorized(nest, *lanes):
        return chosen  # refused with its reason by the pass itself
    points = points_inside(nest, chosen.chunk or (), tile)
    if own.register is None and why_not_registers(
        nest, chosen.register or (), points, lanes, device
    ):
        chosen = replace(chosen, register=())
    made = made_with(program.nests, nest)
    nest = vectorized(tiled(nest, tile), *lanes)
    if own.stage is None and why_not_staged(nest, chosen.stage or (), made):
        chosen = replace(chosen, stage=())
    if own.prefetch is None and chosen.prefetch:
        dim = vector_dim(nest, *lanes)
        lane = dim.name if dim else None
        chosen = replace(chosen, prefetch=_able(program, nest, chosen, lane))
    if own.stream is None and chosen.stream and why_not_streamed(program, nest):
        chosen = replace(chosen, stream=False)
    return chosen


def _able(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, lane: str | None
) -> tuple[int, ...]:
    """Distances at which to prefetch, without those of operands where that cannot be."""
    stage, found = chosen.stage or (), list(chosen.prefetch or ())
    for k, distance in enumerate(found):
        alone = (*[0] * k, distance)
        if why_not_prefetched(program, nest, alone, lane, stage):
            found[k] = 0
    return tuple(found) if any(found) else ()


def fitting(nest: ir.Nest, choices: NestOptions) -> NestOptions:
    """The part of choices for all nests that applies to this one."""
    counts = {
        "dimension": len(nest.dims),
        "result": sum(not d.reduction for d in nest.dims),
        "operand": len(operands(nest.point)),
    }

    def part(kind: Kind, value: Any) -> Any:
        match kind:
            case Sizes(per=per):
                return () if nest.sequential and per != "operand" else value[: counts[per]]
            case Permutation():
                return value if len(value) == len(nest.dims) and not nest.sequential else ()
            case Lanes():
                return (-1, 1) if why_not_vectorized(nest, *value) else value
            case _:
                return value

    made = choices.made().items()
    return NestOptions(**{key: part(OPTIONS[key].kind, value) for key, value in made})
