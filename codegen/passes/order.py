"""Orders the loops of a nest, level by level."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest


@dataclass(frozen=True, slots=True)
class Order:
    """Orders the loops of one level; the other levels stay where they are."""

    nest: str
    level: str
    """``tile`` or ``point``."""
    permutation: tuple[int, ...]
    """Positions of dimensions, outermost first; () leaves the order as it is."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._order) if self.permutation else program

    def _order(self, nest: ir.Nest) -> ir.Nest:
        if sorted(self.permutation) != list(range(len(nest.dims))):
            raise OptionsError(
                f"order: nest {nest.name} has {len(nest.dims)} dimensions, "
                f"the order {self.permutation} does not name each of them once"
            )
        if nest.sequential and self.permutation != tuple(range(len(nest.dims))):
            raise OptionsError(f"order: nest {nest.name} cannot be reordered: {nest.sequential}")
        rank = {nest.dims[position].name: k for k, position in enumerate(self.permutation)}
        chosen = iter(
            sorted(
                (x for x in nest.loops if x.fold.level == self.level),
                key=lambda loop: rank[loop.fold.dim],
            )
        )
        return nest.with_loops(
            next(chosen) if loop.fold.level == self.level else loop for loop in nest.loops
        )
