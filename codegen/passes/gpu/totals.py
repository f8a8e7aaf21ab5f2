"""Totals of long sums in the memory of a block.

A thread that has many sums has no registers for their totals. In local memory, all blocks write
theirs at the same time, past the first cache: in a product of 2048 on an H100, that takes 7 % of
the time.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen.devices.gpu import SHARED_LINE, GpuProfile
from tcl.codegen.devices.occupancy import fitting
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.unrolling import MANY
from tcl.codegen.loopir.walk import statements
from tcl.grammar.sizes.varying import representative

_BESIDE = 64
"""Registers of a thread besides those of its sums, about."""


def with_totals(kernel: ir.Kernel, profile: GpuProfile) -> ir.Kernel:
    """The kernel with its totals in the memory of a block, where as many blocks fit then as by
    their registers, or as there are."""
    threads = {f for space in kernel.spaces for f in space.threads}
    held, totals, end = 0, dict[str, int](), -(-kernel.shared // SHARED_LINE) * SHARED_LINE
    for s in statements(kernel.body):
        if not isinstance(s, ir.Declare):
            continue
        count = math.prod(f.count for f in s.over if f not in threads)
        size = s.type.compute.itemsize
        if not s.seldom:
            held += count * -(-size // 4)
        elif count > MANY and s.name not in totals:
            totals[s.name] = end
            end += -(-count * size // 16) * 16 * kernel.threads
    if not totals:
        return kernel
    by_registers = fitting(kernel.threads, held + _BESIDE, kernel.shared, profile).blocks
    blocks = math.prod(representative(folds[0].count) for folds in kernel.grid)
    wanted = max(1, min(by_registers, -(-blocks // profile.multiprocessors)))
    fits = fitting(kernel.threads, 0, end, profile).blocks >= wanted
    return replace(kernel, totals=totals, shared=end) if fits else kernel
