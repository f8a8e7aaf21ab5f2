"""Features of a candidate for a GPU, counted again from the kernels that are made of it.

Nothing of ``tcl.tuner.model`` is asked: the statements of a kernel's first block are gone through,
loop by loop and thread by thread, and what they touch is the set of the addresses that they touch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.occupancy import Occupancy, Resources, occupancy
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.walk import operands, values_in, walk

Bytes = npt.NDArray[np.int64]
_FIXED = ir.Kind.UNROLL, ir.Kind.VECTOR


@dataclass(frozen=True)
class Access:
    """Of a statement, inside of loops."""

    ref: ir.TensorRef
    loops: tuple[ir.Loop, ...]
    stores: bool
    fill: str
    """The panel that is filled."""


def accesses(
    statement: ir.Statement, loops: tuple[ir.Loop, ...] = (), fill: str = ""
) -> Iterator[Access]:
    """Of a statement and all inside of it."""
    match statement:
        case ir.For(loop, body):
            yield from accesses(body, (*loops, loop), fill)
        case ir.Pipeline():
            for each in (*statement.fills, statement.body):
                yield from accesses(each, (*loops, statement.loop), fill)
        case ir.Fill(panel, body):
            yield from accesses(body, loops, panel)
        case ir.Block(body):
            for each in body:
                yield from accesses(each, loops, fill)
        case ir.First():
            yield from accesses(statement.then, loops, fill)
            yield from accesses(statement.otherwise, loops, fill)
        case _:
            for value in values_in(statement):
                for part in walk(value):
                    if isinstance(part, ir.Load):
                        yield Access(part.ref, loops, False, fill)
            if isinstance(statement, ir.Store):
                yield Access(statement.ref, loops, True, fill)


def _others(loops: list[ir.Loop]) -> Callable[[ir.Loop], bool]:
    return lambda x: x not in loops


def _only(loop: ir.Loop | None) -> Callable[[ir.Loop], bool]:
    return lambda x: x is loop


@dataclass(frozen=True)
class GpuRecount:
    """A nest in its kernel, on a device. No other nest has loops in the kernel."""

    lowered: ir.Program
    built: ir.Built
    kernel: ir.Kernel
    launch: Launch
    nest: str
    device: GpuProfile

    @property
    def space(self) -> ir.Space:
        return next(s for s in self.kernel.spaces if s.name == self.nest)

    @property
    def point(self) -> ir.Point:
        return self.kernel.points[0]

    @property
    def all(self) -> list[Access]:
        """Each place of memory once, in each nest of loops."""
        found = {(a.ref, a.loops, a.stores): a for a in accesses(self.kernel.body)}
        return list(found.values())

    def on(self, *, panels: bool, fills: bool | None = None, stores: bool = False) -> list[Access]:
        """Those of panels, or of global memory."""
        return [
            a
            for a in self.all
            if self.built.tensor(a.ref.tensor).shared == panels
            and (fills is None or bool(a.fill) == fills)
            and a.stores == stores
        ]

    def layout(self, ref: ir.TensorRef) -> ir.Layout:
        return self.built.tensor(ref.tensor).layout

    def reached(
        self, access: Access, loops: Callable[[ir.Loop], bool], *, beyond: bool = False
    ) -> Bytes:
        """Bytes of an access at all iterations of some of its loops, the others in their first,
        where the element exists, or ``beyond`` that too."""
        dims = {d.name: d for s in self.kernel.spaces for d in s.dims}
        grids = [np.arange(x.fold.count if loops(x) else 1) * x.fold.step for x in access.loops]
        mesh = np.meshgrid(*grids, indexing="ij") if grids else []
        at: dict[str, Bytes] = {}
        for loop, offsets in zip(access.loops, mesh, strict=True):
            flat = offsets.ravel()
            at[loop.fold.name] = flat
            at[loop.fold.dim] = at.get(loop.fold.dim, 0) + flat
        count = math.prod(len(g) for g in grids)
        there = np.ones(count, bool)
        for loop in access.loops:
            there &= at[loop.fold.dim] < dims[loop.fold.dim].extent
        layout, total = self.layout(access.ref), np.zeros(count, np.int64)
        for axis, subscript in enumerate(access.ref.subscripts):
            assert isinstance(subscript, ir.Affine)
            # Blocks count as the first.
            terms = ((at[name] * c) for name, c in subscript.terms if name in at)
            place = sum(terms, np.full(count, subscript.constant)) - layout.origin[axis]
            there &= (place >= 0) & (place < layout.extents[axis])
            total += place * layout.strides[axis]
        found: Bytes = total[there | beyond]
        return found

    def sectors(self, at: Bytes, size: int) -> int:
        return len(np.unique(np.concatenate([at // 32, (at + size - 1) // 32])))

    # What a thread and a block have.

    @property
    def warps(self) -> int:
        return -(-self.launch.threads // 32)

    def stored(self) -> Access:
        return next(a for a in self.on(panels=False, stores=True))

    @property
    def held(self) -> int:
        fixed = (x.fold for x in self.stored().loops if x.kind in _FIXED)
        return math.prod(f.count for f in fixed if not self.space.dim(f.dim).reduction)

    @property
    def unrolled(self) -> int:
        fixed = {x.fold for a in self.all if not a.fill for x in a.loops if x.kind in _FIXED}
        reduced = {d.name for d in self.space.dims if d.reduction}
        return math.prod(f.count for f in fixed if f.dim in reduced)

    @property
    def work(self) -> list[Access]:
        """Reads of what is multiplied, or made of others."""
        return [a for a in self.all if not a.fill and not a.stores]

    def once(self, access: Access) -> int:
        at = self.reached(access, lambda x: x.kind in _FIXED, beyond=True)
        return len(np.unique(at))

    @property
    def registers(self) -> int:
        words = max(1, self.point.type.compute.bits // 32)
        reduces = any(d.reduction for d in self.space.dims)
        read = sum(self.once(a) for a in self.work)
        return min(255, 24 + (self.held * reduces + read) * words)

    @property
    def fullness(self) -> Occupancy:
        return occupancy(Resources("", self.registers, 0, 0, 0, 0), self.launch, self.device)

    @property
    def waves(self) -> float:
        return self.launch.blocks / (self.fullness.blocks * self.device.multiprocessors)

    def inside(self, dim: str, kinds: tuple[ir.Kind, ...]) -> int:
        """Points of a dimension that loops of these kinds go through, those there are."""
        folds = {x.fold for a in self.all if not a.fill for x in a.loops if x.kind in kinds}
        reach = 1 + sum(f.step * (f.count - 1) for f in folds if f.dim == dim)
        return min(reach, self.space.dim(dim).extent)

    def of_block(self, dim: str) -> int:
        return self.inside(dim, (ir.Kind.SERIAL, ir.Kind.THREAD, *_FIXED))

    def block_points(self) -> int:
        return math.prod(self.of_block(d.name) for d in self.space.dims)

    def tile(self) -> int:
        levels = {x.fold for a in self.all if not a.fill for x in a.loops}
        total = 1
        for d in self.space.dims:
            if d.reduction:
                own = [f for f in levels if f.dim == d.name and f.level not in ("tile", "chunk")]
                total *= min(d.extent, 1 + sum(f.step * (f.count - 1) for f in own))
        return total

    def sharing(self) -> int:
        threads = {x.fold for a in self.work for x in a.loops if x.kind is ir.Kind.THREAD}
        return math.prod(f.count for f in threads if self.space.dim(f.dim).reduction)

    # What they touch.

    def touched(self, access: Access) -> int:
        """Bytes of whole sectors, in a block."""
        at = self.reached(access, lambda x: True)
        return 32 * self.sectors(at, self.layout(access.ref).itemsize)

    @property
    def block_bytes(self) -> int:
        every = [*self.on(panels=False), *self.on(panels=False, stores=True)]
        return sum(self.touched(a) for a in every)

    @property
    def least(self) -> int:
        """Of the lowered def, all of whose arrays are gone through, in whole sectors."""
        plain = next(n for n in self.lowered.nests if n.name == self.nest)
        refs = [*(x.ref for x in operands(plain.point)), plain.point.target]
        loops = tuple(ir.Loop(ir.Fold(d.name, "all", 1, d.extent)) for d in plain.dims)
        return sum(self.touched(Access(ref, loops, False, "")) for ref in refs)

    def warp(self, access: Access, *, lanes: bool) -> Bytes:
        kinds = (ir.Kind.THREAD, *((ir.Kind.VECTOR,) if lanes else ()))
        own = next(s for s in self.kernel.spaces if s.name == self.owner(access))
        # The fastest changes last: a warp are the first 32, of whom some may have no points.
        kept, at = 32, []
        for loop in reversed(own.loops):
            count = loop.fold.count if loop.kind in kinds else 1
            if loop.kind is ir.Kind.THREAD:
                count, kept = min(count, max(1, kept)), kept // count
            at.append(replace(loop, fold=replace(loop.fold, count=count)))
        whole = Access(access.ref, tuple(reversed(at)), False, "")
        return self.reached(whole, lambda x: x.kind in kinds)

    def owner(self, access: Access) -> str:
        """The space whose threads do it."""
        return access.fill.replace(".panel", ".fill") if access.fill else self.nest

    def warp_sectors(self, access: Access) -> int:
        return self.sectors(self.warp(access, lanes=True), self.layout(access.ref).itemsize)

    def spread(self, access: Access) -> float:
        size = self.layout(access.ref).itemsize
        different = len(np.unique(self.warp(access, lanes=True)))
        return self.warp_sectors(access) / -(-different * size // 32)

    def busiest(self, access: Access) -> int:
        words = np.unique(self.warp(access, lanes=False) // 4)
        return int(np.bincount(words % 32).max())

    def runs(self, access: Access) -> int:
        serial = {x.fold for a in self.work for x in a.loops if x.kind is ir.Kind.SERIAL}
        return math.prod(f.count for f in serial)

    def copied(self) -> int:
        total = 0
        for a in self.on(panels=True, fills=True, stores=True):
            around = [x for x in a.loops if x.fold.dim in {d.name for d in self.space.dims}]
            times = math.prod(x.fold.count for x in around if x.kind is ir.Kind.SERIAL)
            inner = self.reached(a, _others(around))
            total += times * len(np.unique(inner)) * self.layout(a.ref).itemsize
        return total

    @property
    def requests(self) -> float:
        total = 0.0
        for a in self.on(panels=False, fills=False):
            lane = next((x for x in a.loops if x.kind is ir.Kind.VECTOR), None)
            along = self.reached(a, _only(lane))
            vector = len(np.unique(along)) if lane else 1
            total += self.runs(a) * self.warps * self.once(a) / vector * self.warp_sectors(a)
        return self.launch.blocks * (total + (self.copied() + self.touched(self.stored())) / 32)

    @property
    def lost(self) -> float:
        whole = 1.0
        folds = {x.fold for a in self.all if not a.fill for x in a.loops}
        folds |= {f for along in self.kernel.grid for f in along}
        for d in self.space.dims:
            own = [f for f in folds if f.dim == d.name]
            whole *= (1 + sum(f.step * (f.count - 1) for f in own)) / d.extent
        return whole

    @property
    def seconds(self) -> float:
        d = self.device
        points = math.prod(x.extent for x in self.space.dims) * self.lost
        waits = sum(self.once(a) * self.busiest(a) * self.runs(a) for a in self.on(panels=True))
        rate = d.multiprocessors * 1.6e9
        longest = max(
            2 * points / d.float32_flops,
            self.least / d.memory_bytes_per_second,
            self.launch.blocks * self.block_bytes / (2.5 * d.memory_bytes_per_second),
            self.requests / rate,
            waits * self.warps * self.launch.blocks / rate,
        )
        full = self.waves / max(1, math.ceil(self.waves))
        return longest / max(full * min(1, max(1, self.fullness.warps) / 8), 1e-4) + 2e-6


def _log(value: float) -> float:
    return math.log2(max(value, 1.0))


def _extent(r: GpuRecount, *, reduced: bool) -> int:
    return math.prod(d.extent for d in r.space.dims if d.reduction == reduced)


def _divides(r: GpuRecount, size: Callable[[str], int]) -> float:
    return sum(d.extent % size(d.name) == 0 for d in r.space.dims) / len(r.space.dims)


def _lanes(r: GpuRecount) -> int:
    folds = {x.fold for a in r.all if not a.fill for x in a.loops if x.kind is ir.Kind.VECTOR}
    return math.prod(f.count for f in folds)


def _buffers(r: GpuRecount) -> int:
    """Panels follow each other in shared memory."""
    if not r.kernel.panels:
        return 0
    starts = [*(p.offset for p in r.kernel.panels), r.kernel.exchange or r.kernel.shared]
    sizes = (p.size for p in r.kernel.panels)
    return max((b - a) // s for a, b, s in zip(starts, starts[1:], sizes, strict=False))


def _used(r: GpuRecount) -> int:
    """Threads that have points of the nest."""
    threads = {x.fold for a in r.work for x in a.loops if x.kind is ir.Kind.THREAD}
    threads |= {x.fold for x in r.stored().loops if x.kind is ir.Kind.THREAD}
    return math.prod(f.count for f in threads)


GPU_RECOUNTED: dict[str, Callable[[GpuRecount], float]] = {
    "flops": lambda r: _log(cost_of(r.lowered).operations),
    "bytes": lambda r: _log(cost_of(r.lowered).moved),
    "intensity": lambda r: _log(cost_of(r.lowered).operations) - _log(cost_of(r.lowered).moved),
    "results": lambda r: _log(_extent(r, reduced=False)),
    "depth": lambda r: _log(_extent(r, reduced=True)),
    "dims": lambda r: sum(d.extent > 1 for d in r.space.dims),
    "operands": lambda r: len({a.ref for a in r.work}),
    "itemsize": lambda r: r.layout(r.stored().ref).itemsize,
    "reuse": lambda r: _log(math.prod(d.extent for d in r.space.dims)) - _log(r.least),
    "kernels": lambda r: len(r.built.kernels),
    "threads": lambda r: _log(r.launch.threads),
    "sharing": lambda r: _log(r.sharing()),
    "width": lambda r: _log(_lanes(r)),
    "held": lambda r: _log(r.held),
    "unroll": lambda r: _log(r.unrolled),
    "registers": lambda r: r.registers,
    "shared": lambda r: _log(r.launch.shared),
    "staged": lambda r: len(r.kernel.panels),
    "buffers": _buffers,
    "tile": lambda r: _log(r.tile()),
    "block_points": lambda r: _log(r.block_points()),
    "cores": lambda r: False,
    "joined": lambda r: len(r.kernel.points) > 1,
    "blocks": lambda r: _log(r.launch.blocks),
    "resident": lambda r: r.fullness.blocks,
    "occupancy": lambda r: r.fullness.share,
    "waves": lambda r: _log(r.waves),
    "idle": lambda r: 1 - r.waves / max(1, math.ceil(r.waves)),
    "lost": lambda r: _log(r.lost),
    "lost_threads": lambda r: 1 - _used(r) / r.launch.threads,
    "block_divides": lambda r: _divides(r, r.of_block),
    "step_divides": lambda r: _divides(r, lambda d: r.inside(d, (ir.Kind.THREAD, *_FIXED))),
    "read_spread": lambda r: _log(max(r.spread(a) for a in r.on(panels=False))),
    "write_spread": lambda r: _log(r.spread(r.stored())),
    "conflicts": lambda r: max((r.busiest(a) for a in r.on(panels=True)), default=1),
    "block_bytes": lambda r: _log(r.block_bytes),
    "block_reuse": lambda r: _log(r.block_points()) - _log(r.block_bytes),
    "copied": lambda r: _log(r.copied()),
    "traffic": lambda r: _log(r.launch.blocks * r.block_bytes) - _log(r.least),
    "requests": lambda r: _log(r.requests * 32) - _log(r.least),
    "in_l2": lambda r: _log(r.least) - _log(r.device.l2_bytes),
    "seconds": lambda r: math.log2(1e6 * r.seconds),
    "multiprocessors": lambda r: r.device.multiprocessors,
    "warps": lambda r: r.device.threads_per_multiprocessor // 32,
    "shared_memory": lambda r: _log(r.device.shared_per_multiprocessor),
    "l2": lambda r: _log(r.device.l2_bytes),
    "bandwidth": lambda r: _log(r.device.memory_bytes_per_second),
    "float32": lambda r: _log(r.device.float32_flops),
    "tensor": lambda r: _log(r.device.tensor_flops),
}
