"""What operands cost that several chunks copy, or that are copied for all of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl.codegen.choose.cpu.access_costs import Access
from tcl.codegen.devices.cpu import CpuProfile

_WRITTEN = 0.5
"""Cycles more per element of a panel that does not stay in the second cache."""
_OWN = 0.1
"""Cycles per element to read a panel from a core's own second cache once more."""
_OTHER = 1.0
"""Likewise, from that of the core that has filled it."""
_FAR = 0.5
"""Likewise, from behind the second caches."""
_WAIT = 10_000.0
"""Cycles in which a thread waits for others before all of them read what they made together."""
LARGEST = 1 << 24
"""Elements of a panel that may be kept for the whole call."""


@dataclass(frozen=True, slots=True)
class PanelCost:
    """An operand of a nest with these lanes, in cycles of all threads together."""

    access: Access
    lane: str | None
    device: CpuProfile

    def inside(self, copies: int) -> float:
        """Every chunk copies its part; ``copies`` is how many chunks share an element."""
        each = self.access.copying(self.lane, self.device.l2_bytes)
        return copies * self.access.elements * each

    def before(self, copies: int) -> float:
        """All of it is copied before the chunks."""
        if self.access.elements > LARGEST:
            return math.inf
        near = self.access.elements * self.access.itemsize <= self.device.l2_bytes
        once = self.inside(1) + (0.0 if near else _WRITTEN) * self.access.elements
        threads = self.device.threads
        if near:
            again = _OWN if threads == 1 else min(copies, threads) * _OTHER
        else:
            again = copies * _FAR
        wait = _WAIT * threads if threads > 1 else 0.0
        return once + again * self.access.elements + wait

    def more(self, copies: int) -> float:
        """The cheaper of both, beyond a single copy."""
        return min(self.inside(copies), self.before(copies)) - self.inside(1)
