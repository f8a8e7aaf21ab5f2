"""Reductions under conditions of indices alone: loops that end where these do.

``C(i, k) +=! (j <= i) ? A(i, j) * B(j, k) : 0`` adds nothing where ``j`` is larger than all of the
``i`` inside of an iteration: the loop over ``j`` ends there. Where the condition holds for all of
them, it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound, besides, bounds_of, bounds_within, parts
from tcl.codegen.loopir.periods import periods_of, usual_side, within_periods
from tcl.codegen.loopir.terms import guard, guards
from tcl.codegen.loopir.walk import dims_of_values, loads, rebuilt, walk
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.common.dataclass import replace
from tcl.grammar.sizes.varying import Size, representative

_WORTH = 7 / 8
"""The part of the points at which bounds hold up to which loops are cut: at borders alone, as of
padding, it is not worth the code."""
_LONG = 16
"""Iterations of a loop from which on it is, where those without borders are done apart."""
_TILES_LOOKED_AT = (256, 64, 16)
"""Register tiles of each dimension, of one, two and three, of which it is counted how many have
points within bounds."""
_MOSTLY = 1 / 2
"""The part of the register tiles from which on loops without conditions are worth the code, for
tiles at all points of which these hold."""


def cut_bounds(
    nest: ir.Nest, points: Sequence[ir.Point], most: float = _WORTH
) -> tuple[Bound, ...]:
    """The bounds outside of which none of the points of a reduction changes anything; none if they
    leave out too little: if they hold at a larger part of the points than ``most``."""
    found = {bounds_within(guards(p.op, p.value)[0]) for p in points}
    if len(found) != 1 or nest.sequential or nest.mma or nest.dot_product is not None:
        return ()
    names = {d.name for d in nest.dims}
    (all_,) = found
    bounds = tuple(
        (index, bound)
        for index, bound in all_
        if index.terms and all(n in names and not isinstance(c, Size) for n, c in index.terms)
    )
    return bounds if bounds and reached_share(nest, bounds, {}) <= most else ()


def cut_wholly(nest: ir.Nest) -> bool:
    """Whether the loops of a nest end where its condition does, as that compares indices alone."""
    condition, _ = guard(nest.point.op, nest.point.value)
    if condition is None or bounds_of(condition) is None:
        return False
    return bool(cut_bounds(nest, (nest.point,)))


def reached_share(nest: ir.Nest, bounds: Sequence[Bound], widths: Mapping[str, int]) -> float:
    """The part of the register tiles that have points at which each of some bounds holds, about:
    loops end before the others. ``widths``: the points of a tile along dimensions of which it has
    more than one."""
    return _share_of_tiles(nest, bounds, widths, wholly=False)


def _share_of_tiles(
    nest: ir.Nest, bounds: Sequence[Bound], widths: Mapping[str, int], *, wholly: bool
) -> float:
    """The part of the register tiles at some point of which each bound holds, or ``wholly`` at all
    of them."""
    named = sorted({name for index, _ in bounds for name, _ in index.terms})
    counts = {n: -(-representative(nest.dim(n).extent) // max(1, widths.get(n, 1))) for n in named}
    several = sum(count > 1 for count in counts.values())
    if several > len(_TILES_LOOKED_AT):
        return 0.0 if wholly else 1.0
    most = _TILES_LOOKED_AT[max(1, several) - 1]
    held: np.ndarray = np.ones((1,) * len(named), bool)
    for index, bound in bounds:
        reached: np.ndarray = np.full((1,) * len(named), representative(index.constant))
        for name, c in index.terms:
            dim, width = nest.dim(name), max(1, widths.get(name, 1))
            first, last = representative(dim.first), representative(dim.first + dim.extent) - 1
            count = counts[name]
            tried = min(count, most)
            begin = first + (2 * np.arange(tried) + 1) * count // (2 * tried) * width
            ends = begin if (c > 0) != wholly else np.minimum(begin + width - 1, last)
            shape = [-1 if each == name else 1 for each in named]
            reached = reached + (c * ends).reshape(shape)
        held = held & (reached < representative(bound))
    return float(held.mean()) if held.size else 1.0


def bounds_asked(nest: ir.Nest, points: Sequence[ir.Point]) -> tuple[Bound, ...]:
    """The bounds that points ask for, none where there cannot be two versions of their loops: those
    of conditions of a reduction, as of a padded image, and those between which remainders and
    quotients are index expressions. Without a reduction, of what changes along the lanes alone, if
    these are known: what is one for all of them takes little."""
    if nest.sequential or nest.mma or nest.dot_product is not None:
        return ()
    names = {d.name for d in nest.dims}
    found: list[Bound] = []
    if nest.reduces:
        selects = (v for p in points for v in walk(p.value) if isinstance(v, ir.Select))
        dims = {d.name: d for d in nest.dims}
        for condition in dict.fromkeys(each.condition for each in selects):
            usual = usual_side(condition, dims)
            others = usual[0] if usual and not usual[1] else bounds_within(parts(condition))
            found += others
    lane = None if nest.reduces or nest.lane is None else nest.lane.dim
    if lane is not None:
        found += [
            bound for p in points for bound in _bounds_of_masks(p) if bound[0].coefficient(lane)
        ]
    for index, bounds in (piece for p in points for piece in periods_of(nest, p).values()):
        moving = (index, *(each for each, _ in bounds))
        if lane is None or any(each.coefficient(lane) for each in moving):
            found += bounds
    bounds = tuple(dict.fromkeys((index, bound) for index, bound in found if index.terms))
    return bounds if all(n in names for index, _ in bounds for n, _ in index.terms) else ()


def _bounds_of_masks(point: ir.Point) -> Iterator[Bound]:
    """The bounds under which a point without a reduction reads what may not be there otherwise, as
    around a border: lanes at some of which they do not hold read it under a mask."""
    value = point.value
    if isinstance(value, ir.Select) and not all(x.total for x in loads(value.then)):
        yield from bounds_within(parts(value.condition))


def mostly_held(nest: ir.Nest, bounds: Sequence[Bound], widths: Mapping[str, int]) -> float:
    """The part of the register tiles at all of whose points all of some bounds hold, about; 0 if it
    is too small for loops of their own. ``widths``: the points of a tile along dimensions of which
    it has not all."""
    widths = {d.name: widths.get(d.name, representative(d.extent)) for d in nest.dims}
    share = _share_of_tiles(nest, bounds, widths, wholly=True)
    return share if share > _MOSTLY else 0.0


def holding(nest: ir.Nest, point: ir.Point, bounds: Sequence[Bound]) -> ir.Point:
    """What a point of a nest does where some bounds hold."""

    def chosen(value: ir.Value) -> ir.Value:
        value = rebuilt(value, chosen)
        if not isinstance(value, ir.Select):
            return value
        fails = bounds_of(value.condition, holds=False)
        if fails and all(bound in bounds for bound in fails):
            return value.otherwise
        condition = besides(value.condition, bounds)
        return value.then if condition is None else replace(value, condition=condition)

    point = within_periods(nest, point, bounds)
    return replace(point, value=chosen(point.value))


def guard_of_results(group: FusionGroup) -> ir.Value | None:
    """The condition of a reduction whose loops are cut, if it is the same for all terms of a
    result, which may then be reduced without looking, and chosen afterwards; else None."""
    nest, point = group.leader, group.leader.point
    if group.start is not None or group.siblings or not point.initialise or point.lets:
        return None
    if nest.compacted is not None or nest.excess is not None or not cut_wholly(nest):
        return None
    condition, value = guard(point.op, point.value)
    reduced = {d.name for d in nest.dims if d.reduction}
    named = dims_of_values([condition] if condition else ())
    if named & reduced or not all(load.total for load in loads(value)):
        return None
    return condition


def with_cuts(
    nest: ir.Nest, loops: Sequence[ir.Loop], points: Sequence[ir.Point], *, apart: bool
) -> tuple[ir.Loop, ...]:
    """The loops of a reduction around its accumulators, outermost first, with cuts where points of
    it change nothing. ``apart``: whether iterations at whose points all bounds hold are apart."""
    bounds = cut_bounds(nest, points) if nest.compacted is None else ()
    serial = [k for k, x in enumerate(loops) if x.kind is ir.Kind.SERIAL]
    named = {name for index, _ in bounds for name, _ in index.terms}
    places = [k for k in serial if loops[k].fold.dim in named] or serial[:1]
    return _cut(loops, bounds, places, apart)


def with_borders_apart(
    nest: ir.Nest, loops: Sequence[ir.Loop], points: Sequence[ir.Point]
) -> tuple[ir.Loop, ...]:
    """As ``with_cuts``, of loops that are long enough for iterations at whose points all bounds
    hold to be worth code of their own, although the bounds leave out little."""
    bounds = cut_bounds(nest, points, most=1.0) if nest.compacted is None else ()
    named = {name for index, _ in bounds for name, _ in index.terms}
    long = (
        k
        for k, x in enumerate(loops)
        if x.kind is ir.Kind.SERIAL and representative(x.fold.count) >= _LONG
    )
    return _cut(loops, bounds, [k for k in long if loops[k].fold.dim in named], True)


def _cut(
    loops: Sequence[ir.Loop], bounds: tuple[Bound, ...], places: Sequence[int], apart: bool
) -> tuple[ir.Loop, ...]:
    """The loops, those in some places with cuts."""
    if not bounds or not places:
        return tuple(loops)
    return tuple(
        replace(x, cut=ir.Cut(bounds, apart and k == places[-1])) if k in places else x
        for k, x in enumerate(loops)
    )
