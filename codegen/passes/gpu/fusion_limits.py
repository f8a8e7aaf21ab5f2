"""Which nests go along with others in the loops of a block."""

from __future__ import annotations

import math

from tcl.codegen.loopir import ir
from tcl.codegen.passes.fusion.epilogues import same_result_loops
from tcl.codegen.passes.fusion.groups import FusionGroup
from tcl.codegen.passes.fusion.siblings import Sibling, same_loops
from tcl.codegen.passes.gpu.bind import MAX_HELD

_CALLS = 64
"""Calls of functions, each some dozens of instructions, that may be written out."""


class GpuFusionLimits:
    """As a ``FusionLimits``: for nests with all of their loops."""

    def fits_points(self, unit: FusionGroup, other: Sibling, nest: ir.Nest) -> bool:
        """Whether the nest of a reduction has the leader's loops, and registers for its sums."""
        if not same_loops(unit.leader, nest):
            return False
        held = _held(unit.leader) * max(1, nest.point.type.bits // 32)
        return held * (unit.sums + 1) <= MAX_HELD

    def fits_results(self, leader: ir.Nest, nest: ir.Nest, calls: int) -> bool:
        """Whether the nest has the leader's loops over its results."""
        return same_result_loops(leader, nest) and _held(leader) * calls <= _CALLS


def _held(nest: ir.Nest) -> int:
    """Results that a thread has at once."""
    fixed = (x.fold for x in nest.loops if x.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR))
    return math.prod(f.count for f in fixed if not nest.dim(f.dim).reduction)
