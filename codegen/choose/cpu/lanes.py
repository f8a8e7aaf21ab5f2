"""How many lanes the vectors of a nest have where nobody said."""

from __future__ import annotations

from tcl.codegen.choose.cpu.operation_costs import NORMS
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import values_of, walk
from tcl.grammar.syntax.types import FLOAT64

WIDEST = 4
"""Registers that a value takes at most: on Zen 4, comparisons of 64 areas in int64 at once take
twice as long as of 8 to 16, codes of 64 neighbourhoods in int32 as long as of 32, and less than of
16."""


def lanes_of(point: ir.Point, device: CpuProfile) -> int:
    """Those of the result's type, unless a value that is computed for it takes more registers than
    a few."""
    widest = max(
        (
            FLOAT64 if isinstance(v, ir.Call) and v.name in NORMS else v.type
            for value in values_of(point)
            for v in walk(value)
            if isinstance(v, ir.Binary | ir.Call)
        ),
        key=lambda type_: type_.itemsize,
        default=point.type,
    )
    return min(device.lanes(point.type), WIDEST * device.lanes(widest))


def lanes_within(extent: int, point: ir.Point, device: CpuProfile) -> int:
    """Those of ``lanes_of``, halved until so many points fill a vector."""
    lanes = lanes_of(point, device)
    while lanes > extent:
        lanes //= 2
    return lanes
