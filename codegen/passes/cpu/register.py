"""Register tiles: a few points of each dimension, written out so that each has a register."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import fragment_of
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import bounds_within
from tcl.codegen.loopir.terms import dot_factors, guards
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.codegen.passes.cpu.matrix import why_not_held
from tcl.codegen.passes.knobs import (
    Decoded,
    KnobSubject,
    OptionKnobs,
    Values,
    as_numbers,
    as_text,
    padded,
)
from tcl.grammar.sizes.varying import clipped

MAX_POINTS = 128
"""Vectors, or points without lanes, that may be written out one after the other. Accumulators
and four steps of a reduction fit; more fills the instruction cache and takes long to compile."""


@dataclass(frozen=True, slots=True)
class Register:
    """Splits the innermost loop of each dimension into loops over register tiles and an unrolled
    one inside of a tile.

    The unrolled loops go inside all others but the lanes and dot products: reductions first, so
    that accumulators are one group of independent registers; of these last the one with the lanes,
    whose vectors have accumulators of their own. Those of bounds that are one for all lanes go
    first, so that LLVM asks for these once for all points of the others.
    """

    nest: str
    sizes: tuple[int, ...]
    """Per dimension; of a dimension with lanes it counts vectors, of one with dot products these,
    and what a matrix unit does at once as one.
    0, 1 or a missing size leaves the dimension as it is."""
    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._split) if any(self.sizes) else program

    def _split(self, nest: ir.Nest) -> ir.Nest:
        refuse("register", nest.name, self._why_no_register_tile(nest))
        by_dim = dict(zip((d.name for d in nest.dims), self.sizes, strict=False))
        at_once = (ir.Kind.MMA, ir.Kind.VECTOR, ir.Kind.DOT)
        serial: list[ir.Loop] = []
        unrolled: list[ir.Loop] = []
        innermost = [x for x in nest.loops if x.kind in at_once]
        for loop in (x for x in nest.loops if x not in innermost):
            fold = loop.fold
            size = clipped(by_dim.get(fold.dim, 0), fold.count)
            if fold.level != "point" or size < 2:
                serial.append(loop)
                continue
            tiles = ir.Fold(fold.dim, "point", fold.step * size, -(-fold.count // size))
            serial.append(ir.Loop(tiles))
            unrolled.append(ir.Loop(ir.Fold(fold.dim, "register", fold.step, size), ir.Kind.UNROLL))
        own = {x.fold.dim for x in innermost if x.kind is ir.Kind.VECTOR}
        conditions = guards(nest.point.op, nest.point.value)[0]
        bounded = {n for index, _ in bounds_within(conditions) for n, _ in index.terms}
        first = bounded if not bounded & own else set()
        at = {
            d.name: (not d.reduction, d.name in own, d.name not in first, k)
            for k, d in enumerate(nest.dims)
        }
        unrolled.sort(key=lambda x: at[x.fold.dim])
        return nest.with_loops([*serial, *unrolled, *innermost])

    def _why_no_register_tile(self, nest: ir.Nest) -> str | None:
        if reason := too_many(nest, self.sizes):
            return reason
        # Of a dimension with lanes, vectors; of one with dot products or fragments, these.
        counts = {x.fold.dim: x.fold.count for x in nest.loops if x.fold.level == "point"}
        lane, has = nest.lane, self.device.vector_registers
        rows = vectors = unroll = 1
        for dim, size in zip(nest.dims, self.sizes, strict=False):
            size = clipped(max(1, size), counts[dim.name])
            if lane is not None and dim.name == lane.dim:
                vectors = size
            elif dim.reduction:
                unroll *= size
            else:
                rows *= size
        written = rows * vectors * unroll
        along = vectors > 1 and lane is not None and lane.dim == nest.running
        if written == 1:
            return None
        if nest.sequential and (nest.running is None or unroll > 1 or along):
            return nest.sequential
        if written > MAX_POINTS:
            return f"{written} points are too many to unroll; the limit is {MAX_POINTS}"
        if nest.point.op == "=":
            return None
        if nest.mma:
            return why_not_held(rows, vectors)
        if lane is not None:
            vectors *= -(-lane.count // self.device.lanes(nest.point.type))
        reduced = lane is not None and nest.dim(lane.dim).reduction
        needed = registers_needed(rows, vectors, reduced) + _for_dots(nest, self.device)
        if needed > has:
            return (
                f"{rows} x {vectors} vectors need {needed} registers, but {self.device.name} "
                f"has {has}"
            )
        return None


def registers_needed(rows: int, vectors: int, reduced: bool = False) -> int:
    """The vector registers of a reduction with a register tile of so many rows by vectors, whose
    lanes are of results, or are ``reduced``."""
    if reduced:
        return rows * vectors + 2  # the accumulators, and one vector of each operand
    # The accumulators, what several rows read of the operand that has the lanes, one value of the
    # other.
    return rows * vectors + (vectors if rows > 1 else 1) + 1


def _for_dots(nest: ir.Nest, device: CpuProfile) -> int:
    """The registers that the dot products of a nest need besides."""
    if nest.dot_product is None:
        return 0
    left, right = dot_factors(nest.point.value)
    fragment, _ = fragment_of(device, (left.type, right.type), nest.dot_product.count)
    return 0 if fragment.adds else 1  # products to be added


_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28)
_SECOND_ROWS = (1, 2, 3, 4)
_VECTORS = (1, 2, 3, 4, 6)
_UNROLL = (1, 2, 4, 8)


def register_knobs(on: KnobSubject) -> OptionKnobs:
    """The register tile: see ``RegisterKnobs``. In a matrix unit its rows and vectors are of
    fragments."""
    dims, default = on.nest.dims, on.default
    results = tuple(k for k in on.movable if not dims[k].reduction)
    mma, own = default.mma or (), padded(default.register, len(dims))
    fragments = as_text(*(own[mma[0]] or 1, 1, own[mma[1]] or 1)) if mma else ""

    def lanes_of(vectorize: tuple[int, int]) -> int:
        """The dimension that is counted in vectors, or would be if there were lanes."""
        if vectorize[1] > 1:
            return vectorize[0] if vectorize[0] >= 0 else on.last_result
        return on.last_output if on.movable else -1

    lanes = lanes_of(default.vectorize or (-1, 1))
    of = RegisterKnobs.for_nest(on.nest, results, on.device, tuple(own), lanes, fragments)

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        if not decoded.mma:
            return of.sizes(values, lanes_of(decoded.vectorize))
        sizes = [0] * len(dims)
        rows, _, vectors = as_numbers(values[of.tile[0].name]) if of.tile else (1, 1, 1)
        sizes[decoded.mma[0]], sizes[decoded.mma[1]] = rows, vectors
        return tuple(sizes)

    def encode(o: NestOptions) -> Mapping[str, Value]:
        sizes = tuple(padded(o.register, len(dims)))
        if not o.mma:
            return of.encode(sizes, lanes_of(o.vectorize or (-1, 1)))
        rows, vectors = (max(1, sizes[k]) for k in o.mma[:2])
        return {k.name: k.default for k in of.knobs} | {
            k.name: as_text(rows, 1, vectors) for k in of.tile
        }

    def canonical(values: Values, decoded: Decoded) -> Mapping[str, Value]:
        if decoded.mma:
            alone: dict[str, Value] = {k.name: k.default for k in (*of.row, *of.unroll.values())}
            rows, _, vectors = as_numbers(values[of.tile[0].name]) if of.tile else (1, 1, 1)
            return alone | {k.name: as_text(rows, 1, vectors) for k in of.tile}
        counts = list(on.points_inside(decoded.chunk, decoded.tile))
        lanes, width = decoded.vectorize
        if width > 1:
            counts[lanes] = -(-counts[lanes] // width)
        return of.first_equivalent(values, lanes_of(decoded.vectorize), dict(enumerate(counts)))

    def redundant(values: Values, decoded: Decoded) -> str | None:
        return None if decoded.mma else of.redundant(values, lanes_of(decoded.vectorize))

    return OptionKnobs("register", of.knobs, decode, encode, canonical, redundant)


@dataclass(frozen=True, slots=True)
class RegisterKnobs:
    """Rows of one or two output dimensions by vectors of the one with the lanes, and how often
    reductions are written out: the innermost one, the one around it as a whole, if it is short,
    and those that the default writes out.

    A tile is one knob, so that no two of its sizes are chosen which do not fit together.
    """

    rank: int
    results: tuple[int, ...]
    """Positions of the output dimensions with more than one point."""
    tile: tuple[Knob, ...]
    """``rows, second rows, vectors``; empty when there are no such dimensions."""
    row: tuple[Knob, ...]
    """The dimensions that the rows and the second rows are of."""
    unroll: Mapping[int, Knob]
    """By position of the reduction."""

    @staticmethod
    def for_nest(
        nest: ir.Nest,
        results: tuple[int, ...],
        device: CpuProfile,
        own: tuple[int, ...],
        lanes: int,
        fragments: str = "",
    ) -> RegisterKnobs:
        """The knobs of an untiled nest; ``results`` are its movable output dimensions. The register
        tile ``own``, with these lanes, is among the choices, or that of these ``fragments``."""
        reductions = [i for i, d in enumerate(nest.dims) if d.reduction and d.extent > 1]
        tile: tuple[Knob, ...] = ()
        row: tuple[Knob, ...] = ()
        if results:
            longest = max(nest.dims[i].extent for i in results)
            fitting = set(_tiles(len(results) - 1, longest, device.vector_registers))
            fitting.add(fragments or _tile_text(own, results, lanes))
            texts = tuple(sorted(fitting, key=_tile_order))
            if len(texts) > 1:
                tile = (Knob(f"{nest.name}.register", texts, texts[0], ordered=True),)
        if tile and len(results) > 1:
            pairs = tuple(f"{i} {j}" for i, j in itertools.permutations(results, 2))
            row = (Knob(f"{nest.name}.row", pairs, pairs[0], ordered=False),)
        unroll: dict[int, Knob] = {}
        for around, position in enumerate(reversed(reductions)):
            extent = nest.dims[position].extent
            asked = 1 if tile and lanes == position else max(1, own[position])
            usual = _UNROLL if not around else (extent,) if around == 1 else ()
            factors = {1, asked, *(u for u in usual if u <= min(extent, _UNROLL[-1]))}
            if not around or len(factors) > 1:
                name = f"{nest.name}.unroll{around or ''}"
                unroll[position] = Knob(name, tuple(sorted(factors)), 1, ordered=True)
        return RegisterKnobs(len(nest.dims), results, tile, row, unroll)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return (*self.tile, *self.row, *self.unroll.values())

    def sizes(self, values: Mapping[str, Value], lanes: int) -> tuple[int, ...]:
        """The register tile; ``lanes`` is the dimension that has them."""
        sizes = [0] * self.rank
        if self.tile:
            rows, second, vectors = as_numbers(values[self.tile[0].name])
            first, next_ = self._row_dims(values)
            for position, size in ((lanes, vectors), (first, rows), (next_, second)):
                if size > 1:
                    sizes[position] = size
        for position, knob in self.unroll.items():
            factor = int(values[knob.name])
            if factor > 1:
                sizes[position] = factor
        return tuple(sizes) if any(sizes) else ()

    def encode(self, sizes: tuple[int, ...], lanes: int) -> dict[str, Value]:
        """Knob values for a register tile; others than their choices if they cannot encode it."""
        wanted = tuple(size if size > 1 else 0 for size in sizes + (0,) * (self.rank - len(sizes)))
        found: dict[str, Value] = {k.name: k.default for k in self.knobs}
        if self.tile:
            found[self.tile[0].name] = _tile_text(wanted, self.results, lanes)
        for position, knob in self.unroll.items():
            if not (self.tile and lanes == position):
                found[knob.name] = max(1, wanted[position])
        if self.row:
            found[self.row[0].name] = self._pair(wanted, lanes)
        return found

    def _pair(self, sizes: tuple[int, ...], lanes: int) -> Value:
        """The dimensions that these rows are of: those with most rows first, and without second
        rows the first one that may have them."""
        rows = sorted((i for i in self.results if i != lanes and sizes[i]), key=lambda i: -sizes[i])
        if not rows:
            return self.row[0].default
        first, *others = rows
        others += [i for i in self.results if i != first]
        return f"{first} {others[0]}"

    def first_equivalent(
        self, values: Mapping[str, Value], lanes: int, counts: Mapping[int, int]
    ) -> dict[str, Value]:
        """The first values that mean the same where dimensions have so many points, or vectors:
        no more than these are written out."""
        found = {k.name: values[k.name] for k in self.knobs}
        for position, knob in self.unroll.items():
            count = counts[position]
            factor = min(int(found[knob.name]), count)
            found[knob.name] = next(u for u in knob.choices if min(int(u), count) == factor)
        sizes = enumerate(self.sizes(found, lanes))
        if any(size > max(1, counts.get(i, 1)) for i, size in sizes):
            wanted = self._written_out(found, lanes, counts)
            knobs = self.tile + self.row
            for chosen in itertools.product(*(k.choices for k in knobs)):
                tried = {**found, **{k.name: v for k, v in zip(knobs, chosen, strict=True)}}
                same = self._written_out(tried, lanes, counts) == wanted
                if same and self.redundant(tried, lanes) is None:
                    return tried
        return found

    def _written_out(
        self, values: Mapping[str, Value], lanes: int, counts: Mapping[int, int]
    ) -> dict[int, int]:
        """How many points of each dimension are, where they are more than one."""
        sizes = enumerate(self.sizes(values, lanes))
        written = {i: min(size, counts.get(i, 1)) for i, size in sizes if size > 1}
        return {i: size for i, size in written.items() if size > 1}

    def redundant(self, values: Mapping[str, Value], lanes: int) -> str | None:
        """Why this configuration is another one's double, or None; ``lanes`` as in ``sizes``."""
        if not self.tile:
            return None
        if lanes in self.unroll and values[self.unroll[lanes].name] != 1:
            return "the number of vectors of a reduction is its unroll factor"
        rows, second, _ = as_numbers(values[self.tile[0].name])
        first, next_ = self._row_dims(values)
        if (rows > 1 and first == lanes) or (second > 1 and next_ in (first, lanes)):
            return "rows are of other dimensions than the lanes"
        if self.row and values[self.row[0].name] != self._pair(
            self.sizes(values, lanes) or (0,) * self.rank, lanes
        ):
            return "these rows can be written in a shorter way"
        return None

    def _row_dims(self, values: Mapping[str, Value]) -> tuple[int, int]:
        if not self.row:
            return self.results[0], self.results[0]
        first, second = as_numbers(values[self.row[0].name])
        return first, second


def _tiles(others: int, longest: int, registers: int) -> Iterator[str]:
    """Tiles that fit, whatever the nest does."""
    for vectors in _VECTORS:
        for rows in _ROWS if others else (1,):
            for second in _SECOND_ROWS if others > 1 else (1,):
                fits = registers_needed(rows * second, vectors) <= registers
                if fits and second <= rows and max(rows, vectors) <= longest:
                    yield f"{rows} {second} {vectors}"


def _tile_order(text: str) -> tuple[int, int, int]:
    rows, second, vectors = as_numbers(text)
    return vectors, rows * second, rows


def _tile_text(sizes: tuple[int, ...], results: tuple[int, ...], lanes: int) -> str:
    """A register tile as a knob's value."""
    vectors = sizes[lanes] if lanes >= 0 else 0
    rows = sorted((sizes[i] for i in results if i != lanes and sizes[i]), reverse=True)
    first, second, *_ = (*rows, 1, 1)
    return f"{max(1, first)} {max(1, second)} {max(1, vectors)}"
