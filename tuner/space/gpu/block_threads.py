"""How the threads of a GPU's block divide the points of a nest, as knobs and what these come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tcl.codegen.loopir import ir
from tcl.codegen.passes.gpu.mma_shape import mma_depth
from tcl.tuner.space.gpu.dims import DimKnobs, number
from tcl.tuner.space.gpu.encode import longest
from tcl.tuner.space.knobs import Knob, Value

_MOST_RESULTS = 128
"""Of a thread."""
_WRITTEN_OUT = 16
"""Points of reductions in a thread's code."""
_REGISTERS = 1 << 16
"""Of a multiprocessor."""
_OF_WARP = (8, 4)
"""Threads of tensor cores along rows and columns, at least."""
_KEPT = 1 << 12
"""Divisions that are remembered."""


@dataclass(frozen=True, slots=True)
class Division:
    """What each dimension of a nest, by its position, is divided into.

    Threads, times what each of them holds, times lanes are a *unit*: the points that the threads of
    a block have at once.
    """

    mma: tuple[int, ...]
    """The dimensions that tensor cores multiply along."""
    lanes: Mapping[int, int]
    threads: Mapping[int, int]
    held: Mapping[int, int]
    """Points, or vectors, of a thread."""
    parts: int
    """Into how many the longest reduction is split."""
    extents: Mapping[int, int]
    """Points of a dimension, or of a part of it."""

    def points(self, each: DimKnobs) -> int:
        """Points of a dimension that a thread has."""
        return self.lanes[each.position] * self.held[each.position]

    def unit(self, each: DimKnobs) -> int:
        """Points of a dimension that all threads have."""
        return self.threads[each.position] * self.points(each)


@dataclass(frozen=True)
class Divider:
    """The knobs that divide, and what their values come to: choices that leave threads or
    registers without points are lowered until they do not."""

    nest: ir.Nest
    dims: tuple[DimKnobs, ...]
    """Of the dimensions with more than one point."""
    in_order: frozenset[str]
    """Dimensions along which something lies in memory in order."""
    block: Knob
    """Threads of a block at most: dimensions along which memory lies in order have theirs first."""
    vector: tuple[Knob, ...]
    """Dimension and lanes; empty when no dimension has neighbours in memory."""
    split: tuple[Knob, ...]
    """Into how many parts the longest reduction is split; empty if it is too short."""
    cores: tuple[int, ...]
    """The dimensions that tensor cores can multiply along; empty if they cannot."""
    use_cores: tuple[Knob, ...]
    """Whether they do."""
    _known: dict[tuple[Value, ...], Division] = field(default_factory=dict, compare=False)

    def __call__(self, values: Mapping[str, Value]) -> Division:
        """What the values of the knobs come to."""
        key = tuple([values[name] for name in self._names])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[key] = self._divided(values)
        return found

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The knobs that are a choice. They are all read every time: a space notes what its
        constraints look at."""
        of_dims = (k for each in self.dims for k in (each.threads, each.register))
        knobs = (*of_dims, self.block, *self.vector, *self.split, *self.use_cores)
        return tuple(k.name for k in knobs if len(k.choices) > 1)

    def _divided(self, values: Mapping[str, Value]) -> Division:
        parts = int(values[self.split[0].name]) if self.split else 1
        extents = {k.position: k.dim.extent for k in self.dims}
        if parts > 1:
            extents[longest(self.nest)] = -(-extents[longest(self.nest)] // parts)
        mma = self.cores if self.use_cores and values[self.use_cores[0].name] else ()
        if mma:
            return self._of_cores(values, mma, parts, extents)
        lanes = dict.fromkeys(extents, 1)
        if self.vector:
            target, width = (int(values[k.name]) for k in self.vector)
            lanes[target] = width
        threads = self._threads(values, lanes, extents)
        held = self._held(values, lanes, threads, extents)
        return Division((), lanes, threads, held, parts, extents)

    def _of_cores(
        self,
        values: Mapping[str, Value],
        mma: tuple[int, ...],
        parts: int,
        extents: Mapping[int, int],
    ) -> Division:
        """They have so many threads along rows and columns at least, and none along others; they
        fix what is held along the reduction, and hold at least two along rows."""
        rows, columns, reduction = mma
        lanes, threads, held = (dict.fromkeys(extents, 1) for _ in range(3))
        lanes[columns] = 2
        for each in self.dims:
            at = each.position
            if at in (rows, columns):
                threads[at] = max(number(values, each.threads), _OF_WARP[mma.index(at)])
                held[at] = max(number(values, each.register), 2 if at == rows else 1)
        held[reduction] = mma_depth(self.nest.point.value)
        return Division(mma, lanes, threads, held, parts, extents)

    def _threads(
        self, values: Mapping[str, Value], lanes: Mapping[int, int], extents: Mapping[int, int]
    ) -> dict[int, int]:
        """No more than there are points for."""
        room, found = number(values, self.block), {}
        for each in sorted(self.dims, key=lambda k: k.dim.name not in self.in_order):
            at = each.position
            fitting = _fitting(values, each, each.threads, lanes[at], extents[at])
            found[at] = min(room, fitting)
            room //= found[at]
        return found

    def _held(
        self,
        values: Mapping[str, Value],
        lanes: Mapping[int, int],
        threads: Mapping[int, int],
        extents: Mapping[int, int],
    ) -> dict[int, int]:
        """No more than there are points for, and than threads have registers for."""
        found: dict[int, int] = {}

        def hold(dims: Sequence[DimKnobs], room: int) -> None:
            for each in dims:
                at = each.position
                room = max(1, room // lanes[at])
                most, along = max(room, each.default_held), lanes[at] * threads[at]
                found[at] = _fitting(values, each, each.register, along, extents[at], most)
                room = max(1, room // found[at])

        hold([k for k in self.dims if k.dim.reduction], _WRITTEN_OUT)
        hold([k for k in self.dims if not k.dim.reduction], self._results_of_thread(values))
        return found

    def _results_of_thread(self, values: Mapping[str, Value]) -> int:
        """Results that there may be registers for: half of all, for so many threads."""
        threads = number(values, self.block)
        words = max(1, self.nest.point.type.compute.bits // 32)
        return max(1, min(_MOST_RESULTS, _REGISTERS // 2 // threads) // words)


def _fitting(
    values: Mapping[str, Value],
    each: DimKnobs,
    knob: Knob,
    of: int,
    extent: int,
    room: int = 1 << 30,
) -> int:
    """The value of a knob, or the next lower one with which ``of`` so many points each are less
    than twice as many as there are, and which leaves no more than ``room``."""
    size = min(room, number(values, knob))
    if size == 1:
        return 1
    most = max(2 * extent - 1, each.default_unit)
    return max((c for c in map(int, knob.choices) if c <= min(size, most // of)), default=1)
