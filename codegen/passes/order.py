"""Orders the loops of a nest, level by level."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest, refuse
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """Orders the loops of one level; the other levels stay where they are."""

    nest: str
    level: str
    """``tile`` or ``point``."""
    permutation: tuple[int, ...]
    """Positions of dimensions, outermost first; () leaves the order as it is."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._reorder) if self.permutation else program

    def _reorder(self, nest: ir.Nest) -> ir.Nest:
        option = "order" if self.level == "tile" else "inner_order"
        refuse(option, nest.name, why_not_ordered(nest, self.permutation))
        return ordered(nest, self.level, self.permutation)


def why_not_ordered(nest: ir.Nest, permutation: tuple[int, ...]) -> str | None:
    """Why a nest, whatever its loops, cannot have them in this order, or None if it can."""
    natural = tuple(range(len(nest.dims)))
    if permutation in ((), natural):
        return None
    if sorted(permutation) != list(natural):
        return (
            f"it has {len(natural)} dimensions, the order {permutation} does not name each of "
            "them once"
        )
    if nest.running is None:
        return nest.sequential
    results = sum(not d.reduction for d in nest.dims)
    return None if permutation[results:] == natural[results:] else nest.sequential


def ordered(nest: ir.Nest, level: str, permutation: tuple[int, ...]) -> ir.Nest:
    """A nest that can have this order, with the loops of a level in it. As ``Order``."""
    if not permutation:
        return nest
    rank = {nest.dims[position].name: k for k, position in enumerate(permutation)}
    own = (x for x in nest.loops if x.fold.level == level)
    chosen = iter(sorted(own, key=lambda loop: rank[loop.fold.dim]))
    return nest.with_loops(next(chosen) if x.fold.level == level else x for x in nest.loops)
