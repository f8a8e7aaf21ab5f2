"""Which dot products a nest could have, for the model of a core."""

from __future__ import annotations

from collections.abc import Iterator

from tcl.codegen.choose.cpu.costs import OPERATION_CYCLES
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Fragment
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import dot_factors
from tcl.codegen.loopir.walk import indices
from tcl.codegen.passes.cpu.dot import depths, products_of
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DotProducts:
    """Points of one reduction that one instruction multiplies and adds up."""

    dim: str
    depth: int
    fragment: Fragment
    excess: ir.Value | None
    """What is summed up besides, to be taken off."""
    in_place: frozenset[ir.TensorRef]
    """Operands that the instruction takes as they are."""

    def arithmetic_cycles(self, nest: ir.Nest) -> dict[frozenset[str], float]:
        """Cycles of one step of a vector, by the dimensions that it depends on."""
        found = {frozenset(d.name for d in nest.dims): OPERATION_CYCLES * self.fragment.operations}
        if self.excess is not None:
            own = {name for index in indices(self.excess) for name, _ in index.terms}
            found[frozenset(own)] = OPERATION_CYCLES
        return found

    def extra_registers(self, vectors: int) -> int:
        """Those that are needed besides, for so many vectors of a row."""
        return (vectors + 1 if self.excess is not None else 0) + (0 if self.fragment.adds else 1)


def dot_products(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> Iterator[DotProducts]:
    """For each number of points that an instruction of the device adds up, the reduction along
    which that fits best: most of all without a rest, then along memory, then the longest."""
    for depth in depths(nest, device):
        able = [d for d in nest.dims if d.reduction and d.extent >= depth]
        products = products_of(nest.point, depth, device)
        if not able or products is None:
            continue
        factors = dot_factors(products.value)
        reads = [f for f in factors if isinstance(f, ir.Load)]

        def fits(
            dim: ir.Dim, depth: int = depth, reads: list[ir.Load] = reads
        ) -> tuple[float, ...]:
            filled = dim.extent / (-(-dim.extent // depth) * depth)
            steps = (program.tensor(x.ref.tensor).layout.step(x.ref, dim.name) for x in reads)
            return min(filled, _FILLED), sum(step == 1 for step in steps), dim.extent

        best = max(able, key=fits)
        in_place = frozenset(x.ref for x in reads)
        yield DotProducts(best.name, depth, products.fragment, products.excess, in_place)


_FILLED = 0.9
"""The part of the points of all dot products that there are, from which on more count little."""
