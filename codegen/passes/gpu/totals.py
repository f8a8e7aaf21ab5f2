"""Totals of long sums in the memory of a block.

A thread that has many sums has no registers for their totals. In local memory, all blocks write
theirs at the same time, past the first cache: in a product of 2048 on an H100, that takes 7 % of
the time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate

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
    held, sizes = 0, dict[str, int]()
    for s in statements(kernel.body):
        if not isinstance(s, ir.Declare):
            continue
        count = math.prod(f.count for f in s.over if f not in threads)
        size = s.type.compute.itemsize
        if not s.seldom:
            held += count * -(-size // 4)
        elif count > MANY:  # several nests may have some of this name, one after the other
            own = -(-count * size // 16) * 16 * kernel.threads
            sizes[s.name] = max(own, sizes.get(s.name, 0))
    if not sizes:
        return kernel
    first = -(-kernel.shared // SHARED_LINE) * SHARED_LINE
    *begins, end = accumulate(sizes.values(), initial=first)
    by_registers = fitting(kernel.threads, held + _BESIDE, kernel.shared, profile).blocks
    blocks = math.prod(representative(folds[0].count) for folds in kernel.grid)
    wanted = max(1, min(by_registers, -(-blocks // profile.multiprocessors)))
    if fitting(kernel.threads, 0, end, profile).blocks < wanted:
        return kernel
    return replace(kernel, totals=dict(zip(sizes, begins, strict=True)), shared=end)
