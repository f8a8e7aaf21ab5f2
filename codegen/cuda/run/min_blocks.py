"""One block more on a multiprocessor, where a few registers are in its way.

How many registers a kernel takes changes by a few from one version of the compiler to the next, and
with 129 instead of 128 half as many blocks of 256 threads fit. The compiler is told, then, how many
have to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.cuda.emit.module import Launch, Module
from tcl.codegen.cuda.run.occupancy import Resources, occupancy
from tcl.codegen.devices.gpu import GpuProfile

_FEW = 16
"""A kernel can do without the 16th part of its registers, if so it has no spills."""
_CROWDED = 2
"""Blocks on a multiprocessor from which on one more is no longer half as many again."""


def fuller(module: Module, taken: Sequence[Resources], profile: GpuProfile) -> str | None:
    """The source, with bounds for the kernels that are short of a few registers; None if none
    is."""
    source = module.source
    for launch, resources in zip(module.launches, taken, strict=True):
        blocks = _wanted(launch, resources, profile)
        if blocks:
            bounds = rf"(__launch_bounds__\({launch.threads})(?:, 1)?(\)\s+{launch.name}\()"
            source = re.sub(bounds, rf"\g<1>, {blocks}\g<2>", source)
    return None if source == module.source else source


def _wanted(launch: Launch, taken: Resources, profile: GpuProfile) -> int:
    """The blocks that fit with a few registers less, if that is worth it; else 0."""
    now = occupancy(taken, launch, profile).blocks
    if not 0 < now <= _CROWDED or launch.blocks <= now * profile.multiprocessors:
        return 0
    least = replace(taken, registers=taken.registers - taken.registers // _FEW)
    return now + 1 if occupancy(least, launch, profile).blocks > now else 0


def spills(taken: Sequence[Resources]) -> int:
    """Bytes that threads of all kernels move to and from memory for want of registers."""
    return sum(each.spill_loads + each.spill_stores for each in taken)
