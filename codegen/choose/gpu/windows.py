"""Options for sums of products of which one factor moves as a window: convolutions.

A thread has a vector of neighbouring results in a few rows, for several of what the window is
multiplied with. So a row of the window is read once for all of its points, and for all of these.
The boxes of both operands are in shared memory, and are filled in parts: the next one is on its way
while one is multiplied. Read where they are, factors would be waited for, and each read hands over
what all threads of a warp get, although it is the same for many of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, blocks_of, power_below
from tcl.codegen.counters import prediction
from tcl.codegen.counters.counts import registers_needed
from tcl.codegen.counters.requests import SECTOR
from tcl.codegen.counters.walk import COPY, FILL, TURN
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import fitting, promised
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands, walk
from tcl.common.dataclass import dataclass

_WHOLE = 32
"""Points of a window, at most, that are written out."""
_VECTOR = 4
"""Results that are neighbours in a thread, at most: as many as it stores at once."""
_VECTOR_BYTES = 16
"""That a thread stores at once, at most."""
_IN_ROW = 64
"""Results of a row that a block has, at most."""
_SHORT = 8
"""Of rows that are shorter, a thread has all."""
_FACTORS = (8, 4, 2, 1)
"""Factors that a thread multiplies a window with."""
_ROWS = (1, 2, 3, 4, 5, 6)
"""Rows of results of a thread."""
_THREADS = (128, 256, 64)
"""Of a block, at most."""
_ROUNDED = 1.1
"""The rows of all threads over those that there are, at most."""
_MOST_HELD = 64
_PARTS = 16 << 10
"""Bytes of a box that is filled at once, at most."""
_FILLS = 4
"""Parts of a box, where there are as many: the next ones are filled meanwhile."""
_DEEP, _GUARDED = 4, 2
"""Points of the other reductions that are written out, at most; the second where a product has a
condition: compilers keep what many of these ask for in registers, until threads have none left."""
_TRIED = 3
"""Choices that are worth counting."""


@dataclass(frozen=True, slots=True)
class Window:
    """A nest one of whose two factors moves as a window."""

    shape: Shape
    load: ir.Load
    factor: ir.Load
    moved: tuple[int, ...]
    """The results along which the window moves."""
    points: tuple[int, ...]
    """The reductions over its points."""
    steps: tuple[tuple[tuple[int, int], ...], ...]
    """For each axis of the window's tensor: dimensions that move along it, and how far."""

    @staticmethod
    def of(shape: Shape) -> Window | None:
        """That of a nest, if it has one."""
        for load, factor in (shape.factors, shape.factors[::-1]):
            moved, points = list[int](), list[int]()
            steps = list[tuple[tuple[int, int], ...]]()
            for s in load.ref.subscripts:
                assert isinstance(s, ir.Affine)
                names = [d.name for d in shape.nest.dims]
                here = [k for k, name in enumerate(names) if s.coefficient(name)]
                steps.append(tuple((k, abs(s.coefficient(names[k]))) for k in here))
                results = [k for k in here if k in shape.results and shape.extent(k) > 1]
                reductions = [k for k in here if k in shape.reductions and shape.extent(k) > 1]
                if len(results) == 1 and reductions:
                    moved += results
                    points += reductions
            if moved and not any(shape.moves(factor, k) for k in moved):
                return Window(shape, load, factor, tuple(moved), tuple(points), tuple(steps))
        return None

    @property
    def guarded(self) -> bool:
        """Whether products have a condition."""
        return any(isinstance(v, ir.Select) for v in walk(self.shape.nest.point.value))

    def drafts(self, lane: int | None, profile: GpuProfile) -> list[OptionsDraft]:
        """The choices that are worth counting."""
        if lane not in self.moved or math.prod(map(self.shape.extent, self.points)) > _WHOLE:
            return []
        found = dict[tuple[tuple[int, int], ...], tuple[float, int, OptionsDraft]]()
        for made in self._all(lane, profile):
            key = *sorted(made.threads.items()), *sorted(made.register.items())
            if key not in found:
                found[key] = self._seconds(made, lane, profile), len(found), made
        return [made for *_, made in sorted(found.values(), key=lambda x: x[:2])[:_TRIED]]

    def _all(self, lane: int, profile: GpuProfile) -> Iterator[OptionsDraft]:
        shape = self.shape
        filters = [
            k
            for k in shape.results
            if shape.moves(self.factor, k) and not shape.moves(self.load, k)
        ]
        batch = [
            k
            for k in shape.results
            if k not in (*filters, *self.moved) and not shape.moves(self.factor, k)
        ]
        wide = max(filters, key=shape.extent, default=None)
        tall = max((k for k in self.moved if k != lane), key=shape.extent, default=None)
        many = max(batch, key=shape.extent, default=None)
        whole = 1 if tall is None else shape.extent(tall)
        several = [n for n in _ROWS if -(-whole // n) * n <= _ROUNDED * whole]
        extent = shape.extent(lane)
        stored = min(_VECTOR, self._aligned(lane))
        widths = (extent,) if extent < _SHORT else (stored,) if stored > 1 else (_VECTOR, 1)
        for width, factors, rows, most in itertools.product(widths, _FACTORS, several, _THREADS):
            held = (wide, factors), (tall, rows)
            for order in (held, held[::-1]):
                made = self._draft((lane, width), order, many, most, profile)
                if made is not None:
                    yield made

    def _draft(
        self,
        lanes: tuple[int, int],
        held: Sequence[tuple[int | None, int]],
        many: int | None,
        most: int,
        profile: GpuProfile,
    ) -> OptionsDraft | None:
        """At most so many threads, first those along what is ``held`` first. None where a thread
        would have fewer results than asked for, or more than there is room for."""
        shape = self.shape
        made = OptionsDraft.empty(len(shape.nest.dims))
        made.chunk = dict.fromkeys(shape.results, 1)
        lane, width = lanes
        extent = shape.extent(lane)
        if extent < _SHORT:
            made.register[lane] = width
        elif width > 1:
            made.lanes = lanes
        left = most
        left //= _spread(made, lane, -(-extent // width), min(_IN_ROW // width, left), width)
        for k, own in held:
            if own > (1 if k is None else shape.extent(k)):
                return None
            if k is not None:
                made.register[k] = own
        if math.prod(made.register.values()) * max(1, made.lanes[1]) > _MOST_HELD:
            return None
        for k, own in held:
            if k is not None:
                left //= _spread(made, k, -(-shape.extent(k) // own), left, own)
        if many is not None and left > 1:
            _spread(made, many, shape.extent(many), left, 1)
        return made if self._reduced(made, profile) else None

    def _reduced(self, made: OptionsDraft, profile: GpuProfile) -> bool:
        """Gives a draft what it does with the reductions, and its panel."""
        shape = self.shape
        for k in self.points:
            made.register[k] = shape.extent(k)
        deep = max(self._rest, key=shape.extent, default=None)
        if any(shape.extent(k) > 1 for k in self._rest if k != deep):
            return False
        level = 1
        if deep is not None:
            extent = shape.extent(deep)
            most = _GUARDED if self.guarded else _DEEP
            own = made.register[deep] = next(
                n for n in (most, 2, 1) if extent % n == 0 and (n * _FILLS <= extent or n == 1)
            )
            each = self._box(made, {deep: 1})
            size = power_below(max(own, min(_PARTS // max(1, each), extent // _FILLS)))
            if size < extent:
                made.tile[deep] = max(own, size)
                level = 2
                made.buffers = _FILLS if profile.async_copies else 2
        made.stage = tuple(
            level if x in (self.load, self.factor) else -1 for x in operands(shape.nest.point)
        )
        return True

    @property
    def _rest(self) -> list[int]:
        """The reductions that no window moves along."""
        return [k for k in self.shape.reductions if k not in self.points]

    @property
    def _size(self) -> int:
        """Bytes of an element."""
        return self.shape.program.tensor(self.load.ref.tensor).layout.itemsize

    def _box(self, made: OptionsDraft, inside: dict[int, int]) -> int:
        """Bytes of the window's box, with so many points of some reductions."""
        total = self._size
        for steps in self.steps:
            reach = 1
            for k, step in steps:
                reach += step * ((made.chunk.get(k) or inside.get(k) or self.shape.extent(k)) - 1)
            total *= reach
        return total

    def _held(self, made: OptionsDraft) -> dict[int, int]:
        """Results of a thread along each dimension."""
        held = {k: made.register.get(k, 1) for k in self.shape.results}
        if made.lanes[1] > 1:
            held[made.lanes[0]] *= made.lanes[1]
        return held

    def _seconds(self, made: OptionsDraft, lane: int, profile: GpuProfile) -> float:
        """What a draft takes, about: products, those of threads that have none as well, what is
        issued beside them, wavefronts of shared memory and what is read of the second cache. A
        wavefront hands over a word of the window, or two of the factors, which are the same for
        neighbouring threads."""
        shape, each = self.shape, self._held(made)
        points = math.prod(map(shape.extent, self.points))
        results = math.prod(each.values())
        factors = points * math.prod(n for k, n in each.items() if shape.moves(self.factor, k))
        window = self._box(replace(made, chunk=each), dict.fromkeys(self._rest, 1)) / self._size
        threads = math.prod(made.threads.values())
        warps = -(-threads // WARP)
        blocks = blocks_of(shape, made)
        busiest = -(-blocks // profile.multiprocessors)
        box = self._box(made, dict.fromkeys(self._rest, 1))
        deep = max((made.register.get(k, 1) for k in self._rest), default=1)
        filled = box / WARP / self._size
        tile = max(made.tile.values(), default=1)
        issued = prediction.fma_cycles(profile) * results * points + (factors + window) / 4
        issued += filled / warps * (1 + COPY) + (TURN + 2 * FILL) / tile
        shared = made.buffers * tile * box
        told = promised(threads, blocks, shared, profile)
        read = deep * (factors + window)
        registers, _ = registers_needed(results, read, threads, told, profile)
        fit = fitting(threads, registers, shared, profile).blocks
        there = max(1, min(fit, busiest)) * warps
        pipes = (
            issued / prediction.SCHEDULERS * warps / prediction.scheduled(there),
            ((factors / 2 + window) * warps + filled) / prediction.hidden(there),
            box / prediction.L2_BYTES / prediction.hidden(there),
        )
        if not fit:
            return math.inf
        sectors = results * threads * self._sectors(lane, each[lane])
        written = sectors * SECTOR / prediction.WRITTEN_BYTES
        work = max(pipes) * math.prod(map(shape.extent, self._rest))
        return prediction.in_turn(busiest * work, busiest * written, busiest, min(fit, busiest))

    def _sectors(self, lane: int, width: int) -> float:
        """Sectors that are written for each result, where a thread has so many neighbours: each is
        written once for every vector of it that a thread stores."""
        return min(1.0, width * self._stored / SECTOR) / min(width, self._aligned(lane))

    @property
    def _stored(self) -> int:
        """Bytes of a result."""
        return self.shape.program.tensor(self.shape.nest.point.target.tensor).layout.itemsize

    def _aligned(self, lane: int) -> int:
        """Neighbours that lie so in all rows that a thread can store them at once."""
        shape, target = self.shape, self.shape.nest.point.target
        rows = (shape.stride(target, k) for k in shape.results if k != lane and shape.extent(k) > 1)
        return math.gcd(_VECTOR_BYTES // self._stored, *rows)


def _spread(made: OptionsDraft, k: int, count: int, most: int, held: int) -> int:
    """Threads for so many parts of a dimension, in as few and as equal steps as can be; what is
    left goes to blocks."""
    steps = -(-count // max(1, most))
    threads = -(-count // steps)
    made.threads[k] = threads
    made.chunk[k] = threads * held
    return max(1, threads)
