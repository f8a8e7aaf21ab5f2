"""How the threads of a GPU's block divide the points of a nest, as knobs and what these come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tcl.codegen.common.warps import WARPGROUP_DEPTH
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.passes.gpu.mma_shape import Sizes, mma_depth, why_no_blocks_of_warpgroups
from tcl.tuner.space.gpu.encode import longest

_REGISTER = (1, 2, 4, 8, 16)
_STEPS = (0, 1, 2, 4, 8, 16)
_TILE_STEPS = (0, 1, 2, 4, 8, 16, 32)
_SMALL = 8
"""Dimensions of so few points may be written out as a whole, and are not divided further."""


@dataclass(frozen=True, slots=True)
class DimKnobs:
    """Threads, points that each of them holds, and steps.

    Threads, times what each of them holds, times lanes are a *unit* of points. The chunk of a
    result, or the tile of a reduction, is so many units as there are steps, and so a multiple of
    them whatever is chosen. 0 steps: the dimension is whole.
    """

    position: int
    dim: ir.Dim
    threads: Knob
    register: Knob
    steps: Knob
    default_unit: int
    default_held: int

    @staticmethod
    def from_dim(
        position: int, dim: ir.Dim, most: int, own: Mapping[str, Value], lanes: int
    ) -> DimKnobs:
        """The knobs of a dimension that has up to ``most`` threads; ``own`` are their defaults,
        with so many ``lanes``."""
        extent, name = dim.extent, dim.name
        powers = [1 << p for p in range((extent - 1).bit_length() + 1)]
        register = [r for r in _REGISTER if r in powers] + [extent] * (extent <= _SMALL)
        steps = _TILE_STEPS if dim.reduction else _STEPS
        few = [s for s in steps if s <= (1 if extent <= _SMALL else extent)]
        return DimKnobs(
            position,
            dim,
            _knob(f"{name}.threads", [t for t in powers if t <= most], own),
            _knob(f"{name}.register", register, own),
            _knob(f"{name}.steps", few, own),
            lanes * int(own[f"{name}.threads"]) * int(own[f"{name}.register"]),
            int(own[f"{name}.register"]),
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return tuple(k for k in (self.threads, self.register, self.steps) if len(k.choices) > 1)


def _knob(name: str, choices: list[int], own: Mapping[str, Value]) -> Knob:
    default = int(own[name])
    return Knob(name, tuple(sorted({*choices, default})), default, ordered=True)


def value_of(values: Mapping[str, Value], knob: Knob) -> int:
    """The value of a knob, which is not looked at where there is only one."""
    return int(knob.default if len(knob.choices) == 1 else values[knob.name])


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
    """What each dimension of a nest is divided into.

    Threads, times what each of them holds, times lanes are a *unit*: the points that the threads of
    a block have at once.
    """

    mma: tuple[int, ...]
    """The dimensions that tensor cores multiply along."""
    sizes: Sizes
    """Of each dimension of the nest."""
    parts: int
    """Into how many the longest reduction is split."""
    extents: Mapping[str, int]
    """Points of a dimension, or of a part of it."""

    @property
    def block_threads(self) -> int:
        return math.prod(count for _, count, _ in self.sizes.values())

    def unit(self, dim: str) -> int:
        """Points of a dimension that all threads have."""
        return math.prod(self.sizes[dim])


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
            found = self._known[key] = self._divide(values)
        return found

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The knobs that are a choice. They are all read every time: a space notes what its
        constraints look at."""
        of_dims = (k for each in self.dims for k in (each.threads, each.register))
        knobs = (*of_dims, self.block, *self.vector, *self.split, *self.use_cores)
        return tuple(k.name for k in knobs if len(k.choices) > 1)

    def parts(self, values: Mapping[str, Value]) -> int:
        """Into how many the longest reduction is split."""
        return int(values[self.split[0].name]) if self.split else 1

    def on_cores(self, values: Mapping[str, Value]) -> bool:
        """Whether tensor cores multiply."""
        return bool(self.use_cores and values[self.use_cores[0].name])

    def _divide(self, values: Mapping[str, Value]) -> Division:
        parts = self.parts(values)
        extents = {d.name: d.extent for d in self.nest.dims}
        if parts > 1:
            split = self.nest.dims[longest(self.nest)].name
            extents[split] = -(-extents[split] // parts)
        sizes = {d.name: (1, 1, 1) for d in self.nest.dims}
        if self.on_cores(values):
            return Division(self.cores, sizes | self._of_cores(values), parts, extents)
        lanes = dict.fromkeys(extents, 1)
        if self.vector:
            target, width = (int(values[k.name]) for k in self.vector)
            lanes[self.nest.dims[target].name] = width
        threads = self._threads(values, lanes, extents)
        held = self._held(values, lanes, threads, extents)
        sizes |= {name: (lanes[name], threads[name], held[name]) for name in threads}
        return Division((), sizes, parts, extents)

    def _of_cores(self, values: Mapping[str, Value]) -> dict[str, tuple[int, int, int]]:
        """They have so many threads along rows and columns at least, and none along others; they
        fix what is held along the reduction, and hold at least two along rows. Where the default
        is by warpgroups, so is whatever can be."""
        rows, columns, reduction = self.cores
        found, depth = dict[str, tuple[int, int, int]](), mma_depth(self.nest.point.value)
        for each in self.dims:
            threads, held = value_of(values, each.threads), value_of(values, each.register)
            if each.position == rows:
                found[each.dim.name] = 1, max(threads, _OF_WARP[0]), max(held, 2)
            elif each.position == columns:
                found[each.dim.name] = 2, max(threads, _OF_WARP[1]), held
            elif each.position == reduction and each.register.default == WARPGROUP_DEPTH:
                depth = WARPGROUP_DEPTH
        dims = self.nest.dims
        sides = (found.get(dims[k].name, (1, 1, 1)) for k in (rows, columns))
        if depth == WARPGROUP_DEPTH and why_no_blocks_of_warpgroups(*sides):
            depth = mma_depth(self.nest.point.value)
        return found | {dims[reduction].name: (1, 1, depth)}

    def _threads(
        self, values: Mapping[str, Value], lanes: Mapping[str, int], extents: Mapping[str, int]
    ) -> dict[str, int]:
        """No more than there are points for."""
        room, found = value_of(values, self.block), {}
        for each in sorted(self.dims, key=lambda k: k.dim.name not in self.in_order):
            name = each.dim.name
            fitting = _fitting(values, each, each.threads, lanes[name], extents[name])
            found[name] = min(room, fitting)
            room //= found[name]
        return found

    def _held(
        self,
        values: Mapping[str, Value],
        lanes: Mapping[str, int],
        threads: Mapping[str, int],
        extents: Mapping[str, int],
    ) -> dict[str, int]:
        """No more than there are points for, and than threads have registers for."""
        found: dict[str, int] = {}

        def hold(dims: Sequence[DimKnobs], room: int) -> None:
            for each in dims:
                name = each.dim.name
                room = max(1, room // lanes[name])
                most, along = max(room, each.default_held), lanes[name] * threads[name]
                found[name] = _fitting(values, each, each.register, along, extents[name], most)
                room = max(1, room // found[name])

        hold([k for k in self.dims if k.dim.reduction], _WRITTEN_OUT)
        # Half of all registers are for results.
        words = max(1, self.nest.point.type.compute.bits // 32)
        own = _REGISTERS // 2 // value_of(values, self.block)
        results = max(1, min(_MOST_RESULTS, own) // words)
        hold([k for k in self.dims if not k.dim.reduction], results)
        return found


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
    size = min(room, value_of(values, knob))
    if size == 1:
        return 1
    most = max(2 * extent - 1, each.default_unit)
    return max((c for c in map(int, knob.choices) if c <= min(size, most // of)), default=1)
