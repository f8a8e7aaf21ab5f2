"""What a device has room for: options are refused here that it cannot run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.gpu.bind import thread_count

MAX_BLOCKS = 2**31 - 1
LINE = 128
"""Panels begin at multiples of so many bytes of shared memory."""


def within_limits(program: ir.Program, profile: GpuProfile) -> None:
    """``OptionsError`` for kernels that need more than the device has."""
    for group in groups(program.nests):
        names = ", ".join(n.name for n in group)
        blocks = math.prod(f.count for f in group[0].chunks)
        if blocks > MAX_BLOCKS:
            raise OptionsError(f"chunk: nest {names}: {blocks} blocks, at most {MAX_BLOCKS} run")
        needed = shared_bytes(program, group)
        if needed > profile.shared_per_block:
            raise OptionsError(
                f"stage: nest {names}: panels need {needed} bytes of shared memory, a block of "
                f"{profile.name} has {profile.shared_per_block}"
            )


def shared_bytes(program: ir.Program, group: list[ir.Nest]) -> int:
    """Bytes of shared memory of a kernel: panels, and what threads combine their sums in."""
    panels = sum(
        room(program.tensor(c.panel.tensor).layout) * c.buffers for n in group for c in n.staged
    )
    return panels + exchange_bytes(group)


def room(layout: ir.Layout) -> int:
    """Bytes of one copy of a panel."""
    size = layout.itemsize
    for extent, stride in zip(layout.extents, layout.strides, strict=True):
        size = max(size, extent * stride)
    return -(-size // LINE) * LINE


def exchange_bytes(group: Sequence[ir.Nest]) -> int:
    """Bytes in which threads hand sums to those of other warps."""
    widths = [n.point.type.compute.itemsize for n in group if _exchanges(n)]
    return max(1, *widths) * max(map(thread_count, group)) if widths else 0


def _exchanges(nest: ir.Nest) -> bool:
    folds = [x.fold for x in nest.loops if x.kind is ir.Kind.THREAD]
    return any(nest.dim(f.dim).reduction for f in folds)
