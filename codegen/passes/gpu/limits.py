"""What a device has room for: kernels are refused here that need too many blocks, or too much
shared memory. How many threads a block may have is looked at where they are bound (``bind.py``)."""

from __future__ import annotations

import math

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.gpu.exchange import Exchange
from tcl.codegen.passes.gpu.panel import panel_bytes
from tcl.common.dataclass import dataclass
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
            needed = sum(sizes) + Exchange.of(group).size
            names = ", ".join(n.name for n in group)
            if blocks > MAX_BLOCKS:
                raise OptionsError(
                    f"chunk: nest {names}: {blocks} blocks are more than the limit of {MAX_BLOCKS}"
                )
            if needed > self.profile.shared_per_block:
                raise OptionsError(
                    f"stage: nest {names}: panels need {needed} bytes of shared memory, a block of "
                    f"{self.profile.name} has {self.profile.shared_per_block}"
                )
        return program
