"""All knobs of one nest on a GPU: threads, registers, chunks and tiles, lanes, orders, panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.cuda.mma_shape import factors, mma_depth
from tcl.codegen.cuda.profile import GpuProfile
from tcl.codegen.options import WIDTHS, NestOptions
from tcl.codegen.passes.fuse import refs
from tcl.tuner.choices import loop_orders
from tcl.tuner.gpu_dims import DimKnobs, number
from tcl.tuner.gpu_said import block_of, longest, said
from tcl.tuner.gpu_stage import PanelKnobs
from tcl.tuner.knobs import Knob, Value
from tcl.tuner.nest_knobs import first_alike

_VECTOR = 16
"""Bytes that a thread moves at once."""
_MOST_RESULTS = 128
"""Of a thread."""
_WRITTEN_OUT = 16
"""Points of reductions in a thread's code."""
_REGISTERS = 1 << 16
"""Of a multiprocessor."""
_BLOCKS = (32, 64, 128, 256, 512, 1024)
_OF_WARP = (8, 4)
"""Threads of tensor cores along rows and columns, at least."""
_THREADS = 64
"""Of a dimension along which nothing lies in order; half as many if it is a reduction."""
_PARTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_LEAST_PART = 64
"""Points of a reduction that are not worth splitting."""


