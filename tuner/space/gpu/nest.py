"""All knobs of one nest on a GPU: threads, registers, chunks and tiles, lanes, orders, panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import factors
from tcl.codegen.options.kinds import WIDTHS
from tcl.codegen.options.knobs import Knob, Value, first_equivalent, loop_orders
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.gpu.panel import uniform_dims
from tcl.tuner.space.gpu.block_threads import DimKnobs, Divider, value_of
from tcl.tuner.space.gpu.encode import block_of, encode, longest
from tcl.tuner.space.gpu.shared_memory import PanelKnobs

_VECTOR = 16
"""Bytes that a thread moves at once."""
_BLOCKS = (32, 64, 128, 256, 512, 1024)
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

    divided: Divider
    """What the points of the dimensions are divided into."""
    orders: tuple[Knob, ...]
    """Of the loops over tiles of reductions, and of the loops over reductions in a thread; empty
    when there is only one reduction."""
    panels: PanelKnobs
    factors: frozenset[int]
    """The operands that tensor cores multiply, where they can."""

    @staticmethod
    def from_nest(
        program: ir.Program, nest: ir.Nest, profile: GpuProfile, default: NestOptions
    ) -> BlockKnobs:
        """The knobs of a nest without loops, which can encode ``default``."""
        own = encode(nest, default)
        in_order, lane = _in_order(program, nest)
        dims = []
        for k, dim in enumerate(nest.dims):
            if dim.extent > 1:
                most = profile.threads_per_block
                if dim.name != lane and (dim.reduction or dim.name not in in_order):
                    most = _THREADS // (2 if dim.reduction else 1)
                at = own[f"{nest.name}.vector"] == k
                lanes = int(own[f"{nest.name}.lanes"]) if at else 1
                dims.append(DimKnobs.from_dim(k, dim, most, own, lanes))
        sizes = (program.tensor(r.tensor).layout.itemsize for r in refs(nest))
        width = max(1, _VECTOR // max(sizes))
        vector = _vector(nest, {k.position for k in dims if k.dim.name in in_order}, width, own)
        reductions = sum(k.dim.reduction for k in dims)
        texts = tuple(" ".join(map(str, o)) for o in loop_orders([True] * reductions))
        orders = tuple(
            Knob(name, tuple(dict.fromkeys((*texts, own[name]))), own[name], ordered=False)
            for name in (f"{nest.name}.order", f"{nest.name}.inner_order")
            if len(texts) > 1
        )
        cores = tuple(default.mma or ())
        blocks = _BLOCKS if any(len(k.threads.choices) > 1 for k in dims) else ()
        own_block = int(own[f"{nest.name}.block"])
        choices = tuple(sorted({*blocks, own_block}))
        block = Knob(f"{nest.name}.block", choices, own_block, ordered=True)
        use = (Knob(f"{nest.name}.mma", (0, 1), 1, ordered=False),) if cores else ()
        split = _split_knob(nest, own)
        divided = Divider(nest, tuple(dims), in_order, block, vector, split, cores, use)
        panels = PanelKnobs.from_nest(nest, own)
        found = (factors(nest.point.value) if cores else None) or ()
        fed = frozenset(k for k, load in enumerate(panels.reads) if load in found)
        return BlockKnobs(divided, orders, panels, fed)

    @property
    def nest(self) -> ir.Nest:
        return self.divided.nest

    @property
    def dims(self) -> tuple[DimKnobs, ...]:
        """Of the dimensions with more than one point."""
        return self.divided.dims

    @property
    def knobs(self) -> tuple[Knob, ...]:
        of_dims = tuple(k for each in self.dims for k in each.knobs)
        divided = self.divided
        of_dims += (divided.block,) if len(divided.block.choices) > 1 else ()
        own = of_dims + divided.vector + self.orders + divided.split + divided.use_cores
        return own + self.panels.knobs

    @property
    def results(self) -> tuple[DimKnobs, ...]:
        """Of the dimensions that are not reduced."""
        return tuple(k for k in self.dims if not k.dim.reduction)

    @property
    def reductions(self) -> tuple[DimKnobs, ...]:
        return tuple(k for k in self.dims if k.dim.reduction)

    def staged(self, values: Mapping[str, Value]) -> set[int]:
        """The operands that are copied."""
        return set(self.panels.texts(values, self._factors(values)))

    def sizes(self, values: Mapping[str, Value], dims: Iterable[DimKnobs]) -> dict[str, int]:
        """Points per chunk or tile of those of the dimensions that are divided, in their order."""
        divided, found = self.divided(values), {}
        for each in dims:
            size = divided.unit(each.dim.name) * value_of(values, each.steps)
            if 0 < size < divided.extents[each.dim.name]:
                found[each.dim.name] = size
        return found

    def chunks(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per chunk of the results that are divided, where the nest's own knobs say it."""
        return self.sizes(values, self.results)

    def tiles(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per tile of the reductions that are tiled, in the order of their loops."""
        reductions = self.reductions
        if not self.orders:
            return self.sizes(values, reductions)
        order = str(values[self.orders[0].name]).split()
        return self.sizes(values, (reductions[int(place)] for place in order))

    def loops(self, values: Mapping[str, Value], chunks: Mapping[str, int]) -> list[str]:
        """The dimensions of the loops that all threads of a block run together."""
        sizes, tiles = self.divided(values).sizes, self.tiles(values)
        return uniform_dims(self.nest.dims, sizes, chunks, tiles)

    def nest_options(self, values: Mapping[str, Value], chunks: Mapping[str, int]) -> NestOptions:
        nest, tiles, divided = self.nest, self.tiles(values), self.divided(values)
        threads = tuple(count for _, count, _ in divided.sizes.values())
        register = tuple(held for _, _, held in divided.sizes.values())
        tile = tuple(tiles.get(d.name, 0) for d in nest.dims)
        chunk = tuple(chunks.get(d.name, 0) for d in nest.dims if not d.reduction)
        parts = [0] * len(nest.dims)
        if divided.parts > 1:
            parts[longest(nest)] = divided.parts
        orders = [self._order(str(values[k.name])) for k in self.orders] or [(), ()]
        return replace(
            PLAIN,
            tile=tile if any(tile) else (),
            order=orders[0],
            inner_order=orders[1],
            vectorize=self._vectorize(values),
            register=register if max(register, default=1) > 1 else (),
            stage=self.panels.option(values, self.loops(values, chunks), self._factors(values)),
            chunk=chunk if any(chunk) else (),
            threads=threads if max(threads, default=1) > 1 else (),
            split=tuple(parts) if any(parts) else (),
            buffers=self.panels.copies(values),
            mma=divided.mma,
        )

    def from_options(self, options: NestOptions, *, joined: bool) -> dict[str, Value] | None:
        """Knob values; None if the knobs cannot encode them."""
        if options.mma not in ((), self.divided.cores):
            return None
        found = encode(self.nest, options, joined=joined)
        values = {k.name: found[k.name] for k in self.knobs}
        if vector := self.divided.vector:
            target, lanes = vector
            if values[lanes.name] == 1:
                values[target.name] = target.choices[0]
        if any(values[k.name] not in k.choices for k in self.knobs):
            return None
        sizes = self.divided(values).sizes
        own = (
            (sizes[k.dim.name], found[k.threads.name], found[k.register.name]) for k in self.dims
        )
        return values if all(size[1:] == (count, held) for size, count, held in own) else None

    def canonical(
        self, values: Mapping[str, Value], chunks: Mapping[str, int], *, joined: bool
    ) -> dict[str, Value]:
        """The canonical values of these knobs, among all that mean the same."""
        known = {k.name: values[k.name] for k in self.knobs}
        divided = self.divided(values)
        divisions = self.sizes(values, self.dims)
        for each in self.dims:
            given = joined and not each.dim.reduction
            if (given or each.dim.name not in divisions) and len(each.steps.choices) > 1:
                known[each.steps.name] = 0
            if len(each.threads.choices) > 1:
                known[each.threads.name] = divided.sizes[each.dim.name][1]
            if len(each.register.choices) > 1:
                known[each.register.name] = divided.sizes[each.dim.name][2]
        if self.divided.block.name in known:
            known[self.divided.block.name] = block_of([divided.block_threads])
        if vector := self.divided.vector:
            target, lanes = self._vectorize(values)
            known[vector[0].name] = target if lanes > 1 else vector[0].choices[0]
            known[vector[1].name] = lanes
        loops = self.loops(known, chunks)
        if self.orders:
            names = [k.dim.name for k in self.reductions]
            tiled = [names.index(name) for name in self.tiles(known)]
            points = {**divided.extents, **divisions}
            inner = [k for k, name in enumerate(names) if points[name] > divided.unit(name)]
            for knob, moved in zip(self.orders, (sorted(tiled), inner), strict=True):
                known[knob.name] = first_equivalent(knob, known[knob.name], moved)
        known.update(self.panels.canonical(known, loops, self._factors(known)))
        return known

    def _factors(self, values: Mapping[str, Value]) -> frozenset[int]:
        """The operands that have to be copied."""
        return self.factors if self.divided.on_cores(values) else frozenset()

    def _vectorize(self, values: Mapping[str, Value]) -> tuple[int, int]:
        sizes = enumerate(self.divided(values).sizes.values())
        return next(((k, width) for k, (width, _, _) in sizes if width > 1), (-1, 1))

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


def _split_knob(nest: ir.Nest, own: Mapping[str, Value]) -> tuple[Knob, ...]:
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
        for dim in nest.dims:
            if dim.extent > 1 and abs(layout.step(ref, dim.name)) == 1:
                size = layout.bytes
                bytes_[dim.name] = bytes_.get(dim.name, 0) + size
    most = max(reversed([*bytes_]), key=lambda name: bytes_[name], default="")
    return frozenset(bytes_), most
