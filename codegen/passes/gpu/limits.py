"""What a device has room for: kernels are refused here that need too many blocks, or too much
shared memory, that in which threads hand sums to those of other warps included. How many threads a
block may have is looked at where they are bound (``bind.py``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import EXCHANGED, exchange_stride, thread_bits, warps_apart
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.gpu.panel import panel_bytes
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError


@dataclass(frozen=True, slots=True)
class Exchange:
    """Two areas if several nests hand over sums: while some threads still read those of one nest,
    others write those of the next one, without a barrier between them."""

    stride: int
    """``exchange_stride``."""
    area: int
    """Bytes of a thread in one area."""
    areas: int
    most: int = EXCHANGED
    """Bytes that a thread hands others at once, at most."""
    panels: frozenset[str] = frozenset()
    """Those that it lies over: their block is done with them."""

    @staticmethod
    def of(nests: Iterable[ir.Nest]) -> Exchange:
        nests = tuple(nests)
        stride = exchange_stride(max(n.thread_count for n in nests))
        sizes = [results_at_once(n) * n.point.type.compute.itemsize for n in nests if exchanges(n)]
        return Exchange(stride, min(EXCHANGED, sum(sizes)), min(2, len(sizes)))

    def over(self, panels: Iterable[ir.Panel], end: int) -> Exchange:
        """The same in the place of these panels, which end there: as much at once as they have
        room for."""
        most = max(self.most, end // self.stride)
        return replace(self, most=most, panels=frozenset(x.tensor for x in panels))

    @property
    def size(self) -> int:
        """Bytes of all areas."""
        return self.areas * self.area * self.stride

    def begin(self, number: int) -> int:
        """Where the area of the nest that is the ``number``-th to hand over sums begins."""
        return number % self.areas * self.area * self.stride if self.areas else 0


def exchanges(nest: ir.Nest) -> bool:
    """Whether threads of different warps have sums of the same result."""
    reduced = [f for f in nest.threads if nest.dim(f.dim).reduction]
    return warps_apart(thread_bits(nest.threads, reduced)) != 0


def results_at_once(nest: ir.Nest) -> int:
    fixed = (x.fold for x in nest.loops if x.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR))
    return math.prod(f.count for f in fixed if not nest.dim(f.dim).reduction)


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