@dataclass(frozen=True, slots=True)
class BlockKnobs:
    """The knobs of one nest: of what a block does, and how threads divide it.

    ``chunks``, where methods take them, are the points per chunk of the results that are divided.
    """

    nest: ir.Nest
    dims: tuple[DimKnobs, ...]
    """Of the dimensions with more than one point."""
    block: Knob
    """Threads of a block at most: dimensions along which memory lies in order have theirs first."""
    vector: tuple[Knob, ...]
    """Dimension and lanes; empty when no dimension has neighbours in memory."""
    orders: tuple[Knob, ...]
    """Of the loops over tiles of reductions, and of the loops over reductions in a thread; empty
    when there is only one reduction."""
    split: tuple[Knob, ...]
    """Into how many parts the longest reduction is split; empty if it is too short."""
    cores: tuple[int, ...]
    """The dimensions that tensor cores can multiply along; empty if they cannot."""
    use_cores: tuple[Knob, ...]
    """Whether they do."""
    panels: PanelKnobs
    in_order: frozenset[str]
    """Dimensions along which something lies in memory in order."""

    @staticmethod
    def of(
        program: ir.Program, nest: ir.Nest, profile: GpuProfile, default: NestOptions
    ) -> BlockKnobs:
        """The knobs of a nest without loops, which can say what ``default`` says."""
        own = said(nest, default)
        in_order, lane = _in_order(program, nest)
        dims = []
        for k, dim in enumerate(nest.dims):
            if dim.extent > 1:
                most = profile.threads_per_block
                if dim.name != lane and (dim.reduction or dim.name not in in_order):
                    most = _THREADS // (2 if dim.reduction else 1)
                at = own[f"{nest.name}.vector"] == k
                lanes = int(own[f"{nest.name}.lanes"]) if at else 1
                dims.append(DimKnobs.of(k, dim, most, own, lanes))
        width = max(1, _VECTOR // max(_itemsize(program, r) for r in refs(nest)))
        vector = _vector(nest, {k.position for k in dims if k.dim.name in in_order}, width, own)
        reductions = sum(k.dim.reduction for k in dims)
        texts = tuple(" ".join(map(str, o)) for o in loop_orders([True] * reductions))
        orders = tuple(
            Knob(name, tuple(dict.fromkeys((*texts, own[name]))), own[name], ordered=False)
            for name in (f"{nest.name}.order", f"{nest.name}.inner_order")
            if len(texts) > 1
        )
        panels, split = PanelKnobs.of(nest, own), _split(nest, own)
        cores = tuple(default.mma or ())
        blocks = tuple(sorted({*_BLOCKS, int(own[f"{nest.name}.block"])}))
        block = Knob(f"{nest.name}.block", blocks, own[f"{nest.name}.block"], ordered=True)
        use = (Knob(f"{nest.name}.mma", (0, 1), 1, ordered=False),) if cores else ()
        return BlockKnobs(
            *(nest, tuple(dims), block, vector, orders, split, cores, use, panels, in_order)
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Those that are a choice."""
        of_dims = tuple(k for each in self.dims for k in each.knobs)
        of_dims += (self.block,) if any(len(k.threads.choices) > 1 for k in self.dims) else ()
        own = of_dims + self.vector + self.orders + self.split + self.use_cores
        return own + self.panels.knobs

    @property
    def results(self) -> tuple[DimKnobs, ...]:
        """Of the dimensions that are not reduced."""
        return tuple(k for k in self.dims if not k.dim.reduction)

    @property
    def reductions(self) -> tuple[DimKnobs, ...]:
        """Of those that are."""
        return tuple(k for k in self.dims if k.dim.reduction)

    def mma(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The dimensions that tensor cores multiply along."""
        return self.cores if self.use_cores and values[self.use_cores[0].name] else ()

    def staged(self, values: Mapping[str, Value]) -> set[int]:
        """The operands that are copied."""
        return set(self.panels.texts(values, self._factors(values)))

    def levels(self, values: Mapping[str, Value], loops: Sequence[str]) -> dict[int, int]:
        """Operand → how many of these loops are outside of its being copied, and one more."""
        return self.panels.levels(values, loops, self._factors(values))

    def lanes(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Lanes of a dimension."""
        if self.mma(values) or not self.vector or each.position not in self.vector[0].choices:
            return 2 if each.position in self.mma(values)[1:2] else 1
        target, lanes = self.vector
        return int(values[lanes.name]) if values[target.name] == each.position else 1

    def threads(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Threads of a dimension: no more than there are points for. Tensor cores have so many
        along rows and columns at least, and none along others."""
        mma = self.mma(values)
        if mma and each.position not in mma[:2]:
            return 1
        count = number(values, each.threads)
        if mma:
            return max(count, _OF_WARP[mma.index(each.position)])
        room = number(values, self.block)
        for other in sorted(self.dims, key=lambda k: k.dim.name not in self.in_order):
            along = self.lanes(values, other)
            count = min(room, self._fitting(values, other, other.threads, along))
            if other is each:
                return count
            room //= count
        raise ValueError(f"{each.dim.name} is another nest's")

    def held(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Points, or vectors, of a dimension that each thread has: no more than there are. Tensor
        cores fix it along the reduction, and at least two along rows."""
        mma = self.mma(values)
        if mma and each.position not in mma:
            return 1
        if mma and each.position == mma[2]:
            return mma_depth(self.nest.point.value)
        if mma:
            return max(number(values, each.register), 2 if each.position == mma[0] else 1)
        room = _WRITTEN_OUT if each.dim.reduction else self._results_of_thread(values)
        for other in self.reductions if each.dim.reduction else self.results:
            lanes = self.lanes(values, other)
            along = lanes * self.threads(values, other)
            room = max(1, room // lanes)
            count = self._fitting(
                values, other, other.register, along, max(room, other.default_held)
            )
            if other is each:
                return count
            room = max(1, room // count)
        raise ValueError(f"{each.dim.name} is another nest's")

    def _results_of_thread(self, values: Mapping[str, Value]) -> int:
        """Results that there may be registers for: half of all, for so many threads."""
        threads = number(values, self.block)
        words = max(1, self.nest.point.type.compute.bits // 32)
        return max(1, min(_MOST_RESULTS, _REGISTERS // 2 // threads) // words)

    def _fitting(
        self, values: Mapping[str, Value], each: DimKnobs, knob: Knob, of: int, room: int = 1 << 30
    ) -> int:
        """The value of a knob, or the next lower one with which ``of`` so many points each are less
        than twice as many as there are, and which leaves no more than ``room``."""
        size = min(room, number(values, knob))
        if size == 1:
            return 1
        most = max(2 * self.extent(values, each) - 1, each.default_unit)
        return max((c for c in map(int, knob.choices) if c <= min(size, most // of)), default=1)

    def unit(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Points of a dimension that the threads hold at once."""
        return self.lanes(values, each) * self.threads(values, each) * self.held(values, each)

    def parts(self, values: Mapping[str, Value]) -> int:
        """Into how many a reduction is split."""
        return int(values[self.split[0].name]) if self.split else 1

    def extent(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Points of a dimension, or of a part of it."""
        if self.split and each.position == longest(self.nest):
            return -(-each.dim.extent // self.parts(values))
        return each.dim.extent

    def size(self, values: Mapping[str, Value], each: DimKnobs) -> int:
        """Points of a chunk or tile of a dimension; 0: all."""
        size = self.unit(values, each) * number(values, each.steps)
        return size if size < self.extent(values, each) else 0

    def chunks(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per chunk of the results that are divided, where the nest's own knobs say it."""
        sizes = {k.dim.name: self.size(values, k) for k in self.results}
        return {name: size for name, size in sizes.items() if size}

    def tiles(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per tile of the reductions that are tiled, in the order of their loops."""
        order = list(range(len(self.reductions)))
        if self.orders:
            order = [int(part) for part in str(values[self.orders[0].name]).split()]
        sizes = {}
        for place in order:
            each = self.reductions[place]
            size = self.size(values, each)
            if size:
                sizes[each.dim.name] = size
        return sizes

    def steps(self, values: Mapping[str, Value], chunks: Mapping[str, int]) -> dict[str, int]:
        """Iterations of the loops over results of a block, of those that there are."""
        counts = {}
        for each in self.results:
            points = chunks.get(each.dim.name, each.dim.extent)
            counts[each.dim.name] = -(-points // self.unit(values, each))
        return {name: count for name, count in counts.items() if count > 1}

    def loops(self, values: Mapping[str, Value], chunks: Mapping[str, int]) -> list[str]:
        """The dimensions of the loops that all threads of a block run together."""
        return [*self.steps(values, chunks), *self.tiles(values)]

    def to_options(self, values: Mapping[str, Value], chunks: Mapping[str, int]) -> NestOptions:
        """What the knobs say."""
        nest, tiles = self.nest, self.tiles(values)
        by_name = {k.dim.name: k for k in self.dims}
        threads, register = [], []
        for dim in nest.dims:
            each = by_name.get(dim.name)
            threads.append(self.threads(values, each) if each else 1)
            register.append(self.held(values, each) if each else 1)
        tile = tuple(tiles.get(d.name, 0) for d in nest.dims)
        chunk = tuple(chunks.get(d.name, 0) for d in nest.dims if not d.reduction)
        parts = [0] * len(nest.dims)
        if self.parts(values) > 1:
            parts[longest(nest)] = self.parts(values)
        orders = [self._order(str(values[k.name])) for k in self.orders] or [(), ()]
        return NestOptions(
            tile=tile if any(tile) else (),
            order=orders[0],
            inner_order=orders[1],
            vectorize=self._vectorize(values),
            register=tuple(register) if max(register, default=1) > 1 else (),
            stage=self.panels.option(values, self.loops(values, chunks), self._factors(values)),
            chunk=chunk if any(chunk) else (),
            fuse=False,
            stream=False,
            prefetch=(),
            threads=tuple(threads) if max(threads, default=1) > 1 else (),
            split=tuple(parts) if any(parts) else (),
            buffers=self.panels.copies(values),
            mma=self.mma(values),
        )

    def from_options(self, options: NestOptions, *, joined: bool) -> dict[str, Value] | None:
        """Knob values; None if the options say something that the knobs cannot."""
        if options.mma not in ((), self.cores):
            return None
        found = said(self.nest, options, joined=joined)
        values = {k.name: found[k.name] for k in self.knobs}
        if self.vector and values[self.vector[1].name] == 1:
            values[self.vector[0].name] = self.vector[0].choices[0]
        if any(values[k.name] not in k.choices for k in self.knobs):
            return None
        for each in self.dims:
            sizes = self.threads(values, each), self.held(values, each)
            if sizes != (found[each.threads.name], found[each.register.name]):
                return None
        return values

    def normal(
        self, values: Mapping[str, Value], chunks: Mapping[str, int], *, joined: bool
    ) -> dict[str, Value]:
        """The values of these knobs that stand for all that mean the same."""
        known = {k.name: values[k.name] for k in self.knobs}
        for each in self.dims:
            given = joined and not each.dim.reduction
            if (given or not self.size(values, each)) and len(each.steps.choices) > 1:
                known[each.steps.name] = 0
            if len(each.threads.choices) > 1:
                known[each.threads.name] = self.threads(values, each)
            if len(each.register.choices) > 1:
                known[each.register.name] = self.held(values, each)
        if self.block.name in known:
            known[self.block.name] = block_of(self.threads(values, k) for k in self.dims)
        if self.vector:
            target, lanes = self._vectorize(values)
            known[self.vector[0].name] = target if lanes > 1 else self.vector[0].choices[0]
            known[self.vector[1].name] = lanes
        loops = self.loops(known, chunks)
        if self.orders:
            names = [k.dim.name for k in self.reductions]
            tiled = [names.index(name) for name in self.tiles(known)]
            inner = [k for k, each in enumerate(self.reductions) if self._looped(known, each)]
            for knob, moved in zip(self.orders, (sorted(tiled), inner), strict=True):
                known[knob.name] = first_alike(knob, known[knob.name], moved)
        known.update(self.panels.normal(known, loops, self._factors(known)))
        return known

    def _looped(self, values: Mapping[str, Value], each: DimKnobs) -> bool:
        """Whether a thread has a loop over a reduction."""
        points = self.size(values, each) or self.extent(values, each)
        return points > self.unit(values, each)

    def _factors(self, values: Mapping[str, Value]) -> set[int]:
        """The operands that tensor cores multiply."""
        found = factors(self.nest.point.value) if self.mma(values) else None
        return {k for k, load in enumerate(self.panels.reads) if found and load in found}

    def _vectorize(self, values: Mapping[str, Value]) -> tuple[int, int]:
        if mma := self.mma(values):
            return mma[1], 2
        if not self.vector:
            return -1, 1
        target, lanes = (int(values[k.name]) for k in self.vector)
        return (target, lanes) if lanes > 1 else (-1, 1)

    def _order(self, text: str) -> tuple[int, ...]:
        """A permutation of all dimensions: the reductions trade places among themselves."""
        order = [int(part) for part in text.split()]
        if order == sorted(order):
            return ()
        permutation = list(range(len(self.nest.dims)))
        places = [k.position for k in self.reductions]
        for slot, which in zip(places, order, strict=True):
            permutation[slot] = places[which]
        return tuple(permutation)


def _vector(
    nest: ir.Nest, targets: set[int], width: int, own: Mapping[str, Value]
) -> tuple[Knob, ...]:
    """Dimension and lanes."""
    count, target = int(own[f"{nest.name}.lanes"]), int(own[f"{nest.name}.vector"])
    lanes = tuple(sorted({w for w in WIDTHS if w <= width} | {count}))
    if count > 1:
        targets = targets | {target}
    if not targets or len(lanes) < 2:
        return ()
    found = tuple(sorted(targets))
    return (
        Knob(f"{nest.name}.vector", found, target if count > 1 else found[0], ordered=False),
        Knob(f"{nest.name}.lanes", lanes, count, ordered=True),
    )


def _split(nest: ir.Nest, own: Mapping[str, Value]) -> tuple[Knob, ...]:
    """Parts of the longest reduction."""
    name = f"{nest.name}.split"
    if name not in own:
        return ()
    extent = nest.dims[longest(nest)].extent
    # So many parts that none of them is left without points.
    able = (p for p in _PARTS if p <= extent // _LEAST_PART and -(-extent // -(-extent // p)) == p)
    choices = tuple(sorted({1, own[name], *able}, key=int))
    return (Knob(name, choices, own[name], ordered=True),) if len(choices) > 1 else ()


def _in_order(program: ir.Program, nest: ir.Nest) -> tuple[frozenset[str], str]:
    """The dimensions along which something lies in memory in order, and the one along which most
    does."""
    bytes_: dict[str, int] = {}
    for ref in refs(nest):
        layout = program.tensor(ref.tensor).layout
        place = layout.place(ref)
        for dim in nest.dims:
            if dim.extent > 1 and abs(place.coefficient(dim.name)) == layout.itemsize:
                size = math.prod(layout.extents) * layout.itemsize
                bytes_[dim.name] = bytes_.get(dim.name, 0) + size
    most = max(reversed([*bytes_]), key=lambda name: bytes_[name], default="")
    return frozenset(bytes_), most


def _itemsize(program: ir.Program, ref: ir.TensorRef) -> int:
    return program.tensor(ref.tensor).layout.itemsize
