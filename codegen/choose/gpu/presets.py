"""What the presets choose on a GPU, where nothing else was chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcl.codegen.choose.gpu.contraction import contraction
from tcl.codegen.choose.gpu.nest_shape import Choice, Shape
from tcl.codegen.choose.gpu.streaming import rowwise, streaming
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import PLAIN, NestOptions
from tcl.codegen.passes.chunk import Chunk, why_not_chunked
from tcl.codegen.passes.fuse import Fuse, why_not_fused
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.codegen.passes.gpu.bind import Bind
from tcl.codegen.passes.gpu.split import parts
from tcl.codegen.passes.tile import Tile

_WARPS = 128
"""Threads of a block in ``naive``."""
_LEAST_PART = 32
"""Points that a thread reduces at least before its sum is split."""
_TILED, _STREAMED = 192, 1024
"""Threads of a multiprocessor that keep it busy: with panels and results in registers, or with
nothing but reading memory."""
_LONG_ROW = 64
"""Points of a row from which on nests share blocks row by row."""


def plan(
    name: str, program: ir.Program, given: Mapping[str, NestOptions], profile: GpuProfile
) -> dict[str, NestOptions]:
    """Choices for every nest that go with those that are given."""
    if name == "naive":
        chosen = {n.name: _one_point_each(n) for n in program.nests}
    else:
        chosen = _planned(name, program, profile)
    return {
        n.name: _going_with(given[n.name], chosen[n.name], program, n, profile)
        for n in program.nests
    }


def splits(
    name: str, program: ir.Program, given: Mapping[str, NestOptions], profile: GpuProfile
) -> dict[str, tuple[int, ...]]:
    """Into how many parts reductions are split, by nest: as was asked for, or so that all of the
    device has work."""
    found = {n: o.split for n, o in given.items() if o.split is not None}
    if name == "naive" or len(found) == len(given):
        return found
    chosen = plan(name, program, given, profile)
    along = set[str]().union(*(u.followers for u in fusion_groups(program.nests)))
    for nest in program.nests:
        if nest.name not in found and nest.name not in along and not chosen[nest.name].fuse:
            made = _split(nest, given[nest.name].over(chosen[nest.name]), profile)
            if made:
                found[nest.name] = made
    return found


def _split(nest: ir.Nest, o: NestOptions, profile: GpuProfile) -> tuple[int, ...]:
    """Parts of the longest reduction."""
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction]
    if nest.sequential or not reductions or any(d.extent == 0 for d in nest.dims):
        return ()
    chunk, threads, tile = o.chunk or (), math.prod(filter(None, o.threads or ())), o.tile or ()
    sizes = zip(nest.dims, (*chunk, *[0] * len(nest.dims)), strict=False)
    blocks = math.prod(-(-d.extent // c) for d, c in sizes if c and not d.reduction)
    tiled = any(level >= 0 for level in o.stage or ())
    wanted = profile.multiprocessors * (_TILED if tiled else _STREAMED)
    k = max(reductions, key=lambda k: nest.dims[k].extent)
    own = (o.threads or ())[k] if k < len(o.threads or ()) else 1
    least = max(_LEAST_PART * max(1, own), 16 * (tile[k] if k < len(tile) else 1))
    count = parts(nest.dims[k].extent, max(1, wanted // max(1, blocks * threads)), least)
    return (*[0] * k, count) if count > 1 else ()


def _one_point_each(nest: ir.Nest) -> NestOptions:
    """A thread for each result, without anything else."""
    results = sum(not d.reduction for d in nest.dims)
    if nest.sequential or not results:
        return PLAIN
    sizes = (*[1] * (results - 1), _WARPS)
    return replace(PLAIN, chunk=sizes, threads=sizes)


def _planned(name: str, program: ir.Program, profile: GpuProfile) -> dict[str, NestOptions]:
    found: dict[str, NestOptions] = {}
    apart = fusion_groups(program.nests)
    position = 0
    while position < len(apart):
        run = _run(program, apart[position:], profile) if name != "pointwise" else []
        if len(run) > 1:
            for unit, choice in run:
                _note(unit, choice, program, found, joined=unit is not run[0][0])
            position += len(run)
            continue
        unit = apart[position]
        shape = Shape(program, unit.leader)
        if unit.leader.sequential or any(d.extent == 0 for d in unit.leader.dims):
            for nest in program.nests:
                if nest.name in unit.names:
                    found[nest.name] = _one_point_each(nest)
        else:
            tiled = contraction(shape, profile) if name in ("mlp", "conv") else None
            _note(unit, tiled or streaming(shape, profile), program, found)
        position += 1
    return found


def _note(
    unit: FusionGroup,
    choice: Choice,
    program: ir.Program,
    found: dict[str, NestOptions],
    *,
    joined: bool = False,
) -> None:
    """The choices of a nest, and those of nests that go along with it: the same loops."""
    own = unit.leader
    names = [n for n in program.nests if n.name in unit.names]
    for k, nest in enumerate(names):
        same = choice if len(nest.dims) == len(own.dims) else _of_results(choice, nest)
        options = same.options(sum(not d.reduction for d in nest.dims))
        if nest.name != own.name:
            options = replace(options, stage=(), buffers=1)
        shared = any(options.chunk or ())
        found[nest.name] = replace(options, fuse=shared and (joined or k > 0))


def _of_results(choice: Choice, nest: ir.Nest) -> Choice:
    """The choices for the results alone."""
    rank = len(nest.dims)
    return Choice(
        rank,
        {k: v for k, v in choice.chunk.items() if k < rank},
        {k: v for k, v in choice.threads.items() if k < rank},
        {k: v for k, v in choice.register.items() if k < rank},
        {},
        choice.lanes if choice.lanes[0] < rank else (-1, 1),
        mma=choice.mma[:2],
    )


def _run(
    program: ir.Program, apart: Sequence[FusionGroup], profile: GpuProfile
) -> list[tuple[FusionGroup, Choice]]:
    """The first units that can share blocks row by row: what one makes of a row the next one
    needs."""
    first = apart[0].leader
    run: list[FusionGroup] = []
    rows: list[int] = []
    for unit in apart:
        nest = unit.leader
        if nest.sequential or any(d.extent == 0 for d in nest.dims):
            break
        if contraction(Shape(program, nest), profile) is not None:
            break
        common = _common(first, nest)
        if run:
            rows = rows or common
            if not rows or len(common) < len(rows):
                break
            if not _worth(program, run, unit, rows, profile):
                break
        run.append(unit)
    while len(run) > 1 and rows:
        made = _rows(program, run, rows)
        if made is not None:
            return made
        run.pop()
    return []


def _common(one: ir.Nest, other: ir.Nest) -> list[int]:
    """The leading results that two nests have alike."""
    found = []
    for k, (a, b) in enumerate(zip(one.dims, other.dims, strict=False)):
        if a.reduction or b.reduction or (a.first, a.extent) != (b.first, b.extent):
            break
        found.append(k)
    return found


def _worth(
    program: ir.Program,
    run: Sequence[FusionGroup],
    unit: FusionGroup,
    rows: Sequence[int],
    profile: GpuProfile,
) -> bool:
    """Whether blocks are enough for the device, and rows for a block."""
    nest = unit.leader
    blocks = math.prod(nest.dims[k].extent for k in rows)
    inside = max(
        math.prod(d.extent for d in n.dims) // max(1, blocks)
        for n in (nest, *(u.leader for u in run))
    )
    return 2 * blocks >= profile.multiprocessors and inside >= _LONG_ROW


def _rows(
    program: ir.Program, run: Sequence[FusionGroup], rows: Sequence[int]
) -> list[tuple[FusionGroup, Choice]] | None:
    """The units row by row; None if one of them needs other rows."""
    nests = [u.leader for u in run]
    blocks = math.prod(nests[0].dims[k].extent for k in rows)
    points = max(math.prod(d.extent for d in n.dims) // max(1, blocks) for n in nests)
    made = [(u, rowwise(Shape(program, u.leader), rows, points)) for u in run]
    for unit, choice in made:
        names = unit.names
        for nest in program.nests:
            if nest.name in names:
                whole = len(nest.dims) >= len(unit.leader.dims)
                own = choice if whole else _of_results(choice, nest)
                sizes = own.options(sum(not d.reduction for d in nest.dims)).chunk or ()
                if why_not_chunked(nest, sizes):
                    return None
                program = Chunk(nest.name, sizes, clip=False)(program)
                if nest.name != next(iter(_names(run[0], program))):
                    if why_not_fused(program.nests, nest.name):
                        return None
                    program = Fuse(nest.name)(program)
    return made


def _names(unit: FusionGroup, program: ir.Program) -> list[str]:
    """The nests of a unit, in order."""
    names = unit.names
    return [n.name for n in program.nests if n.name in names]


def _going_with(
    given: NestOptions,
    chosen: NestOptions,
    program: ir.Program,
    nest: ir.Nest,
    profile: GpuProfile,
) -> NestOptions:
    """The preset's choices, without those that cannot be together with the given ones."""
    if given == NestOptions():
        return chosen
    plain = replace(chosen, stage=(), register=(), buffers=1, mma=())
    weaker = (
        chosen,
        plain,
        replace(plain, vectorize=(-1, 1)),
        replace(plain, vectorize=(-1, 1), threads=(), tile=()),
        replace(PLAIN, fuse=chosen.fuse),
    )
    for choices in weaker:
        if _possible(given.over(choices), program, nest, profile):
            return choices
    return chosen


def _possible(o: NestOptions, program: ir.Program, nest: ir.Nest, profile: GpuProfile) -> bool:
    """Whether the nest can be bound so."""
    alone = replace(program, nests=(replace(nest, joined=False),))
    try:
        alone = Chunk(nest.name, o.chunk or (), clip=False)(alone)
        alone = Tile(nest.name, o.tile or ())(alone)
        Bind.of(nest.name, o, profile)(alone)
    except OptionsError:
        return False
    return True
