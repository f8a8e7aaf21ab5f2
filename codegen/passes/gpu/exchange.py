"""The memory of a block in which threads hand sums to those of other warps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import EXCHANGED, exchange_stride, thread_bits, warps_apart
from tcl.common.dataclass import dataclass


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
        """That of the nests of a block."""
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
    """Results that a thread has at once."""
    fixed = (x.fold for x in nest.loops if x.kind in (ir.Kind.UNROLL, ir.Kind.VECTOR))
    return math.prod(f.count for f in fixed if not nest.dim(f.dim).reduction)
