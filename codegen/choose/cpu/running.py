"""Loops of running reductions."""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.choose.cpu.lanes import lanes_within
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import PLAIN, NestOptions

_VECTORS = 8
"""Vectors that run side by side: as much as is worth reading at once of each row."""


def running_results(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> NestOptions:
    """Lanes for an untiled nest whose points run in order: along the dimension whose elements lie
    next to each other in what it writes, be it that along which they run."""
    if nest.running is None:
        return PLAIN
    layout = program.tensor(nest.point.target.tensor).layout
    reduced = [d.name for d in nest.dims if d.reduction]
    for k, dim in enumerate(nest.dims):
        if abs(layout.step(nest.point.target, dim.name)) != 1 or (dim.name in reduced[1:]):
            continue
        along = dim.name == nest.running
        if along and len(reduced) > 1:
            continue
        lanes = lanes_within(dim.extent, nest.point, device)
        if lanes < 2:
            continue
        vectors = min(_VECTORS, dim.extent // lanes)
        register = () if along or vectors < 2 else (*[0] * k, vectors)
        return replace(PLAIN, vectorize=(k, lanes), register=register)
    return PLAIN
