"""Runs neighbouring points of one dimension as lanes of vector registers."""

from __future__ import annotations

from tcl.codegen.devices.fragments import fragments
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse
from tcl.codegen.passes.knobs import Decoded, KnobSubject, OptionKnobs, Values
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Splits the innermost loop of a dimension into vectors of ``width`` lanes.

    Lanes of a reduction have an accumulator each, combined in the end. The lanes become the
    innermost loop. At a ragged end, some of them are switched off.
    """

    nest: str
    dimension: int
    """Position; -1 is the last output dimension."""
    width: int

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._vectorize) if self.width > 1 else program

    def _vectorize(self, nest: ir.Nest) -> ir.Nest:
        reason = why_not_vectorized(nest, self.dimension, self.width)
        refuse("vectorize", nest.name, reason)
        return vectorized(nest, self.dimension, self.width)


def why_not_vectorized(nest: ir.Nest, dimension: int, width: int) -> str | None:
    """Why a nest, whatever its loops, cannot have these lanes, or None if it can."""
    if width < 2:
        return None
    if nest.sequential and nest.running is None:
        return nest.sequential
    if dimension < 0 and not outputs(nest):
        return f"{nest.point.target.tensor} has no dimension to vectorise"
    if dimension >= len(nest.dims):
        return f"there is no dimension {dimension}: it has {len(nest.dims)}"
    reduced = [d.name for d in nest.dims if d.reduction]
    if nest.running is not None and nest.dims[dimension].name in reduced and len(reduced) > 1:
        return "results run along one reduction, while others are reduced to a term of it"
    return None


def vectorized(nest: ir.Nest, dimension: int, width: int) -> ir.Nest:
    """A nest that can have these lanes, with the loop over them. As ``Vectorize``."""
    dim = vector_dim(nest, dimension, width)
    if dim is None:
        return nest
    innermost = nest.folds(dim.name)[-1]
    vectors = ir.Fold(dim.name, innermost.level, width, -(-innermost.count // width))
    loops = (ir.Loop(vectors) if x.fold == innermost else x for x in nest.loops)
    lane = ir.Loop(ir.Fold(dim.name, "lane", 1, width), ir.Kind.VECTOR)
    return nest.with_loops([*loops, lane])


def vector_dim(nest: ir.Nest, dimension: int, width: int) -> ir.Dim | None:
    """The dimension that these lanes are of; None without lanes."""
    if width < 2:
        return None
    return (outputs(nest) if dimension < 0 else nest.dims)[dimension]


def outputs(nest: ir.Nest) -> tuple[ir.Dim, ...]:
    """The dimensions that are not reduced."""
    return tuple(d for d in nest.dims if not d.reduction)


def vectorize_knobs(on: KnobSubject) -> OptionKnobs:
    """A dimension, and how many of its points are lanes."""
    knobs: tuple[Knob, ...] = ()
    if on.movable and len(on.lane_choices) > 1:
        knobs = (
            Knob(f"{on.nest.name}.vector", on.movable, on.last_output, ordered=False),
            Knob(f"{on.nest.name}.lanes", on.lane_choices, 1, ordered=True),
        )
    unit = next(fragments(on.device, matrix=True), None)

    def decode(values: Values, decoded: Decoded) -> tuple[int, int]:
        if decoded.mma and unit is not None:
            return decoded.mma[1], unit.columns or 1
        target, lanes = (int(values[k.name]) for k in knobs) if knobs else (-1, 1)
        return (target, lanes) if lanes > 1 else (-1, 1)

    def encode(o: NestOptions) -> dict[str, Value]:
        target, lanes = o.vectorize or (-1, 1)
        if lanes == 1 or o.mma:
            return {k.name: k.default for k in knobs}
        return dict(
            zip(
                (k.name for k in knobs),
                (on.last_result if target < 0 else target, lanes),
                strict=False,
            )
        )

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        return {k.name: k.default for k in knobs} if decoded.mma else {}

    def redundant(values: Values, decoded: Decoded) -> str | None:
        if not knobs or decoded.mma:
            return None
        target, lanes = (values[k.name] for k in knobs)
        if lanes == 1 and target != knobs[0].default:
            return "without lanes, the vectorised dimension has no meaning"
        return None

    return OptionKnobs("vectorize", knobs, decode, encode, canonical, redundant)
