"""What the loops of nests are built of, on either machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.walk import replaced, with_values
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.epilogues import ends
from tcl.codegen.passes.fusion.groups import FusionGroup, FusionLimits, fusion_groups

Pauses: TypeAlias = Mapping[ir.Fold, ir.Pause]
"""What is done between stretches of the iterations of loops."""
Fills: TypeAlias = Mapping[ir.Fold | None, Sequence[ir.Statement]]
"""What fills panels, by the loop in each iteration of which it does; None: before all of them."""


def in_chunks(
    program: ir.Program, limits: FusionLimits
) -> Iterator[tuple[list[ir.Nest], list[FusionGroup]]]:
    """What runs in the same chunks: nests, and the fusion groups that these are in. Nests without
    results of their own dimensions share no chunks, but may be in the same fusion group."""
    by_leader = {g.leader.name: g for g in fusion_groups(program.nests, limits)}
    for nests in groups(program.nests):
        own = [by_leader[n.name] for n in nests if n.name in by_leader]
        names = set[str]().union(*(g.names for g in own))
        if own:
            yield [n for n in program.nests if n.name in names], own


def grid(groups: Sequence[FusionGroup]) -> ir.Grid:
    """The loops over the chunks that fusion groups share."""
    return tuple(zip(*(g.leader.chunks for g in groups), strict=True))


def wrap(
    loops: Sequence[ir.Loop],
    body: ir.Statement,
    fills: Fills = MappingProxyType({}),
    pauses: Pauses = MappingProxyType({}),
) -> ir.Statement:
    """Loops around a body, and in them what fills panels there."""
    for loop in reversed(loops):
        first = fills.get(loop.fold, ())
        body = ir.Block((*first, body)) if first else body
        body = ir.For(loop, body, pauses.get(loop.fold))
    return body


def fills_of(nest: ir.Nest, fill: Callable[[ir.Staged], ir.Statement]) -> Fills:
    found: dict[ir.Fold | None, list[ir.Statement]] = {}
    for staged in nest.staged:
        found.setdefault(staged.inside, []).append(fill(staged))
    return found


def reading_panels(nest: ir.Nest) -> ir.Nest:
    """The nest with what was copied changed to reads of the copies."""
    point, excess = nest.point, nest.excess
    for staged in nest.staged:
        read = ir.Load(staged.panel, staged.value.type, total=True)
        point = with_values(point, partial(replaced, part=staged.value, by=read))
        if excess is not None:
            excess = replaced(excess, staged.value, read)
    return replace(nest, point=point, excess=excess)


def result_loops(nest: ir.Nest) -> tuple[ir.Loop, ...]:
    """The loops over results, inside of a chunk."""
    inside = (x for x in nest.loops if x.kind is not ir.Kind.PARALLEL)
    return tuple(x for x in inside if not nest.dim(x.fold.dim).reduction)


def cleared(nest: ir.Nest) -> ir.Statement:
    """All results as the reduction starts: from its identity, or what is stored."""
    point = nest.point
    stored = ir.Load(point.target, point.type, total=True)
    start = identity(point.op, point.type) if point.initialise else stored
    return wrap(result_loops(nest), ir.Store(point.target, start))


def ended(
    group: FusionGroup, lets: Sequence[ir.Let], made: Sequence[ir.Store]
) -> tuple[ir.Statement, ...]:
    """Stores what the reductions of a point made, and what its epilogues make of that."""
    nests = group.leader.name, *(s.nest for s in group.siblings)
    return (*lets, *ends(made, group.epilogues, [f"{name}.result" for name in nests]))
