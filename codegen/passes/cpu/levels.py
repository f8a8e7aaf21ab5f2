"""The loops of a reduction, by what happens between them."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.copies import fixed
from tcl.codegen.passes.long_sums import iterations, most_points
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least


@dataclass(frozen=True, slots=True)
class Levels:
    """The loops of a nest. Without reductions, none are inner ones."""

    outer: tuple[ir.Loop, ...]
    """Around the accumulators."""
    inner: tuple[ir.Loop, ...]
    """Reductions over which the accumulators are kept in registers."""
    registers: tuple[ir.Loop, ...]
    """Unrolled loops and lanes: each point of them has an accumulator."""
    dots: tuple[ir.Loop, ...]
    """Inside of the registers: what one instruction adds up, if there are such loops."""
    combined: tuple[ir.Fold, ...]
    """Reductions among the registers, whose accumulators are combined in the end."""
    before: tuple[ir.Fold, ...]
    """Reductions among the outer loops: after their first iteration, there are partial results."""

    @staticmethod
    def from_nest(nest: ir.Nest) -> Levels:
        reduced = {d.name for d in nest.dims if d.reduction}
        # Lanes of a reduction have accumulators anyway; then its unrolled loop has some, too.
        own = {x.fold.dim for x in nest.loops if x.kind is ir.Kind.VECTOR}
        at_once = (ir.Kind.MMA, ir.Kind.DOT)
        dots = tuple(x for x in nest.loops if x.kind in at_once and x.fold.dim in reduced)
        loops = tuple(x for x in nest.loops if x not in dots)
        held = [fixed(x) and (x.fold.dim in own or x.fold.dim not in reduced) for x in loops]
        stop = len(loops)
        while stop and held[stop - 1]:
            stop -= 1
        split = stop
        # A sequential nest may read its target at any point: no accumulator, then.
        if not (nest.sequential and reduced):
            while split and loops[split - 1].fold.dim in reduced:
                split -= 1
        outer, registers = loops[:split], loops[stop:]
        combined = tuple(x.fold for x in registers if x.fold.dim in reduced)
        before = tuple(x.fold for x in outer if x.fold.dim in reduced)
        return Levels(outer, loops[split:stop], registers, dots, combined, before)

    def parts_in_memory(self, most: int | None) -> int:
        """The parts of a sum that are added up in memory: 1 where accumulators may resume it, as
        they take no more than ``most`` points altogether."""
        before = iterations(x for x in self.outer if x.fold in self.before)
        resumed = most is None or provably_at_least(most, before * iterations(self.inner))
        return 1 if resumed else before

    def in_fragments(self, nest: ir.Nest) -> bool:
        """Whether the matrix unit has its sums until they are finished: it stores whole fragments
        where loops come back to them."""
        most = most_points((nest.point,))
        return bool(nest.mma) and nest.reduces and self.parts_in_memory(most) == 1
