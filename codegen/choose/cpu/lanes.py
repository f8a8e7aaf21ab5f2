"""How many lanes the vectors of a nest have where nobody said."""

from __future__ import annotations

from tcl.codegen.choose.cpu.operation_costs import NORMS
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, values_of, walk
from tcl.grammar.syntax.types import FLOAT64

WIDEST = 4
"""Registers that a value takes at most: on Zen 4, comparisons of 64 areas in int64 at once take
twice as long as of 8 to 16, codes of 64 neighbourhoods in int32 as long as of 32, and less than of
16."""
_OF_CONDITIONS = 1
"""Likewise of values that data decide, where their comparisons are combined with others: masks for
several registers are put together and taken apart. On Zen 4, copies among 41 barcodes, by bytes and
sums in int32, take .74 of the time with 16 lanes instead of 64, hits of a Bloom filter .89."""


def lanes_of(point: ir.Point, device: CpuProfile) -> int:
    """Those of the result's type, unless a value that is computed for it takes more registers than
    a few; more than one, where a reduction combines conditions."""
    combines = point.type.is_bool and point.op != "="
    widest = max(
        (
            FLOAT64 if isinstance(v, ir.Call) and v.name in NORMS else v.type
            for value in values_of(point)
            for v in walk(value)
            if isinstance(v, ir.Binary | ir.Call) and (any(loads(v)) or not combines)
        ),
        key=lambda type_: type_.itemsize,
        default=point.type,
    )
    most = _OF_CONDITIONS if combines else WIDEST
    return min(device.lanes(point.type), most * device.lanes(widest))


def lanes_within(extent: int, point: ir.Point, device: CpuProfile) -> int:
    """Those of ``lanes_of``, halved until so many points fill a vector."""
    lanes = lanes_of(point, device)
    while lanes > extent:
        lanes //= 2
    return lanes
