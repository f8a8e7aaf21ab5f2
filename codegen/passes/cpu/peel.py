"""Loops that begin where what they write lies on a boundary: no vector that is written then lies in
two lines of the cache, wherever the array begins."""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest, refuse
from tcl.codegen.passes.knobs import KnobSubject, OptionKnobs, flag_knobs
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, provably_at_least, provably_divides


@dataclass(frozen=True, slots=True)
class PeelLoops:
    """Marks the loop along the lanes whose iterations begin on a boundary: of a vector, or of a
    line of the cache where a nest writes past the caches.

    Runs after all passes that change loops: where vectors begin depends on them.
    """

    nest: str
    stream: bool
    """Whether the nest writes past the caches."""

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        refuse("peel", self.nest, _why_not_peeled(program, nest, self.stream))
        found = _alignment(program, nest, self.stream)
        fold = _fold(program, nest, found)
        loops = [replace(x, alignment=found) if x.fold == fold else x for x in nest.loops]
        return map_nest(program, self.nest, lambda n: n.with_loops(loops))


def _why_not_peeled(program: ir.Program, nest: ir.Nest, stream: bool) -> str | None:
    target = nest.point.target
    layout = program.tensor(target.tensor).layout
    if nest.point.op != "=":
        return "it is a reduction, whose lanes have their own registers"
    lane = nest.lane
    if lane is None:
        return f"it writes the elements of {target.tensor} one at a time, without lanes"
    if not all(isinstance(s, ir.Affine) for s in target.subscripts):
        return f"data select the elements of {target.tensor} that it writes"
    if layout.step(target, lane.dim) != 1:
        return f"lanes along {lane.dim} are not adjacent in {target.tensor}"
    if nest.staged:
        return "operands are copied for loops that begin at the first point"
    alignment = _alignment(program, nest, stream)
    fold = _fold(program, nest, alignment)
    if fold is None:
        return (
            f"the distance of neighbouring vectors along {lane.dim} in {target.tensor} is not a "
            f"multiple of {alignment.boundary} bytes"
        )
    if (fewest := min(_spans(nest, fold), default=0)) < alignment.points:
        return (
            f"{fewest} points along {lane.dim} are too few; at least {alignment.points} are needed"
        )
    return None


def _alignment(program: ir.Program, nest: ir.Nest, stream: bool) -> ir.Alignment:
    """For a nest with lanes."""
    target, lane = nest.point.target, nest.lane
    assert lane is not None
    itemsize = program.tensor(target.tensor).layout.itemsize
    boundary = LINE if stream else min(LINE, lane.count * itemsize)
    return ir.Alignment(target, boundary, max(lane.count, boundary // itemsize))


def _fold(program: ir.Program, nest: ir.Nest, alignment: ir.Alignment) -> ir.Fold | None:
    """The fold of the outermost loop whose iterations can begin on boundaries: all vectors that it
    hands out then begin on some, too."""
    lane = nest.lane
    assert lane is not None
    place = program.tensor(alignment.ref.tensor).layout.place(alignment.ref)
    found = None
    for loop in reversed(nest.loops):
        fold = loop.fold
        if fold.dim == lane.dim:
            if fold != lane and fold.step % lane.count:
                break
            if loop.kind is ir.Kind.SERIAL:
                found = fold
        elif not provably_at_least(1, fold.count) and not provably_divides(
            alignment.boundary, place.coefficient(fold.dim) * fold.step
        ):
            break
    return found


def _spans(nest: ir.Nest, fold: ir.Fold) -> set[int]:
    """The numbers of points that are handed to a loop."""
    extent = nest.dim(fold.dim).extent
    if isinstance(extent, Size):  # the last range may be as short as what divides all of them
        steps = (x.step for x in nest.folds(fold.dim) if x.step > fold.step)
        return {math.gcd(*(c for _, c in extent.terms), *steps)}
    found = {extent}
    for outer in nest.folds(fold.dim):
        if outer == fold:
            break
        found = {min(n, outer.step) for n in found} | {n % outer.step for n in found} - {0}
    return found


def peel_knobs(on: KnobSubject) -> OptionKnobs:
    """On or off, where results do not fit the second cache."""
    able = on.past_second_cache(on.nest.point.target.tensor) and on.may_have(peel=True)
    return flag_knobs(on, "peel", able=able)
