"""All knobs of one nest: tiles, orders, lanes, register tile, operands that are copied, stores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.kinds import WIDTHS
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.tile import points_inside
from tcl.codegen.passes.vectorize import outputs
from tcl.tuner.space.columns import Column, Places, Rows, combined
from tcl.tuner.space.cpu.chunks import ChunkKnobs
from tcl.tuner.space.cpu.dots import DotKnobs
from tcl.tuner.space.cpu.matrix import MatrixKnobs
from tcl.tuner.space.cpu.panels import StageKnobs
from tcl.tuner.space.cpu.registers import RegisterKnobs
from tcl.tuner.space.cpu.skips import SkipKnobs
from tcl.tuner.space.cpu.stream_prefetch import PrefetchKnobs, StreamKnobs
from tcl.tuner.space.knobs import Knob, Value, loop_orders, tile_sizes


@dataclass(frozen=True, slots=True)
class NestKnobs:
    """The knobs of one nest."""

    nest: ir.Nest
    movable: tuple[int, ...]
    """Positions of the dimensions with more than one point: only their order matters."""
    tiles: tuple[Knob, ...]
    """One per movable dimension."""
    orders: tuple[Knob, ...]
    """Over tiles and inside; empty when there is only one dimension to order."""
    vector: tuple[Knob, ...]
    """Dimension and lanes; empty when no dimension can be vectorised."""
    matrix: MatrixKnobs
    """Whether the matrix unit computes the nest."""
    dot: DotKnobs
    """Points of a reduction that one instruction adds up."""
    register: RegisterKnobs
    """The register tile."""
    stage: StageKnobs
    """The operands that are copied."""
    stream: StreamKnobs
    """Whether results go past the caches, and on boundaries."""
    prefetch: PrefetchKnobs
    """How far ahead operands are asked for."""
    skip: SkipKnobs
    """Whether a reduction leaves out points at which its condition does not hold."""
    chunks: tuple[ChunkKnobs, int] | None
    """The group that its chunks belong to, and its place in it."""
    default_lanes: tuple[int, int]
    """Dimension and lanes that are allowed even if a chunk has fewer points."""

    @staticmethod
    def of(
        program: ir.Program,
        nest: ir.Nest,
        device: CpuProfile,
        default: NestOptions,
        chunks: tuple[ChunkKnobs, int] | None,
    ) -> NestKnobs:
        """The knobs of an untiled nest, which can say what ``default`` says."""
        movable = tuple(i for i, d in enumerate(nest.dims) if d.extent > 1)
        dims = [nest.dims[i] for i in movable]
        own = (default.tile or ()) + (0,) * len(nest.dims)
        tiles = tuple(
            Knob(f"{d.name}.tile", _and(tile_sizes(d.extent), own[i]), d.extent, ordered=True)
            for i, d in zip(movable, dims, strict=True)
        )
        reductions = [nest.dims[i].reduction for i in movable]
        named = tuple(_text(order) for order in loop_orders(reductions))
        orders = tuple(
            Knob(
                f"{nest.name}.{name}", _and(named, _moves(order, movable)), named[0], ordered=False
            )
            for name, order in (("order", default.order), ("inner_order", default.inner_order))
            if len(named) > 1
        )
        target, width = default.vectorize or (-1, 1)
        lanes = tuple(map(_int, _and(_lanes(nest, device), width)))
        vector: tuple[Knob, ...] = ()
        if movable and len(lanes) > 1:
            vector = (
                Knob(f"{nest.name}.vector", movable, last_output(nest, movable), ordered=False),
                Knob(f"{nest.name}.lanes", lanes, 1, ordered=True),
            )
        results = tuple(i for i in movable if i < len(outputs(nest)))
        also = default.register or ()
        register = RegisterKnobs.of(nest, results, device, also, target if width > 1 else -1)
        made = chunks[0].made_before(nest) if chunks else set()
        stage = StageKnobs.of(nest, made)
        pairs = itertools.product(movable, lanes) if vector else ()
        stream = StreamKnobs.of(program, nest, device, pairs)
        prefetch = PrefetchKnobs.of(program, nest, device, default.prefetch or ())
        lanes_of = target if target >= 0 else len(outputs(nest)) - 1
        matrix = MatrixKnobs.of(nest, device, default)
        dot = DotKnobs.of(nest, device, () if default.mma else default.dot or ())
        return NestKnobs(
            *(nest, movable, tiles, orders, vector, matrix, dot, register, stage, stream),
            *(prefetch, SkipKnobs.of(nest), chunks, (lanes_of, width)),
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        own = self.tiles + self.orders + self.vector + self.matrix.knobs + self.dot.knobs
        own += self.register.knobs + self.stage.knobs + self.stream.knobs
        return own + self.prefetch.knobs + self.skip.knobs

    @property
    def said(self) -> dict[str, Callable[[Mapping[str, Value]], Any]]:
        """Name of an option → what knob values say of it, chunks included."""
        return {
            "tile": self.tile,
            "order": lambda values: self.order(values)[0],
            "inner_order": lambda values: self.order(values)[1],
            "vectorize": self.vectorize,
            "dot": self.dots,
            "mma": self.matrix.mma,
            "register": self.register_tile,
            "stage": self.stage_levels,
            "chunk": self.chunk,
            "fuse": self.fused,
            "stream": lambda values: self.stream.chosen(values)[0],
            "prefetch": self.prefetch.distances,
            "peel": lambda values: self.stream.chosen(values)[1],
            "skip": self.skip.chosen,
        }

    def to_options(self, values: Mapping[str, Value]) -> NestOptions:
        """What the knobs say of the nest, its chunks included."""
        return NestOptions(**{name: of(values) for name, of in self.said.items()})

    def columns(self, rows: Rows) -> dict[str, Column[Any]]:
        """``said``, of many configurations at once."""
        found = {name: rows.column(of) for name, of in self.said.items() if name != "stage"}
        return {**found, "stage": self._stage_levels(rows, found)}

    def _stage_levels(self, rows: Rows, said: Mapping[str, Column[Any]]) -> Column[tuple[int, ...]]:
        """``stage_levels``, where the other options are known. It follows from which dimensions are
        tiled, whatever the size of the tiles: rows differ in few ways in that."""
        names = [knob.name for knob in self.stage.knobs]
        if not names:
            return Column(((),), np.zeros(len(rows.places), np.intp))
        rank, chunk = len(self.nest.dims), said["chunk"]

        def sizes(column: Column[tuple[int, ...]]) -> Places:
            table = np.array([(*v, *(0,) * rank)[:rank] for v in column.values], np.intp)
            return table.reshape(-1, rank)[column.codes]

        points = np.array([d.extent for d in self.nest.dims], np.intp)
        spans, tiles = sizes(chunk), sizes(said["tile"])
        tiled = (tiles > 0) & (tiles < np.where(spans > 0, np.minimum(spans, points), points))

        def levels(chunked: bool, order: tuple[int, ...], *more: Any) -> tuple[int, ...]:
            dims = self.nest.dims
            loops = [dims[i].name for i in order or range(rank) if more[i]]
            return self.stage.levels(dict(zip(names, more[rank:], strict=True)), loops, chunked)

        chunked = Column((False, True), np.asarray((spans > 0).any(axis=1), np.intp))
        each = [Column((False, True), column) for column in tiled.T.astype(np.intp)]
        return combined(levels, [chunked, said["order"], *each, *map(rows.knob, names)])

    def fused(self, values: Mapping[str, Value]) -> bool:
        """The option."""
        return self.chunks is not None and self.nest.name in self.chunks[0].fused(values)

    def tile(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        sizes = [0] * len(self.nest.dims)
        for position, knob in zip(self.movable, self.tiles, strict=True):
            size = _int(values[knob.name])
            sizes[position] = 0 if size >= self.nest.dims[position].extent else size
        return tuple(sizes) if any(sizes) else ()

    def vectorize(self, values: Mapping[str, Value]) -> tuple[int, int]:
        """The option."""
        if (implied := self.matrix.implied(values)) is not None:
            return implied.vectorize or (-1, 1)
        target, lanes = (_int(values[k.name]) for k in self.vector) if self.vector else (-1, 1)
        return (target, lanes) if lanes > 1 else (-1, 1)

    def chunk(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        spans = self.spans(values)
        return tuple(spans.get(d.name, 0) for d in self.nest.dims) if spans else ()

    def order(self, values: Mapping[str, Value]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The options, over tiles and inside."""
        if not self.orders:
            return (), ()
        outer, inner = (self._order(str(values[k.name])) for k in self.orders)
        return outer, inner

    def register_tile(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        if (implied := self.matrix.implied(values)) is not None:
            return implied.register or ()
        return self.register.sizes(values, self.lanes_of(values))

    def dots(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        if (implied := self.matrix.implied(values)) is not None:
            return implied.dot or ()
        return self.dot.sizes(values)

    def stage_levels(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option; ``columns`` gives it for many values at once."""
        if not any(values[k.name] for k in self.stage.knobs):
            return ()
        chunk = self.chunk(values)
        tiled = self._tiled(self.tile(values), self.order(values)[0], chunk)
        return self.stage.levels(values, tiled, bool(chunk))

    def spans(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per chunk, of the dimensions that are divided."""
        if self.chunks is None:
            return {}
        group, position = self.chunks
        return group.spans(values, position)

    def span(self, values: Mapping[str, Value], dim: str) -> int | None:
        """Points per chunk of a dimension; None if it is not divided."""
        return self.chunks[0].span(values, self.chunks[1], dim) if self.chunks else None

    def from_options(
        self, options: NestOptions, chunks: Mapping[str, Value]
    ) -> dict[str, Value] | None:
        """Knob values, where those of chunks are known; None if the options say something that
        the knobs cannot."""
        values: dict[str, Value] = {}
        spans = self.spans(chunks)
        sizes = (options.tile or ()) + (0,) * len(self.nest.dims)
        for position, knob in zip(self.movable, self.tiles, strict=True):
            dim = self.nest.dims[position]
            size, extent = sizes[position], dim.extent
            covers = size == 0 or size >= spans.get(dim.name, extent)
            values[knob.name] = extent if covers else size
        for knob, order in zip(self.orders, (options.order, options.inner_order), strict=False):
            kept = [p for p in order or () if p in self.movable]
            text = _text(tuple(self.movable.index(p) for p in kept)) if kept else knob.default
            outer = knob is self.orders[0]
            values[knob.name] = first_alike(knob, text, self._with_tiles(values)) if outer else text
        matrix = self.matrix.values(options)
        if matrix is None or (options.mma and not matrix):
            return None
        if options.mma:  # what follows from it is said by no other knob
            options = replace(options, vectorize=(-1, 1), register=(), dot=())
        target, lanes = options.vectorize or (-1, 1)
        if self.vector:
            last = len(outputs(self.nest)) - 1
            chosen = last if target == -1 else target
            values[self.vector[0].name] = chosen if lanes > 1 else self.vector[0].default
            values[self.vector[1].name] = lanes
        elif lanes > 1:
            return None
        register = self.register.values(
            options.register or (), self._lane_position((target, lanes))
        )
        tiles = self._tiled(options.tile or (), options.order or (), options.chunk or ())
        dot = self.dot.values(options.dot or ())
        stage = self.stage.values(options.stage or (), tiles, bool(spans))
        stream = self.stream.values(bool(options.stream), bool(options.peel))
        prefetch = self.prefetch.values(options.prefetch or ())
        skip = self.skip.values(bool(options.skip))
        if dot is None or register is None or stage is None or stream is None:
            return None
        if prefetch is None or skip is None:
            return None
        values.update(matrix | dot | register | stage | stream | prefetch | skip)
        known = {**chunks, **values}
        if any(known[k.name] not in k.choices for k in self.knobs):
            return None
        return self.normal(known)

    def lanes_of(self, values: Mapping[str, Value]) -> int:
        """The dimension with the lanes, or the one that would have them."""
        return self._lane_position(self.vectorize(values))

    def _tiled(
        self, tile: tuple[int, ...], order: tuple[int, ...], chunk: tuple[int, ...]
    ) -> tuple[str, ...]:
        """The tiled dimensions, in the order of the loops over their tiles."""
        dims = self.nest.dims
        points = points_inside(self.nest, chunk, ())
        sizes = tile + (0,) * (len(dims) - len(tile))
        return tuple(dims[i].name for i in order or range(len(dims)) if 0 < sizes[i] < points[i])

    def _lane_position(self, vectorize: tuple[int, int]) -> int:
        """The dimension that register tiles count in vectors, or points where there are none."""
        target, lanes = vectorize
        if lanes > 1 and target >= 0:
            return target
        results = len(outputs(self.nest))
        if lanes > 1 or not self.vector:
            return max((i for i in self.movable if i < results), default=-1)
        return _int(self.vector[0].default)

    def _order(self, text: str) -> tuple[int, ...]:
        """A permutation of all dimensions: the movable ones trade places among themselves."""
        order = [int(part) for part in text.split()]
        if order == sorted(order):
            return ()
        permutation = list(range(len(self.nest.dims)))
        for slot, which in zip(self.movable, order, strict=True):
            permutation[slot] = self.movable[which]
        return tuple(permutation)

    def normal(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The first values of these knobs that say the same."""
        known = dict(values)
        if self.matrix.mma(known):
            follow = (*self.vector, *self.dot.knobs, *self.register.knobs)
            known.update({k.name: k.default for k in follow})
        else:
            known.update({k.name: k.default for k in self.matrix.knobs})
            lanes, counts = self.lanes_of(known), self._counts(known)
            known.update(self.register.first_alike(known, lanes, counts))
        if self.orders:
            knob = self.orders[0]
            known[knob.name] = first_alike(knob, known[knob.name], self._with_tiles(known))
        return {k.name: known[k.name] for k in self.knobs}

    def _with_tiles(self, values: Mapping[str, Value]) -> list[int]:
        """The dimensions with loops over tiles, by their place among the movable ones."""
        return [k for k, knob in enumerate(self.tiles) if values[knob.name] != knob.choices[-1]]

    def _counts(self, values: Mapping[str, Value]) -> dict[int, int]:
        """Points of each movable dimension inside a tile, or vectors of the one with lanes."""
        spans = self.spans(values)
        counts = {}
        for i, knob in zip(self.movable, self.tiles, strict=True):
            own = _int(values[knob.name])
            counts[i] = min(own, spans.get(self.nest.dims[i].name, own))
        target, lanes = self.vectorize(values)
        if lanes > 1:
            counts[target] = -(-counts[target] // lanes)
        return counts


def first_alike(knob: Knob, order: Value, moved: list[int]) -> Value:
    """The first choice that has these dimensions in the same order; ``order`` if there is none."""
    kept = {str(k) for k in moved}

    def of_kept(text: Value) -> list[str]:
        return [part for part in str(text).split() if part in kept]

    wanted = of_kept(order)
    return next((c for c in knob.choices if of_kept(c) == wanted), order)


def _and(choices: tuple[Value, ...], one: Value) -> tuple[Value, ...]:
    """The choices with one more, numbers in order; 0 and no text stand for none."""
    if not one or one in choices:
        return choices
    more = (*choices, one)
    return tuple(sorted(more, key=_int)) if isinstance(one, int) else more


def _moves(order: tuple[int, ...] | None, movable: tuple[int, ...]) -> str:
    """An order of all dimensions as one of the movable ones."""
    return _text(tuple(movable.index(p) for p in order or () if p in movable))


def _lanes(nest: ir.Nest, device: CpuProfile) -> tuple[int, ...]:
    """Up to one register, and not more lanes than the longest dimension has points."""
    longest = max((d.extent for d in nest.dims), default=0)
    most = min(device.lanes(nest.point.type), longest)
    return tuple(w for w in WIDTHS if w == 1 or w <= most)


def last_output(nest: ir.Nest, positions: tuple[int, ...]) -> int:
    """The last of these positions that is an output dimension, else the last one."""
    results = len(outputs(nest))
    return max((i for i in positions if i < results), default=positions[-1])


def _text(order: tuple[int, ...]) -> str:
    return " ".join(map(str, order))


def _int(value: Value) -> int:
    return int(value)
