"""How results are written: by loops that begin where these lie on a boundary, so that no vector is
in two lines of the cache, wherever the array begins; and past the caches, as what is not read again
soon need not be there."""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen.devices.cpu import LINE, SHORTEST_STREAM
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
    if not target.is_affine:
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
    """On or off, where results do not fit the second cache, or the default has it."""
    far = on.past_second_cache(on.nest.point.target.tensor)
    able = bool(on.default.peel) or (far and on.may_have(peel=True))
    return flag_knobs(on, "peel", able=able)


_UNITS = (64, 32, SHORTEST_STREAM)
"""Bytes that they can store at once, each on a boundary of as many."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Marks a nest whose stores go to memory without first reading what they overwrite.

    Runs after all passes that change loops: where vectors begin depends on them. Unless
    ``PeelLoops`` has made loops begin on boundaries, it depends on the array, too, which is looked
    at when the kernel runs: stores are in pieces or plain ones where a vector does not lie on a
    boundary.
    """

    nest: str

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        aligned = any(x.alignment for x in nest.loops)
        refuse("stream", self.nest, _why_not_streamed(program, nest, aligned))
        unit = _longest(program, nest) if aligned else _boundary(program, nest)
        return map_nest(program, self.nest, lambda nest: replace(nest, streamed=unit))


def _why_not_streamed(program: ir.Program, nest: ir.Nest, aligned: bool) -> str | None:
    target = nest.point.target
    layout = program.tensor(target.tensor).layout
    if nest.point.op != "=":
        return f"it is a reduction, which reads its own results in {target.tensor}"
    lane = nest.lane
    if lane is None:
        return f"it writes the elements of {target.tensor} one at a time, without lanes"
    if layout.step(target, lane.dim) != 1:
        return f"lanes along {lane.dim} are not adjacent in {target.tensor}"
    if (length := lane.count * layout.itemsize) < SHORTEST_STREAM:
        return (
            f"vectors of {length} bytes are too short; at least {SHORTEST_STREAM} bytes are needed"
        )
    if not aligned and not _boundary(program, nest):
        return f"not all vectors of {target.tensor} begin at multiples of {SHORTEST_STREAM} bytes"
    return None


def _longest(program: ir.Program, nest: ir.Nest) -> int:
    """Bytes of a vector that can be written at once, on whatever boundary it lies."""
    layout, lane = program.tensor(nest.point.target.tensor).layout, nest.lane
    assert lane is not None
    return next(u for u in _UNITS if lane.count * layout.itemsize % u == 0)


def _boundary(program: ir.Program, nest: ir.Nest) -> int:
    """Bytes of which all vectors that the nest writes begin at multiples, counted from the first
    element: as many as can be written at once, or 0."""
    layout = program.tensor(nest.point.target.tensor).layout
    at = layout.place(nest.point.target)
    lanes = max(x.fold.count for x in nest.loops if x.kind is ir.Kind.VECTOR)
    length = lanes * layout.itemsize
    steps = [
        at.coefficient(x.fold.dim) * x.fold.step
        for x in nest.loops
        if not provably_at_least(1, x.fold.count) and x.kind is not ir.Kind.VECTOR
    ]
    first = at.constant + sum(c * nest.dim(name).first for name, c in at.terms)
    fitting = (u for u in _UNITS if all(provably_divides(u, x) for x in (length, first, *steps)))
    return next(fitting, 0)


def stream_knobs(on: KnobSubject) -> OptionKnobs:
    """On or off, where results do not fit the second cache."""
    able = on.past_second_cache(on.nest.point.target.tensor) and (
        on.may_have(stream=True) or on.may_have(stream=True, peel=True)
    )
    return flag_knobs(on, "stream", able=able)
