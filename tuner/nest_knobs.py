"""All knobs of one nest: tiles, orders, lanes, register tile, operands that are copied, stores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.options import WIDTHS, NestOptions
from tcl.codegen.passes.vectorize import outputs, why_not
from tcl.tuner.chunk_knobs import ChunkKnobs
from tcl.tuner.knobs import Knob, Value
from tcl.tuner.prefetch_knobs import PrefetchKnobs
from tcl.tuner.register_knobs import RegisterKnobs
from tcl.tuner.space import Constraint
from tcl.tuner.stage_knobs import StageKnobs
from tcl.tuner.stream_knobs import StreamKnobs

_ALL_ORDERS = 4
"""Up to this many dimensions every loop order is tried; above, those that move one dimension."""


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
    register: RegisterKnobs
    """The register tile."""
    stage: StageKnobs
    """The operands that are copied."""
    stream: StreamKnobs
    """Whether results go past the caches."""
    prefetch: PrefetchKnobs
    """How far ahead operands are asked for."""
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
        targets = tuple(i for i in movable if why_not(nest, i) is None)
        vector: tuple[Knob, ...] = ()
        if targets and len(lanes) > 1:
            vector = (
                Knob(f"{nest.name}.vector", targets, _last_output(nest, targets), ordered=False),
                Knob(f"{nest.name}.lanes", lanes, 1, ordered=True),
            )
        results = tuple(i for i in movable if i < len(outputs(nest)))
        also = default.register or ()
        register = RegisterKnobs.of(nest, results, device, also, target if width > 1 else -1)
        made = chunks[0].made_before(nest) if chunks else set()
        stage = StageKnobs.of(nest, made)
        stream = StreamKnobs.of(program, nest, device, bool(vector))
        prefetch = PrefetchKnobs.of(program, nest, device, default.prefetch or ())
        lanes_of = target if target >= 0 else len(outputs(nest)) - 1
        return NestKnobs(
            *(nest, movable, tiles, orders, vector, register, stage, stream, prefetch, chunks),
            (lanes_of, width),
        )

    @property
    def knobs(self) -> tuple[Knob, ...]:
        own = self.tiles + self.orders + self.vector
        own += self.register.knobs + self.stage.knobs + self.stream.knobs
        return own + self.prefetch.knobs

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        found: list[Constraint] = []
        if self.chunks:
            pairs = zip(self.movable, self.tiles, strict=True)
            found += [partial(self._tile_fits, self.nest.dims[i].name, k) for i, k in pairs]
            found.append(self._copied_before_chunks)
        if self.vector:
            found.append(self._lanes_fit)
        if self.register.knobs:
            found.append(self._register_is_said_once)
        if self.stage.knobs:
            found.append(self._panels_fit)
        if self.stream.knobs:
            found.append(self._can_stream)
        if self.prefetch.knobs:
            found.append(self._can_prefetch)
        return tuple(found)

    def to_options(self, values: Mapping[str, Value]) -> NestOptions:
        sizes = [0] * len(self.nest.dims)
        for position, knob in zip(self.movable, self.tiles, strict=True):
            size = _int(values[knob.name])
            sizes[position] = 0 if size >= self.nest.dims[position].extent else size
        orders = [self._order(str(values[k.name])) for k in self.orders] or [(), ()]
        vectorize = (-1, 1)
        if self.vector:
            target, lanes = (_int(values[k.name]) for k in self.vector)
            vectorize = (target, lanes) if lanes > 1 else (-1, 1)
        register = self.register.sizes(values, self._lane_position(vectorize))
        tile = tuple(sizes) if any(sizes) else ()
        chunked = bool(self._spans(values))
        stage = self.stage.levels(values, self._tiled(tile, orders[0]), chunked)
        stream = self.stream.chosen(values)
        ahead = self.prefetch.distances(values)
        return NestOptions(
            tile, orders[0], orders[1], vectorize, register, stage, (), False, stream, ahead
        )

    def _spans(self, values: Mapping[str, Value]) -> dict[str, int]:
        """Points per chunk, of the dimensions that are divided."""
        if self.chunks is None:
            return {}
        group, position = self.chunks
        return group.spans(values, position)

    def _span(self, values: Mapping[str, Value], dim: str) -> int | None:
        """Points per chunk of a dimension; None if it is not divided."""
        return self.chunks[0].span(values, self.chunks[1], dim) if self.chunks else None

    def from_options(
        self, options: NestOptions, chunks: Mapping[str, Value]
    ) -> dict[str, Value] | None:
        """Knob values, where those of chunks are known; None if the options say something that
        the knobs cannot."""
        values: dict[str, Value] = {}
        spans = self._spans(chunks)
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
        tiles = self._tiled(options.tile or (), options.order or ())
        stage = self.stage.values(options.stage or (), tiles, bool(spans))
        stream = self.stream.values(bool(options.stream))
        prefetch = self.prefetch.values(options.prefetch or ())
        if register is None or stage is None or stream is None or prefetch is None:
            return None
        values.update(register | stage | stream | prefetch)
        known = {**chunks, **values}
        if any(known[k.name] not in k.choices for k in self.knobs):
            return None
        return self.normal(known)

    def _tile_fits(self, dim: str, knob: Knob, values: Mapping[str, Value]) -> str | None:
        size = _int(values[knob.name])
        if size == knob.choices[-1]:
            return None
        span = self._span(values, dim)
        if span is not None and size >= span:
            return f"nest {self.nest.name}: a tile of {size} points is a whole chunk of {dim}"
        return None

    def _copied_before_chunks(self, values: Mapping[str, Value]) -> str | None:
        if self.stage.before_chunks(values) and not self._spans(values):
            return f"nest {self.nest.name}: there are no chunks before which operands are copied"
        return None

    def _register_is_said_once(self, values: Mapping[str, Value]) -> str | None:
        lanes = self._lanes_of(values)
        reason = self.register.redundant(values, lanes)
        return f"nest {self.nest.name}: {reason}" if reason else None

    def _lanes_of(self, values: Mapping[str, Value]) -> int:
        target, lanes = (_int(values[k.name]) for k in self.vector) if self.vector else (-1, 1)
        return self._lane_position((target, lanes))

    def _tiled(self, tile: tuple[int, ...], order: tuple[int, ...]) -> tuple[str, ...]:
        """The tiled dimensions, in the order of the loops over their tiles."""
        dims = self.nest.dims
        sizes = tile + (0,) * (len(dims) - len(tile))
        chosen = order or range(len(dims))
        return tuple(dims[i].name for i in chosen if 0 < sizes[i] < dims[i].extent)

    def _panels_fit(self, values: Mapping[str, Value]) -> str | None:
        tiles = zip(self.movable, self.tiles, strict=True)
        sizes = {d.name: d.extent for d in self.nest.dims}
        sizes.update({self.nest.dims[i].name: _int(values[k.name]) for i, k in tiles})
        return self.stage.too_large(values, sizes)

    def _can_stream(self, values: Mapping[str, Value]) -> str | None:
        target, lanes = (_int(values[k.name]) for k in self.vector)
        along = self.stream.along
        tile = self.tiles[self.movable.index(along)]
        size = 0 if values[tile.name] == tile.choices[-1] else _int(values[tile.name])
        chunk = self._span(values, self.nest.dims[along].name) or 0
        reason = self.stream.why_not(values, target, lanes, (size, chunk))
        return f"nest {self.nest.name}: {reason}" if reason else None

    def _can_prefetch(self, values: Mapping[str, Value]) -> str | None:
        target, lanes = (_int(values[k.name]) for k in self.vector) if self.vector else (-1, 1)
        tiles = tuple(d.name for d in self.nest.dims)
        staged = self.stage.levels(values, tiles, False)
        reason = self.prefetch.why_not(values, target, lanes, staged)
        return f"nest {self.nest.name}: {reason}" if reason else None

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
        known.update(self.register.first_alike(known, self._lanes_of(known), self._counts(known)))
        if self.orders:
            knob = self.orders[0]
            known[knob.name] = first_alike(knob, known[knob.name], self._with_tiles(known))
        return {k.name: known[k.name] for k in self.knobs}

    def _with_tiles(self, values: Mapping[str, Value]) -> list[int]:
        """The dimensions with loops over tiles, by their place among the movable ones."""
        return [k for k, knob in enumerate(self.tiles) if values[knob.name] != knob.choices[-1]]

    def _counts(self, values: Mapping[str, Value]) -> dict[int, int]:
        """Points of each movable dimension inside a tile, or vectors of the one with lanes."""
        spans = self._spans(values)
        counts = {}
        for i, knob in zip(self.movable, self.tiles, strict=True):
            own = _int(values[knob.name])
            counts[i] = min(own, spans.get(self.nest.dims[i].name, own))
        target, lanes = (_int(values[k.name]) for k in self.vector) if self.vector else (-1, 1)
        if lanes > 1:
            counts[target] = -(-counts[target] // lanes)
        return counts

    def _lanes_fit(self, values: Mapping[str, Value]) -> str | None:
        target, lanes = (_int(values[k.name]) for k in self.vector)
        if lanes == 1:
            if len(self.vector[0].choices) > 1 and target != _last_output(self.nest, self._targets):
                return f"nest {self.nest.name}: without lanes the vectorised dimension is no choice"
            return None
        extent = self.nest.dims[target].extent
        own = _int(values[self.tiles[self.movable.index(target)].name])
        tile = min(own, self._span(values, self.nest.dims[target].name) or own)
        as_default = own == extent and (target, lanes) == self.default_lanes
        if lanes > tile and not as_default:
            return f"nest {self.nest.name}: {lanes} lanes are more than the {tile} points of a tile"
        return None

    @property
    def _targets(self) -> tuple[int, ...]:
        return tuple(_int(v) for v in self.vector[0].choices)


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


def tile_sizes(extent: int) -> tuple[int, ...]:
    """Sizes worth trying for a dimension, in ascending order; the last is the extent: untiled."""
    powers = (1 << p for p in range(1, max(1, extent).bit_length()))
    parts = (-(-extent // k) for k in range(2, 9))
    return (*sorted({s for s in (*powers, *parts) if 1 < s < extent}), extent)


def loop_orders(reduction: list[bool]) -> Iterator[tuple[int, ...]]:
    """Orders worth trying, as permutations of ``range(len(reduction))``, the natural one first.

    ``reduction``: whether each dimension is reduced; where not all orders are tried, the one
    with all reductions outermost is, too.
    """
    rank = len(reduction)
    natural = tuple(range(rank))
    if rank <= _ALL_ORDERS:
        yield from itertools.permutations(natural)
        return
    moved = [natural, tuple(sorted(natural, key=lambda i: not reduction[i]))]
    for i in natural:
        others = natural[:i] + natural[i + 1 :]
        moved += [(i, *others), (*others, i)]
        moved += [(*natural[:i], i + 1, i, *natural[i + 2 :])] if i + 1 < rank else []
    yield from dict.fromkeys(moved)


def _lanes(nest: ir.Nest, device: CpuProfile) -> tuple[int, ...]:
    """Up to one register, and not more lanes than the longest dimension has points."""
    longest = max((d.extent for d in nest.dims), default=0)
    most = min(device.lanes(nest.point.type), longest)
    return tuple(w for w in WIDTHS if w == 1 or w <= most)


def _last_output(nest: ir.Nest, positions: tuple[int, ...]) -> int:
    """The last of these positions that is an output dimension, else the last one."""
    results = len(outputs(nest))
    return max((i for i in positions if i < results), default=positions[-1])


def _text(order: tuple[int, ...]) -> str:
    return " ".join(map(str, order))


def _int(value: Value) -> int:
    return int(value)
