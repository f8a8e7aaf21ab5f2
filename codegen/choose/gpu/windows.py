"""Options for sums of products of which one factor moves as a window: convolutions.

A thread has a vector of neighbouring results in a few rows, for several of what the window is
multiplied with. So a row of the window is read once for all of its points, and for all of these.
The boxes of both operands are in shared memory, and are filled in parts: the next one is on its way
while one is multiplied. Read where they are, factors would be waited for, and each read hands over
what all threads of a warp get, although it is the same for many of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, power_below
from tcl.codegen.counters.prediction import SCHEDULERS
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands, walk
from tcl.common.dataclass import dataclass

_WHOLE = 32
"""Points of a window, at most, that are written out."""
_VECTOR = 4
"""Results that are neighbours in a thread."""
_SHORT = 8
"""Of rows that are shorter, a thread has all."""
_HELD = ((8, 2), (8, 1), (4, 2), (4, 1), (2, 2), (2, 1), (1, 2), (1, 1))
"""Factors that a thread multiplies a window with, and rows of results."""
_THREADS = (128, 256, 64)
"""Of a block, at most."""
_MOST_HELD = 64
_PARTS = 16 << 10
"""Bytes of a box that is filled at once, at most."""
_FILLS = 4
"""Parts of a box, where there are as many: the next ones are filled meanwhile."""
_DEEP, _GUARDED = 4, 2
"""Points of the other reductions that are written out, at most; the second where a product has a
condition: compilers keep what many of these ask for in registers, until threads have none left."""
_READING = 0.7
"""The time of reads of shared memory over that of products, at most, where others are left:
conflicts and fills come on top."""
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

    @staticmethod
    def of(shape: Shape, pair: tuple[ir.Load, ir.Load]) -> Window | None:
        """That of a nest, if it has one."""
        for load, factor in (pair, pair[::-1]):
            moved, points = list[int](), list[int]()
            for s in load.ref.subscripts:
                assert isinstance(s, ir.Affine)
                here = [k for k in range(len(shape.nest.dims)) if s.coefficient(_name(shape, k))]
                results = [k for k in here if k in shape.results and shape.extent(k) > 1]
                reductions = [k for k in here if k in shape.reductions and shape.extent(k) > 1]
                if len(results) == 1 and reductions:
                    moved += results
                    points += reductions
            if moved and not any(shape.moves(factor, k) for k in moved):
                return Window(shape, load, factor, tuple(moved), tuple(points))
        return None

    @property
    def guarded(self) -> bool:
        """Whether products have a condition."""
        return any(isinstance(v, ir.Select) for v in walk(self.shape.nest.point.value))

    def drafts(self, lane: int | None, profile: GpuProfile) -> list[OptionsDraft]:
        """The choices that are worth counting."""
        if lane not in self.moved or math.prod(map(self.shape.extent, self.points)) > _WHOLE:
            return []
        found = [
            (self._reading(made) > _READING, self._work(made, profile), k, made)
            for k, made in enumerate(self._all(lane, profile))
        ]
        return [made for *_, made in sorted(found, key=lambda x: x[:3])[:_TRIED]]

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
        for factors, rows in _HELD:
            for most in _THREADS:
                made = self._draft(lane, (wide, factors), (tall, rows), many, most, profile)
                if made is not None:
                    yield made

    def _draft(
        self,
        lane: int,
        wide: tuple[int | None, int],
        tall: tuple[int | None, int],
        many: int | None,
        most: int,
        profile: GpuProfile,
    ) -> OptionsDraft | None:
        """At most so many threads. None where a thread would have fewer results than asked for, or
        more than there is room for."""
        shape = self.shape
        made = OptionsDraft.empty(len(shape.nest.dims))
        made.chunk = dict.fromkeys(shape.results, 1)
        extent = shape.extent(lane)
        width = extent if extent < _SHORT else _VECTOR
        if width == _VECTOR:
            made.lanes = (lane, width)
        else:
            made.register[lane] = width
        left = most
        left //= _spread(made, lane, -(-extent // width), min(16, left), width)
        for k, held in (wide, tall):
            if k is None:
                if held > 1:
                    return None
                continue
            if held > shape.extent(k) or held * width > _MOST_HELD:
                return None
            made.register[k] = held
        if math.prod(made.register.values()) * max(1, made.lanes[1]) > _MOST_HELD:
            return None
        for k, held in (wide, tall):
            if k is not None:
                left //= _spread(made, k, -(-shape.extent(k) // held), left, held)
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
        for s in self.load.ref.subscripts:
            assert isinstance(s, ir.Affine)
            reach = 1
            for k in range(len(self.shape.nest.dims)):
                count = made.chunk.get(k) or inside.get(k) or self.shape.extent(k)
                reach += abs(s.coefficient(_name(self.shape, k))) * (count - 1)
            total *= reach
        return total

    def _held(self, made: OptionsDraft) -> dict[int, int]:
        """Results of a thread along each dimension."""
        held = {k: made.register.get(k, 1) for k in self.shape.results}
        held[made.lanes[0]] = held.get(made.lanes[0], 1) * made.lanes[1]
        return held

    def _reading(self, made: OptionsDraft) -> float:
        """The time of a thread's reads of shared memory over that of its products, without
        conflicts: a wavefront for a word of the window, or for two of the factors, which are the
        same for neighbouring threads; an issue of the four schedulers for four products."""
        held, points = self._held(made), math.prod(map(self.shape.extent, self.points))
        factors = points * math.prod(held[k] for k in held if self.shape.moves(self.factor, k))
        window = self._box(replace(made, chunk=held), dict.fromkeys(self._rest, 1)) / self._size
        return (factors / 2 + window) / (math.prod(held.values()) * points / SCHEDULERS)

    def _work(self, made: OptionsDraft, profile: GpuProfile) -> float:
        """What a draft takes, about: products of threads that have none as well, and reads."""
        shape = self.shape
        results = math.prod(map(shape.extent, shape.results))
        blocks = math.prod(-(-shape.extent(k) // made.chunk[k]) for k in shape.results)
        threads = math.prod(made.threads.values())
        held = self._held(made)
        each = math.prod(held.values())
        count = profile.multiprocessors
        whole = -(-blocks // count) * count  # the one with the most blocks ends last
        done = whole * -(-threads // 32) * 32 * each / max(1, results)
        points = math.prod(map(shape.extent, self.points))
        window = math.prod(held[k] for k in self.moved) * points / max(1, each * points)
        factor = math.prod(n for k, n in held.items() if shape.moves(self.factor, k)) / each
        return done * (1 + 0.6 * window + 0.6 * factor)


def _spread(made: OptionsDraft, k: int, count: int, most: int, held: int) -> int:
    """Threads for so many parts of a dimension, in as few and as equal steps as can be; what is
    left goes to blocks."""
    steps = -(-count // max(1, most))
    threads = -(-count // steps)
    made.threads[k] = threads
    made.chunk[k] = threads * held
    return max(1, threads)


def _name(shape: Shape, k: int) -> str:
    return shape.nest.dims[k].name
