"""Which nests are fused with others in a CPU's loops."""

from __future__ import annotations

import math

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.levels import Levels
from tcl.codegen.passes.fusion.epilogues import same_result_loops
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.fusion.siblings import Sibling, same_loops
from tcl.codegen.passes.vectorize import outputs
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import representative

OPERANDS = 4
"""Registers for what is not accumulated."""
_CALLS = 64
"""Calls of functions, each some dozens of instructions, that may be written out."""


@dataclass(frozen=True, slots=True)
class CpuFusionLimits:
    """For nests with all of their loops."""

    device: CpuProfile

    def fits_points(self, group: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        if not same_loops(group.leader, nest) or not results_at_once(group.leader):
            return False
        if group.leader.dot_product is not None:
            return False  # what one instruction does is for one sum
        over = Levels.from_nest(group.leader).registers
        lanes = math.prod(x.fold.count for x in over if x.kind is ir.Kind.VECTOR)
        points = math.prod(x.fold.count for x in over if x.kind is ir.Kind.UNROLL)
        held = (group.sums + 1) * points * -(-lanes // self.device.lanes(group.leader.point.type))
        return not other.always or held + OPERANDS <= self.device.vector_registers

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        return same_result_loops(leader, nest) and may_have_epilogues(leader, calls)


def results_at_once(nest: ir.Nest) -> bool:
    """Whether each result of a nest with its loops is finished once it is stored."""
    loops = Levels.from_nest(nest)
    return not loops.before or loops.in_fragments(nest)


def may_have_epilogues(nest: ir.Nest, calls: int) -> bool:
    """Whether work on the results of a nest with its loops can be written out among them; with
    lanes along a reduction, functions would be called for one result at a time, where a pass over
    results calls them for vectors."""
    if calls and nest.lane is not None and nest.dim(nest.lane.dim).reduction:
        chunk = {f.dim: f.step for f in nest.chunks}
        results = math.prod(chunk.get(d.name, d.extent) for d in outputs(nest))
        if representative(results) >= nest.lane.count:
            return False
    unrolled = (x.fold for x in nest.loops if x.kind is ir.Kind.UNROLL)
    points = math.prod(f.count for f in unrolled if not nest.dim(f.dim).reduction)
    return results_at_once(nest) and points * calls <= _CALLS
