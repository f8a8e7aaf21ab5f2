"""Features of a candidate, counted again from the loops that the passes have made of it.

Nothing of ``tcl.tuner.model`` is asked: loops are gone through turn by turn, and what they touch is
the set of the addresses that they touch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tcl.codegen.choose.cpu.access_costs import OperandAccess, access_of
from tcl.codegen.choose.cpu.operation_costs import arithmetic_cycles
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.cpu.levels import Levels
from tcl.codegen.passes.cpu.stage import levels_of

Loops = Sequence[ir.Loop]
_AT_ONCE = (ir.Kind.UNROLL, ir.Kind.VECTOR, ir.Kind.DOT, ir.Kind.MMA)


def turns(points: int, folds: Sequence[ir.Fold]) -> int:
    """Of all these loops over one dimension, gone through one by one."""
    if not folds:
        return 1
    first, *rest = folds
    return sum(turns(min(first.step, points - at), rest) for at in range(0, points, first.step))


@dataclass(frozen=True)
class Recount:
    """A nest with all of its loops, on a device."""

    lowered: ir.Program
    program: ir.Program
    nest: ir.Nest
    device: CpuProfile

    def loads(self) -> list[ir.Load]:
        plain = next(n for n in self.lowered.nests if n.name == self.nest.name)
        return list(operands(plain.point))

    def accesses(self) -> list[OperandAccess]:
        plain = next(n for n in self.lowered.nests if n.name == self.nest.name)
        target = ir.Load(plain.point.target, plain.point.type, total=True)
        return [access_of(self.lowered, plain, x) for x in (*operands(plain.point), target)]

    def refs(self) -> list[ir.TensorRef]:
        return [*(x.ref for x in self.loads()), self.nest.point.target]

    def extent(self, *, reduced: bool) -> int:
        return math.prod(d.extent for d in self.nest.dims if d.reduction == reduced)

    @property
    def lane(self) -> str | None:
        return self.nest.lane.dim if self.nest.lane else None

    @property
    def width(self) -> int:
        return self.nest.lane.count if self.nest.lane else 1

    def unrolled(self, dims: Iterable[str]) -> int:
        wanted = set(dims)
        folds = (x.fold for x in self.nest.loops if x.kind is ir.Kind.UNROLL)
        return math.prod(f.count for f in folds if f.dim in wanted)

    def names(self, *, reduced: bool) -> list[str]:
        return [d.name for d in self.nest.dims if d.reduction == reduced]

    def points(self, loops: Loops) -> dict[str, int]:
        """Of each dimension, inside of these loops at their first turns."""
        found = {}
        for dim in self.nest.dims:
            inner = [x.fold for x in loops if x.fold.dim == dim.name]
            reach = 1 + sum(f.step * (f.count - 1) for f in inner)
            outer = [x.fold.step for x in self.nest.loops if x.fold.dim == dim.name]
            around = [s for s in outer[: len(outer) - len(inner)]]
            found[dim.name] = min([reach, dim.extent, *around])
        return found

    def touched(self, ref: ir.TensorRef, loops: Loops) -> npt.NDArray[np.int64]:
        """The bytes at which elements are that these loops touch."""
        points = self.points(loops)
        found = np.zeros(1, np.int64)
        for name, stride in self.program.tensor(ref.tensor).layout.place(ref).terms:
            steps = np.arange(points[name]) * stride
            found = np.unique(found[:, None] + steps)
        return found

    def lines(self, k: int, loops: Loops) -> int:
        """Bytes of an access, in whole lines of the cache, or in a panel."""
        ref, itemsize = self.refs()[k], self.accesses()[k].itemsize
        found = self.touched(ref, loops)
        if k < len(self.loads()) and self.staged(k) is not None:
            return len(found) * itemsize
        return len(np.unique(found // 64)) * 64

    def staged(self, k: int) -> ir.Staged | None:
        return next((s for s in self.nest.staged if s.source.ref == self.loads()[k].ref), None)

    def inner(self, *levels: str) -> Loops:
        """The loops that are not of these levels."""
        return [x for x in self.nest.loops if x.fold.level not in levels]

    @property
    def registers(self) -> Loops:
        return [x for x in self.nest.loops if x.kind in _AT_ONCE]

    def whole(self, loops: Loops) -> float:
        return float(sum(self.lines(k, loops) for k in range(len(self.refs()))))

    def runs(self, loops: Loops) -> float:
        return self.nest.points / math.prod(self.points(loops).values())

    def behind(self, size: int) -> float:
        """Bytes that come from behind a cache."""
        count = len(self.nest.loops)
        nested = [self.registers, *(self.nest.loops[k:] for k in range(count - 1, -1, -1))]
        nested = [x for x in nested if len(x) >= len(self.registers)]
        fits = max((k for k, x in enumerate(nested) if self.whole(x) <= size), default=0)
        total = 0.0
        for k in range(len(self.refs())):
            kept = self.lines(k, nested[fits])
            same = [x for x in nested[fits:] if self.lines(k, x) <= kept]
            total += min(self.lines(k, x) * self.runs(x) for x in same)
        return total

    # What the analytic model makes of this.

    def steps(self) -> float:
        at_once = [x.fold for x in self.registers]
        return math.prod(
            turns(d.extent, [f for f in self.nest.folds(d.name) if f not in at_once])
            for d in self.nest.dims
        )

    def hardware(self) -> int:
        return math.ceil(self.width / self.device.lanes(self.nest.point.type))

    def arithmetic(self) -> float:
        plain = next(n for n in self.lowered.nests if n.name == self.nest.name)
        once = sum(c * self.unrolled(dims) for dims, c in arithmetic_cycles(plain).items())
        return self.steps() * once * self.hardware()

    def load_cycles(self) -> float:
        total = 0.0
        for k, access in enumerate(self.accesses()[:-1]):
            panel = self.staged(k) is not None
            each = 0.5 * self.hardware() if panel else access.cycles(self.lane, self.width)
            total += self.steps() * each * self.unrolled(access.strides)
        return total

    def held(self) -> float:
        levels = Levels.from_nest(self.nest)
        inside = [*levels.inner, *levels.registers, *levels.dots]
        points = self.points(self.nest.loops[len(self.nest.loops) - len(inside) :])
        return math.prod(points[name] for name in self.names(reduced=True))

    def store_cycles(self) -> float:
        lanes = self.nest.lane
        results = 1
        for name in self.names(reduced=False):
            folds = [f for f in self.nest.folds(name) if f.level not in ("register", "lane")]
            if lanes is None or name != lanes.dim:
                results *= self.nest.dim(name).extent
                continue
            unit = [x for x in self.nest.folds(name) if x.level != "lane"]
            results *= turns(self.nest.dim(name).extent, unit)
            assert folds
        each = self.accesses()[-1].cycles(self.lane, self.width)
        return results * self.extent(reduced=True) / self.held() * 2 * each

    def latency(self) -> float:
        if not self.nest.reduces:
            return 0.0
        names = [n for n in self.names(reduced=True) if n != self.lane]
        return self.steps() * self.unrolled(names) * 4

    def copies(self) -> float:
        total = 0.0
        for k, access in enumerate(self.accesses()[:-1]):
            staged = self.staged(k)
            if staged is None:
                continue
            loops: Loops = self.nest.loops
            if staged.inside is not None:
                at = [x.fold for x in self.nest.loops].index(staged.inside)
                loops = self.nest.loops[at + 1 :]
            each = access.copying(self.lane, self.device.l2_bytes)
            total += len(self.touched(self.refs()[k], loops)) * self.runs(loops) * each
        return total

    def chunks(self) -> int:
        return math.prod(f.count for f in self.nest.chunks)

    def waves(self) -> int:
        return -(-self.chunks() // self.device.threads)

    def cycles(self) -> float:
        sizes = (self.device.l1_bytes, self.device.l2_bytes, self.device.l3_bytes)
        memory = [self.behind(s) / rate for s, rate in zip(sizes, (32, 16, 6), strict=True)]
        moves = self.load_cycles() + self.store_cycles() + self.copies()
        works = [max(self.arithmetic(), self.latency()), moves, *memory]
        alone = max(works) + 0.15 * (sum(works) - max(works))
        return max(alone * self.waves() / self.chunks(), 1.0)

    def inside(self, level: str, dim: str) -> int:
        """Points of a dimension in a piece of a level, chunk, tile or register tile."""
        loops = {
            "chunk": self.inner("chunk"),
            "tile": self.inner("chunk", "tile"),
            "unit": self.registers,
        }[level]
        return self.points(loops)[dim]

    def unit(self, dim: str) -> int:
        """Points of a register tile, those beyond a tile too."""
        folds = (x.fold for x in self.registers if x.fold.dim == dim)
        return math.prod(f.count for f in folds)


def _log(value: float) -> float:
    return math.log2(max(value, 1.0))


def _least(r: Recount) -> float:
    return float(sum(a.elements * a.itemsize for a in r.accesses()))


def _point(r: Recount, cycles: float) -> float:
    return math.log2(max(cycles / r.nest.points, 1e-4))


def _in_order(r: Recount) -> float:
    """Operands that are copied, or whose next lane is the same element or its neighbour."""
    good = 0
    for k, access in enumerate(r.accesses()[:-1]):
        step = access.strides.get(r.lane or "", 0)
        good += r.staged(k) is not None or step in (0, access.itemsize)
    return good / max(1, len(r.loads()))


def _live(r: Recount) -> float:
    at_lanes = r.unrolled([r.lane]) if r.lane else 1
    return (r.unrolled(r.names(reduced=False)) + at_lanes) * r.hardware() + 1


def _lost(r: Recount, level: str) -> float:
    total = 0.0
    for d in r.nest.dims:
        size = r.inside(level, d.name)
        total += math.log2(-(-d.extent // size) * size / d.extent)
    return total


def _lost_lanes(r: Recount) -> float:
    if r.nest.lane is None:
        return 0.0
    dim = r.nest.dim(r.nest.lane.dim)
    vectors = [f for f in r.nest.folds(dim.name) if f.level != "lane"]
    return math.log2(turns(dim.extent, vectors) * r.width / dim.extent)


def _divides(r: Recount, size: Callable[[str], int]) -> float:
    return sum(d.extent % size(d.name) == 0 for d in r.nest.dims) / len(r.nest.dims)


def _panel(r: Recount) -> float:
    loops = r.inner("chunk", "tile")
    found = [
        len(r.touched(r.refs()[k], loops)) * a.itemsize
        for k, a in enumerate(r.accesses()[:-1])
        if r.staged(k) is not None
    ]
    return _log(max(found, default=1))


def _stage_level(r: Recount) -> int:
    return max((levels_of(r.nest).index(s.inside) for s in r.nest.staged), default=-1)


def _innermost(r: Recount) -> bool:
    points = [x.fold.dim for x in r.nest.loops if x not in r.registers]
    return r.nest.dim(points[-1]).reduction


def _turns(r: Recount) -> int:
    """Of the innermost loop."""
    return [x.fold.count for x in r.nest.loops if x not in r.registers][-1]


def _stride(r: Recount) -> int:
    """Bytes from turn to turn of the innermost loop, of the access that moves most."""
    fold = [x.fold for x in r.nest.loops if x not in r.registers][-1]
    return max(abs(a.strides.get(fold.dim, 0)) for a in r.accesses()) * r.unit(fold.dim)


def _outermost(r: Recount) -> bool:
    tiles = [x.fold.dim for x in r.nest.loops if x.fold.level == "tile" and x.fold.count > 1]
    return bool(tiles) and r.nest.dim(tiles[0]).reduction


def _along(r: Recount) -> int:
    return 1 if r.lane is None else r.inside("tile", r.lane)


def _reduced(r: Recount) -> int:
    return math.prod(r.inside("tile", name) for name in r.names(reduced=True))


def _share(r: Recount, loops: Loops, size: int) -> float:
    return _log(r.whole(loops)) - math.log2(size)


def _lane_reduced(r: Recount) -> bool:
    return r.lane is not None and r.nest.dim(r.lane).reduction


def _columns(r: Recount) -> int:
    return 1 if r.lane is None or _lane_reduced(r) else r.unrolled([r.lane])


RECOUNTED: dict[str, Callable[[Recount], float]] = {
    "width": lambda r: _log(r.width),
    "lanes_reduced": _lane_reduced,
    "in_order": _in_order,
    "writes_in_order": lambda r: (
        r.accesses()[-1].strides.get(r.lane or "") == r.accesses()[-1].itemsize
    ),
    "accumulators": lambda r: _log(r.unrolled(r.names(reduced=False))),
    "rows": lambda r: _log(r.unrolled(r.names(reduced=False))) - _log(_columns(r)),
    "unroll": lambda r: _log(r.unrolled(r.names(reduced=True))),
    "registers": lambda r: _live(r) / r.device.vector_registers,
    "tile_points": lambda r: _log(math.prod(r.points(r.inner("chunk", "tile")).values())),
    "tile_lanes": lambda r: _log(_along(r)),
    "tile_reduced": lambda r: _log(_reduced(r)),
    "stride": lambda r: _log(_stride(r)),
    "turns": lambda r: _log(_turns(r)),
    "chunk_points": lambda r: _log(math.prod(r.points(r.inner("chunk")).values())),
    "innermost_reduced": _innermost,
    "outermost_reduced": _outermost,
    "held": lambda r: _log(r.held()),
    "staged": lambda r: len(r.nest.staged),
    "stage_level": _stage_level,
    "panel": _panel,
    "stream": lambda r: r.nest.streamed > 0,
    "peel": lambda r: any(x.alignment is not None for x in r.nest.loops),
    "skip": lambda r: r.nest.compacted is not None,
    "fuse": lambda r: r.nest.joined,
    "prefetched": lambda r: len(r.nest.prefetched),
    "prefetch": lambda r: _log(max((p.ahead for p in r.nest.prefetched), default=1)),
    "dot": lambda r: _log(r.nest.dot_product.count if r.nest.dot_product else 1),
    "mma": lambda r: bool(r.nest.mma),
    "steps": lambda r: _log(r.steps()),
    "tiles": lambda r: _log(
        math.prod(r.points(r.inner("chunk")).values())
        / math.prod(r.points(r.inner("chunk", "tile")).values())
    ),
    "chunks": lambda r: _log(r.chunks()),
    "waves": lambda r: _log(r.waves()),
    "idle": lambda r: 1 - r.chunks() / (r.waves() * r.device.threads),
    "lost_lanes": _lost_lanes,
    "lost_tile": lambda r: _lost(r, "tile"),
    "lost_chunk": lambda r: _lost(r, "chunk"),
    "unit_divides": lambda r: _divides(r, r.unit),
    "tile_divides": lambda r: _divides(r, lambda d: r.inside("tile", d)),
    "chunk_divides": lambda r: _divides(r, lambda d: r.inside("chunk", d)),
    "unit_in_l1": lambda r: _share(r, r.registers, r.device.l1_bytes),
    "tile_in_l1": lambda r: _share(r, r.inner("chunk", "tile"), r.device.l1_bytes),
    "tile_in_l2": lambda r: _share(r, r.inner("chunk", "tile"), r.device.l2_bytes),
    "chunk_in_l2": lambda r: _share(r, r.inner("chunk"), r.device.l2_bytes),
    "nest_in_l3": lambda r: _share(r, r.nest.loops, r.device.l3_bytes),
    "beyond_l1": lambda r: _log(r.behind(r.device.l1_bytes)) - _log(_least(r)),
    "beyond_l2": lambda r: _log(r.behind(r.device.l2_bytes)) - _log(_least(r)),
    "beyond_l3": lambda r: _log(r.behind(r.device.l3_bytes)) - _log(_least(r)),
    "arithmetic_cycles": lambda r: _point(r, r.arithmetic()),
    "loads_cycles": lambda r: _point(r, r.load_cycles()),
    "latency_cycles": lambda r: _point(r, r.latency()),
    "stores_cycles": lambda r: _point(r, r.store_cycles()),
    "copies_cycles": lambda r: _point(r, r.copies()),
    "cycles": lambda r: _point(r, r.cycles()),
}
"""Of what options change, by name of the feature."""
