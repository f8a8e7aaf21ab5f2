"""Runs neighbouring points of one dimension as lanes of vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest


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
        reason = why_not(nest, self.dimension)
        if reason:
            raise OptionsError(f"vectorize: nest {nest.name}: {reason}")
        dim = (outputs(nest) if self.dimension < 0 else nest.dims)[self.dimension]
        lane = ir.Loop(ir.Fold(dim.name, "lane", 1, self.width), ir.Kind.VECTOR)
        innermost = nest.folds(dim.name)[-1]
        loops: list[ir.Loop] = []
        for loop in nest.loops:
            if loop.fold == innermost:
                count = -(-innermost.count // self.width)
                loop = ir.Loop(ir.Fold(dim.name, innermost.level, self.width, count))
            loops.append(loop)
        return nest.with_loops([*loops, lane])


def outputs(nest: ir.Nest) -> tuple[ir.Dim, ...]:
    """The dimensions that are not reduced."""
    return tuple(d for d in nest.dims if not d.reduction)


def why_not(nest: ir.Nest, dimension: int) -> str | None:
    """Why this dimension cannot be vectorised, or None if it can."""
    if nest.sequential:
        return nest.sequential
    if dimension < 0 and not outputs(nest):
        return f"{nest.point.target.tensor} has no dimension to vectorise"
    if dimension >= len(nest.dims):
        return f"there is no dimension {dimension}: it has {len(nest.dims)}"
    return None
