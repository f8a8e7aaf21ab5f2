"""How a nest that is alone is divided among threads, where nobody said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tcl.codegen import ir
from tcl.codegen.core_model import Core
from tcl.codegen.device import CpuProfile
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.stage import dims_of

_SHARES = (4, 8, 2, 1)
"""Chunks per thread, in the order in which they are tried. Of dimensions along which memory lies in
order, long pieces are better."""
_NEARLY = 0.04
"""How much longer a thread may take than it would if all ended together."""
_COPY = 0.25
"""Cycles to copy an element."""
_WAIT = 20_000.0
"""Cycles in which threads wait for each other."""
LARGEST = 1 << 24
"""Elements of a panel that may be kept for the whole call."""


def balanced(
    program: ir.Program, nest: ir.Nest, dims: Sequence[str], device: CpuProfile
) -> tuple[int, ...]:
    """Chunks of the outermost dimension, or pair of them, that keeps all threads busy to the
    end, in whole register tiles, without much being copied for each of them."""
    extents = tuple(nest.dim(name).extent for name in dims)
    if device.threads == 1 or not extents:
        return extents
    in_order = in_lanes(program, nest)
    work = _Work.of(program, nest, device) if _reuses(nest) else None
    best, least = extents, math.inf
    rank = range(len(extents))
    for outer, k in [*((None, k) for k in rank), *pairwise(rank)]:
        before = extents[outer] if outer is not None else 1
        dim = dims[k]
        unit = work.unit(dim) if work is not None else 1
        for share in _SHARES[2:] if dim in in_order else _SHARES:
            size = -(-extents[k] * before // (device.threads * share))
            size = min(extents[k], -(-size // unit) * unit)
            count = before * -(-extents[k] // size)
            busy = -(-count // device.threads) * device.threads * size / (extents[k] * before)
            copied = work.copied(dim, count) if work is not None else 0.0
            if busy + copied < least - _NEARLY:
                sizes = list(extents)
                sizes[k] = size
                if outer is not None:
                    sizes[outer] = 1
                best, least = tuple(sizes), busy + copied
    return best


@dataclass(frozen=True, slots=True)
class _Work:
    """A nest that reads operands again and again, as one thread would do it."""

    core: Core
    lane: str | None
    tile: Mapping[str, int]
    """Register tile."""
    cycles: float

    @staticmethod
    def of(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> _Work:
        core = Core.of(program, nest, device)
        lane, tile = core.best()
        return _Work(core, lane, tile, core.cycles(lane, tile))

    def unit(self, dim: str) -> int:
        """Points of a dimension in a register tile."""
        return self.tile.get(dim, 1) * (self.core.lanes if dim == self.lane else 1)

    def copied(self, dim: str, count: int) -> float:
        """What is copied for this many chunks of a dimension, as a part of all work. Operands that
        do not move along it are copied once, before all chunks, as long as they are not too large
        for that; then threads have to wait for each other."""
        total = 0.0
        for access in self.core.reads:
            if self.lane not in access.strides or dim in access.strides:
                continue
            if self.core.worth_staging(access, self.lane, self.tile):
                again = count if access.elements > LARGEST else 1
                total += (again - 1) * access.elements * _COPY + _WAIT
        return total / self.cycles


def _reuses(nest: ir.Nest) -> bool:
    """Whether an operand stays the same along a dimension of the results."""
    if any(d.extent == 0 for d in nest.dims):
        return False  # nor anything else
    results = {d.name for d in nest.dims if not d.reduction and d.extent > 1}
    return any(d.reduction for d in nest.dims) and any(
        results - dims_of(r) and results & dims_of(r) for r in refs(nest)[1:]
    )


def in_lanes(program: ir.Program, nest: ir.Nest) -> set[str]:
    """The dimensions along which some access goes through memory in order."""
    found: set[str] = set()
    for ref in refs(nest):
        layout = program.tensor(ref.tensor).layout
        terms = layout.place(ref).terms
        found |= {name for name, stride in terms if stride == layout.itemsize}
    return found
