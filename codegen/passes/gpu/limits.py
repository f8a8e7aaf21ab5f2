"""What a device has room for: kernels are refused here that need too many blocks, or too much
shared memory. How many threads a block may have is looked at where they are bound (``bind.py``)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.gpu.panel import panel_bytes
from tcl.common.errors import OptionsError

MAX_BLOCKS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class WithinLimits:
    """Refuses kernels that need more than the device has; changes nothing."""

    profile: GpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        for group in groups(program.nests):
            panels = [c for n in group for c in n.staged]
            sizes = (panel_bytes(program.tensor(c.panel.tensor).layout) * c.buffers for c in panels)
            blocks = math.prod(f.count for f in group[0].chunks)
            needed = sum(sizes) + exchange_bytes(group)
            names = [n.name for n in group]
            if reason := why_too_large(names, blocks, needed, self.profile):
                raise OptionsError(reason)
        return program


def why_too_large(
    nests: Sequence[str], blocks: int, shared: int, profile: GpuProfile
) -> str | None:
    """Why a kernel of these nests cannot have so many ``blocks``, or so many bytes of ``shared``
    memory; None if it can."""
    names = ", ".join(nests)
    if blocks > MAX_BLOCKS:
        return f"chunk: nest {names}: {blocks} blocks, at most {MAX_BLOCKS} run"
    if shared > profile.shared_per_block:
        return (
            f"stage: nest {names}: panels need {shared} bytes of shared memory, a block of "
            f"{profile.name} has {profile.shared_per_block}"
        )
    return None


def exchange_bytes(group: Sequence[ir.Nest]) -> int:
    """Bytes in which threads hand sums to those of other warps."""
    widths = [
        n.point.type.compute.itemsize
        for n in group
        if any(n.dim(f.dim).reduction for f in n.threads)
    ]
    return most_exchanged(widths, (n.thread_count for n in group))


def most_exchanged(widths: Sequence[int], threads: Iterable[int]) -> int:
    """Bytes that nests of so many ``threads`` exchange, one nest after the other, where those that
    combine sums have some of these widths in bytes."""
    return max(1, *widths) * max(threads) if widths else 0
