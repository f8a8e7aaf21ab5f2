"""Whether a work is large enough to wake other threads for."""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.ir_walk import operands, values_of, walk

WAKING = 20_000.0
"""Nanoseconds of work on one thread below which others are left asleep. To begin and end together
takes 1 µs when all are awake, as in a loop of calls, and about 50 µs when they have to be woken;
two threads save half of the time, and what both touched has to go from one cache to the other."""

_PER_LANE = 4.0
"""Operations per nanosecond and lane of a vector register. The best kernels reach 10."""
_BYTES = 20.0
"""Bytes per nanosecond, from or to the second cache: what is short does not come from memory."""
_CALL = 16.0
"""Operations that a built-in function stands for."""


def worth_threads(program: ir.Program, device: CpuProfile) -> bool:
    """Whether a program that has just been lowered takes long enough on one thread."""
    return sum(_nanoseconds(program, nest, device) for nest in program.nests) >= WAKING


def with_threads_worth(program: ir.Program, device: CpuProfile) -> CpuProfile:
    """The device with as many threads as it has if they are worth waking, else with one."""
    if device.threads == 1 or worth_threads(program, device):
        return device
    return replace(device, threads=1)


def _nanoseconds(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> float:
    """A lower bound: the nest's arithmetic or its memory, whichever takes longer. None of a nest
    whose points have to run in order, which threads cannot share."""
    if nest.sequential:
        return 0.0
    points = math.prod(d.extent for d in nest.dims)
    operations = 1.0 if nest.point.op != "=" else 0.0
    for value in (v for whole in values_of(nest.point) for v in walk(whole)):
        if isinstance(value, ir.Call):
            operations += _CALL
        elif isinstance(value, ir.Unary | ir.Binary | ir.Select | ir.Cast):
            operations += 1
    moved = 0
    for ref in (nest.point.target, *(load.ref for load in operands(nest.point))):
        layout = program.tensor(ref.tensor).layout
        moved += min(points, math.prod(layout.extents)) * layout.itemsize
    rate = _PER_LANE * device.lanes(nest.point.type)
    return max(points * operations / rate, moved / _BYTES)
