"""A nest as a GPU's blocks and threads have it, and what they touch.

Counted from the loops after all passes, which takes milliseconds a candidate and needs no GPU:
footprints are boxes, as panels are; memory moves in sectors of 32 bytes, and a warp asks for those
that its threads need at once (CUDA C++ Programming Guide, "Device Memory Accesses").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import Occupancy, fitting
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.gpu.limits import exchange_bytes
from tcl.codegen.passes.gpu.panel import panel_bytes

SECTOR = 32
"""Bytes."""
_BANKS, _WORD = 32, 4
_OTHERS = 24
"""Registers of a thread for addresses and counters, about."""
_CLOCK = 1.6e9
"""Cycles of a multiprocessor in a second, about: profiles do not tell."""
_L2 = 2.5
"""Times as much comes from the second cache in a second as from memory, about."""
_HIDING = 8
"""Warps of a multiprocessor that keep its memory pipelines busy, about."""
_LAUNCH = 2e-6
"""Seconds."""


@dataclass(frozen=True)
class Mapped:
    """A nest with all of its loops, on a device."""

    program: ir.Program
    """After all passes."""
    nest: ir.Nest
    kernel: tuple[ir.Nest, ...]
    """All that share its blocks, itself included."""
    device: GpuProfile

    @cached_property
    def reads(self) -> tuple[ir.Load, ...]:
        """Its operands."""
        return operands(self.nest.point)

    @cached_property
    def staged(self) -> dict[int, ir.Staged]:
        """Those that are copied to shared memory."""
        of = {s.source.ref: s for s in self.nest.staged}
        return {k: of[load.ref] for k, load in enumerate(self.reads) if load.ref in of}

    @cached_property
    def block_count(self) -> int:
        """Of the kernel."""
        return math.prod(f.count for f in self.kernel[0].chunks)

    @cached_property
    def busy(self) -> int:
        """Threads of a block that have points, or copy."""
        fills = (c.fill for n in self.kernel for c in n.staged if c.fill)
        return max(s.thread_count for s in (*self.kernel, *fills))

    @cached_property
    def block_threads(self) -> int:
        """Of a block, in whole warps."""
        return 1 if self.busy == 1 else -(-self.busy // self.device.warp) * self.device.warp

    @cached_property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.block_threads // self.device.warp)

    @cached_property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        panels = [c for n in self.kernel for c in n.staged]
        sizes = (panel_bytes(self._layout(c.panel)) * c.buffers for c in panels)
        return sum(sizes) + exchange_bytes(self.kernel)

    @cached_property
    def registers(self) -> int:
        """Of a thread, about: its sums, what it reads at once, and a few others."""
        own = [Mapped(self.program, n, self.kernel, self.device)._values for n in self.kernel]
        return min(self.device.registers_per_thread, _OTHERS + max(own))

    @property
    def _values(self) -> int:
        words = max(1, self.nest.point.type.compute.bits // 32)
        read = sum(self.once(load.ref) for load in self.reads)
        return (self.held * self.nest.reduces + read) * words

    @cached_property
    def fullness(self) -> Occupancy:
        """What a multiprocessor holds at once."""
        return fitting(self.block_threads, self.registers, self.shared, self.device)

    @cached_property
    def waves(self) -> float:
        """How many times the device is filled with blocks, the last time in part."""
        return self.block_count / (max(1, self.fullness.blocks) * self.device.multiprocessors)

    # What a thread and a block have.

    def folds(self, *kinds: ir.Kind) -> list[ir.Fold]:
        """Those of loops of these kinds."""
        return [x.fold for x in self.nest.loops if x.kind in kinds]

    @cached_property
    def held(self) -> int:
        """Results of a thread at once."""
        fixed = self.folds(ir.Kind.UNROLL, ir.Kind.VECTOR)
        return math.prod(f.count for f in fixed if not self.nest.dim(f.dim).reduction)

    @cached_property
    def unrolled(self) -> int:
        """Points of reductions in a thread's code."""
        fixed = self.folds(ir.Kind.UNROLL, ir.Kind.VECTOR)
        return math.prod(f.count for f in fixed if self.nest.dim(f.dim).reduction)

    def sharing(self, *, reduced: bool) -> int:
        """Threads along reductions, or along results."""
        threads = self.folds(ir.Kind.THREAD)
        return math.prod(f.count for f in threads if self.nest.dim(f.dim).reduction == reduced)

    def inside(self, outer: Sequence[ir.Fold]) -> dict[str, int]:
        """Points of each dimension inside of some loops, no more than there are."""
        dims = self.nest.dims
        return {d.name: min(d.extent, self.nest.reach(d.name, outer)) for d in dims}

    @cached_property
    def of_block(self) -> dict[str, int]:
        """Points of each dimension in a block."""
        return self.inside(self.nest.chunks)

    @cached_property
    def of_step(self) -> dict[str, int]:
        """Points of each dimension that a block's threads have at once."""
        return self.inside(self.folds(ir.Kind.PARALLEL, ir.Kind.SERIAL))

    @cached_property
    def lost(self) -> float:
        """Points with those beyond the tensors / points, at least 1."""
        dims = self.nest.dims
        return math.prod(self.nest.reach(d.name) / d.extent for d in dims if d.extent)

    # What they touch.

    def _layout(self, ref: ir.TensorRef) -> ir.Layout:
        return self.program.tensor(ref.tensor).layout

    def once(self, ref: ir.TensorRef) -> int:
        """Different elements that a thread reads of a tensor for the points that it has at once."""
        place, found = self._layout(ref).place(ref), np.zeros(1, np.int64)
        for fold in self.folds(ir.Kind.UNROLL, ir.Kind.VECTOR):
            found = (found[:, None] + np.arange(fold.count) * _stride(place, fold)).ravel()
        return len(np.unique(found))

    def footprint(self, ref: ir.TensorRef, points: dict[str, int]) -> int:
        """Bytes of the box that so many points touch, in whole sectors along the axis where they
        are neighbours."""
        layout, total, row = self._layout(ref), 1, 1
        for axis, subscript in enumerate(ref.subscripts):
            reach = layout.extents[axis]
            if isinstance(subscript, ir.Affine):
                moved = sum(abs(c) * (points[name] - 1) for name, c in subscript.terms)
                reach = min(reach, 1 + moved)
            if abs(layout.strides[axis]) == layout.itemsize and row == 1:
                row = reach
            else:
                total *= reach
        return total * -(-row * layout.itemsize // SECTOR) * SECTOR

    @cached_property
    def block_bytes(self) -> int:
        """That a block reads and writes, each sector once. Copies take more than there are points
        for, where threads or registers are left without."""
        chunks = self.nest.chunks
        copied = {d.name: self.nest.reach(d.name, chunks) for d in self.nest.dims}
        total = self.footprint(self.nest.point.target, self.of_block)
        for k, load in enumerate(self.reads):
            total += self.footprint(load.ref, copied if k in self.staged else self.of_block)
        return total

    @cached_property
    def least_bytes(self) -> int:
        """That the nest reads and writes, each sector once."""
        every = (*(load.ref for load in self.reads), self.nest.point.target)
        return sum(self.footprint(ref, self.inside(())) for ref in every)

    def lane_addresses(self, space: ir.Space, ref: ir.TensorRef, *, lanes: bool) -> list[int]:
        """Bytes at which those threads of the first warp that have points find their first
        elements, or vectors."""
        folds = [x.fold for x in space.loops if x.kind is ir.Kind.THREAD]
        if lanes and space.lane is not None:
            folds.append(space.lane)
        threads = min(self.device.warp, math.prod(f.count for f in folds if f != space.lane))
        turn = np.arange(threads * math.prod(f.count for f in folds if lanes and f == space.lane))
        place, at = self._layout(ref).place(ref), np.zeros(len(turn), np.int64)
        offsets = {d.name: np.zeros(len(turn), np.int64) for d in space.dims}
        for fold in reversed(folds):
            own = turn % fold.count
            at += own * _stride(place, fold)
            offsets[fold.dim] += own * fold.step
            turn = turn // fold.count
        there = [offsets[d.name] < d.extent for d in space.dims]
        return [int(x) for x in at[np.logical_and.reduce(there)]]

    def sectors(self, space: ir.Space, ref: ir.TensorRef) -> int:
        """That the first warp asks for at once."""
        size = self._layout(ref).itemsize
        at = self.lane_addresses(space, ref, lanes=True)
        return len({(a + k) // SECTOR for a in at for k in (0, size - 1)})

    def spread(self, space: ir.Space, ref: ir.TensorRef) -> float:
        """Sectors that the first warp asks for / those that its elements would fill."""
        size = self._layout(ref).itemsize
        different = len(set(self.lane_addresses(space, ref, lanes=True)))
        return self.sectors(space, ref) / -(-different * size // SECTOR)

    @cached_property
    def read_spread(self) -> float:
        """The worst of what is read from global memory, by copies too."""
        found = [1.0]
        for k, load in enumerate(self.reads):
            staged = self.staged.get(k)
            if staged is None:
                found.append(self.spread(self.nest, load.ref))
            elif staged.fill is not None:
                found += [self.spread(staged.fill, x.ref) for x in operands(staged.fill.point)]
        return max(found)

    @cached_property
    def conflicts(self) -> int:
        """Times that the busiest bank is asked, when the first warp reads an element of a panel for
        each thread; the worst of the panels."""
        return max((self._conflicts(s.panel) for s in self.nest.staged), default=1)

    def _conflicts(self, panel: ir.TensorRef) -> int:
        words = {a // _WORD for a in self.lane_addresses(self.nest, panel, lanes=False)}
        banks = [w % _BANKS for w in words]
        return max(map(banks.count, banks))

    @cached_property
    def requests(self) -> float:
        """Sectors that all warps of all blocks ask global memory for: one request for each vector
        that a thread reads, and for each that it copies."""
        total = 0.0
        for k, load in enumerate(self.reads):
            staged = self.staged.get(k)
            if staged is None:
                lane = self.nest.lane
                place = self._layout(load.ref).place(load.ref)
                vector = lane.count if lane and place.coefficient(lane.dim) else 1
                total += (
                    self._runs * self.once(load.ref) / vector * self.sectors(self.nest, load.ref)
                )
            else:
                total += self.bytes_staged(staged) * self.block_count / SECTOR
        return (
            total
            + self.block_count * self.footprint(self.nest.point.target, self.of_block) / SECTOR
        )

    @property
    def _runs(self) -> int:
        """How often all warps go through what their threads have at once."""
        turns = math.prod(f.count for f in self.folds(ir.Kind.SERIAL))
        return turns * self.warps * self.block_count

    def bytes_staged(self, staged: ir.Staged) -> int:
        """What a block copies to a panel, all of its fills together."""
        layout = self._layout(staged.panel)
        times, loops = 1, self.folds(ir.Kind.SERIAL)
        if staged.inside is not None:
            times = math.prod(f.count for f in loops[: loops.index(staged.inside) + 1])
        return times * math.prod(layout.extents) * layout.itemsize

    @cached_property
    def seconds(self) -> float:
        """What the analytic model expects: the longest of arithmetic, memory, the second cache, and
        the requests of all warps, on a device that is as full of blocks as this one is."""
        device, points = self.device, self.nest.points * self.lost
        peak = device.tensor_flops if self.on_cores else device.float32_flops
        full = self.waves / max(1.0, math.ceil(self.waves))
        hidden = min(1.0, max(1, self.fullness.warps) / _HIDING)
        rate = device.multiprocessors * _CLOCK
        works = (
            2 * points / peak,
            self.least_bytes / device.memory_bytes_per_second,
            self.block_count * self.block_bytes / (_L2 * device.memory_bytes_per_second),
            self.requests / rate,
            self.shared_reads / rate,
        )
        return max(works) / max(full * hidden, 1e-4) + _LAUNCH

    @cached_property
    def shared_reads(self) -> float:
        """Times that warps wait for a panel's banks."""
        staged = self.staged.items()
        return float(
            self._runs
            * sum(self.once(self.reads[k].ref) * self._conflicts(s.panel) for k, s in staged)
        )

    @property
    def on_cores(self) -> bool:
        """Whether tensor cores multiply."""
        return any(x.fold.level == "mma" for x in self.nest.loops)


def _stride(place: ir.Affine, fold: ir.Fold) -> int:
    """Bytes from one iteration to the next."""
    return (place.coefficient(fold.dim) + place.coefficient(fold.name)) * fold.step
