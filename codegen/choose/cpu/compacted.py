"""Which reductions could go through the compacted indices of their points, for the model of a
core."""

from __future__ import annotations

import math

from tcl.codegen.choose.cpu.costs import (
    BARRIER_CYCLES,
    LIST_ENTRY_CYCLES,
    OPERATION_CYCLES,
)
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import walk
from tcl.codegen.passes.cpu.cut import cut_wholly
from tcl.codegen.passes.cpu.skip import condition_dims, why_not_skipped
from tcl.codegen.passes.cpu.stage import made_with

CONDITION_SHARE = 0.5
"""The part of the points at which a condition is taken to hold: nothing is known of it."""
_SHORTEST = 16
"""Points of a reduction from which on a list of some of them is worth going through."""


def compacted_dims(program: ir.Program, nest: ir.Nest) -> frozenset[str]:
    """The dimensions along which the condition of an untiled nest changes, if its reduction can go
    through the points alone at which that holds, and is long enough; else none."""
    condition, _ = guard(nest.point.op, nest.point.value)
    if condition is None or nest.dot_product is not None:
        return frozenset()
    if cut_wholly(nest):
        return frozenset()  # loops end where it does, without lists
    made = made_with(program.nests, program.nest(nest.name))
    if why_not_skipped(nest, made) is not None:
        return frozenset()
    dims = condition_dims(nest, condition)
    return frozenset(d.name for d in dims) if dims[-1].extent >= _SHORTEST else frozenset()


def compaction_cycles(nest: ir.Nest, device: CpuProfile) -> float:
    """Cycles, of all threads together, to make these lists."""
    condition, _ = guard(nest.point.op, nest.point.value)
    assert condition is not None
    each = LIST_ENTRY_CYCLES + OPERATION_CYCLES * sum(1 for _ in walk(condition))
    wait = BARRIER_CYCLES * device.threads if device.threads > 1 else 0.0
    return math.prod(d.extent for d in condition_dims(nest, condition)) * each + wait
