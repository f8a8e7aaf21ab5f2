"""What the presets choose on a GPU."""
from __future__ import annotations
from collections.abc import Mapping
from tcl.codegen import ir
from tcl.codegen.cuda.profile import GpuProfile
from tcl.codegen.options import NestOptions


def plan(name: str, program: ir.Program, given: Mapping[str, NestOptions], profile: GpuProfile) -> dict[str, NestOptions]:
    found = {}
    for nest in program.nests:
        if nest.sequential:
            found[nest.name] = NestOptions((), (), (), (-1, 1), (), (), (), False, False, (), (), (), 1)
            continue
        results = sum(not d.reduction for d in nest.dims)
        chunk = [1] * results
        threads = [1] * results
        if results:
            chunk[-1] = threads[-1] = 128
        found[nest.name] = NestOptions((), (), (), (-1, 1), (), (), tuple(chunk), False, False, (), tuple(threads), (), 1)
    return found
