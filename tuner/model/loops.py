"""The loops that candidates give a nest, as arrays: what the passes will make of their options,
known without running these. One row is one candidate.

From the innermost to the outermost, the loops of a nest run over register tiles inside a tile, over
tiles inside a chunk, and over chunks: as ``tcl.codegen.passes.cpu.steps`` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcl.codegen.choose.cpu.access_costs import OperandAccess, access_of
from tcl.codegen.choose.cpu.operation_costs import arithmetic_cycles
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.devices.fragments import fragments
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import OPTIONS
from tcl.tuner.space.columns import Column


@dataclass(frozen=True, slots=True)
class AccessAxis:
    """A dimension of a tensor, as an access goes along it."""

    extent: int
    steps: tuple[tuple[int, int], ...]
    """(dimension of the nest, elements per point) of those that move it."""
    anywhere: bool
    """Its place depends on data."""


@dataclass(frozen=True, slots=True)
class Touched:
    """An operand or the target of a nest."""

    access: OperandAccess
    axes: tuple[AccessAxis, ...]
    """From the one along which elements are neighbours in memory outwards."""
    moves: tuple[bool, ...]
    """Whether each dimension of the nest moves it."""


@dataclass(frozen=True, slots=True)
class SubjectNest:
    position: int
    """In the program."""
    nest: ir.Nest
    reads: tuple[Touched, ...]
    target: Touched
    work: tuple[tuple[tuple[bool, ...], float], ...]
    """Cycles of the operations of a point, by the dimensions that they depend on."""


def read_nest(program: ir.Program, position: int) -> SubjectNest:
    nest = program.nests[position]
    target = ir.Load(nest.point.target, nest.point.type, total=True)
    names = [d.name for d in nest.dims]
    work = tuple(
        (tuple(n in dims for n in names), c) for dims, c in arithmetic_cycles(nest).items()
    )
    reads = tuple(_touched(program, nest, load) for load in operands(nest.point))
    return SubjectNest(position, nest, reads, _touched(program, nest, target), work)


def _touched(program: ir.Program, nest: ir.Nest, load: ir.Load) -> Touched:
    layout, names = program.tensor(load.ref.tensor).layout, [d.name for d in nest.dims]
    access = access_of(program, nest, load)
    axes = []
    order = sorted(range(len(layout.extents)), key=lambda k: abs(layout.strides[k]))
    for k in order:
        subscript = load.ref.subscripts[k]
        affine = isinstance(subscript, ir.Affine)
        terms = subscript.terms if isinstance(subscript, ir.Affine) else ()
        steps = tuple((names.index(n), abs(c)) for n, c in terms if n in names)
        axes.append(AccessAxis(layout.extents[k], steps, not affine))
    moved = {d for axis in axes for d, _ in axis.steps}
    everywhere = any(axis.anywhere for axis in axes)
    moves = tuple(everywhere or d in moved for d in range(len(names)))
    return Touched(access, tuple(axes), moves)


Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
READ = tuple(
    name
    for name, option in OPTIONS.items()
    if option.knobs and "CPU" not in option.refused and name != "split"
)
"""The options of a nest that say what its loops are; one that is split is another nest."""
TOLD = {name: OPTIONS[name].kind for name in READ if OPTIONS[name].feature}
"""Those of which one number is all that is told."""


@dataclass(frozen=True, slots=True)
class LoopColumns:
    """One nest of N candidates, with D dimensions and A operands.

    Arrays are in Fortran's order, as far as numbers of all candidates are worked with at once.
    """

    subject: SubjectNest
    device: CpuProfile
    extents: Ints
    """D; an empty dimension counts as one point."""
    reduced: Bools
    """D: whether points along a dimension are combined."""
    chunked: Bools
    """N: whether there are loops over chunks."""
    chunk: Ints
    """N x D: points in a chunk."""
    tile: Ints
    """N x D: points in a tile."""
    unit: Ints
    """N x D: points in a register tile: what is written out, lanes and dot products included."""
    vectors: Ints
    """N x D: of what is written out, a vector, dot product or fragment counting as one."""
    lane: Ints
    """N: the dimension of the lanes, -1 without any."""
    width: Ints
    """N: lanes."""
    lanes: Column[tuple[int, int]]
    """Both."""
    tile_order: Ints
    """N x D: dimensions of the loops over tiles, outermost first."""
    point_order: Ints
    """N x D: likewise of those inside a tile."""
    stage: Ints
    """N x A: loops outside of which an operand is copied; -1 where it is not."""
    prefetch: Ints
    """N x A: bytes ahead."""
    told: dict[str, Floats]
    """N each, by option: what is told of it."""
    inside: Floats = field(init=False)
    """L x N x D: points inside of each level of loops, from register tiles (0) to the nest."""
    executions: Floats = field(init=False)
    """L x N: how often what is inside of each level runs: the nest's points over those inside, so
    that pieces that are cut short count as parts."""
    touched: tuple[tuple[Floats, Floats], ...] = field(init=False)
    """Of each operand, then of the target, L x N each: elements that are touched inside of each
    level, and bytes of the lines of a cache that these lie in, if rows begin at one."""

    def __post_init__(self) -> None:
        inside = self._inside()
        object.__setattr__(self, "inside", inside)
        points = inside.prod(axis=2)
        object.__setattr__(self, "executions", float(self.extents.prod()) / points)
        every = (*self.subject.reads, self.subject.target)
        object.__setattr__(self, "touched", tuple(self._boxed(t, points) for t in every))

    @staticmethod
    def from_columns(
        subject: SubjectNest, device: CpuProfile, count: int, chosen: Mapping[str, Column[Any]]
    ) -> LoopColumns:
        """Of complete choices for one nest: name of an option in ``READ`` → its values."""
        dims, reads = subject.nest.dims, len(subject.reads)
        rank = len(dims)
        natural = tuple(range(rank))

        def coded(name: str, row: Callable[[Any], tuple[int, ...]], width: int) -> Ints:
            table = np.array([row(v) for v in chosen[name].values], np.int64)
            found: Ints = table.reshape(len(table), width).T[:, chosen[name].codes].T
            return found

        def sizes(name: str, width: int, absent: int) -> Ints:
            return coded(name, lambda v: ((v or ()) + (absent,) * width)[:width], width)

        extents = np.array([max(1, d.extent) for d in dims], np.int64)
        chunk, tile = sizes("chunk", rank, 0), sizes("tile", rank, 0)
        chunked = np.asarray((chunk > 0).any(axis=1))
        chunk = np.minimum(np.where(chunk > 0, chunk, extents), extents)
        tile = np.minimum(np.where(tile > 0, tile, chunk), chunk)
        results = sum(not d.reduction for d in dims)

        def lanes_or_one(value: tuple[int, int] | None) -> tuple[int, int]:
            dim, width = value or (-1, 1)
            return (-1, 1) if width < 2 else (dim if dim >= 0 else results - 1, width)

        lane = coded("vectorize", lanes_or_one, 2)
        dots = np.maximum(sizes("dot", rank, 1), 1)
        base = np.ones((count, rank), np.int64, order="F")
        if any(chosen["mma"].values):
            fragment = next(fragments(device, matrix=True))

            def rows_and_words(mma: tuple[int, ...] | None) -> tuple[int, ...]:
                along = (*(mma or ())[:1], *(mma or ())[2:])
                by_dim = dict(zip(along, (fragment.rows, fragment.words), strict=False))
                return tuple(by_dim.get(dim, 1) for dim in range(rank))

            base = coded("mma", rows_and_words, rank)
        base = base * dots
        at = (np.arange(rank)[:, None] == lane[:, 0]).T
        base = np.where(at, base * lane[:, 1:], base)
        register = np.minimum(np.maximum(sizes("register", rank, 1), 1), -(-tile // base))
        return LoopColumns(
            subject=subject,
            device=device,
            extents=extents,
            reduced=np.array([d.reduction for d in dims], np.bool_),
            chunked=chunked,
            chunk=chunk,
            tile=tile,
            unit=register * base,
            vectors=register,
            lane=lane[:, 0],
            width=lane[:, 1],
            lanes=Column(
                tuple(map(lanes_or_one, chosen["vectorize"].values)), chosen["vectorize"].codes
            ),
            tile_order=coded("order", lambda v: v or natural, rank),
            point_order=coded("inner_order", lambda v: v or natural, rank),
            stage=sizes("stage", reads, -1),
            prefetch=sizes("prefetch", reads, 0),
            told={
                name: np.array([*map(kind.feature, chosen[name].values)])[chosen[name].codes]
                for name, kind in TOLD.items()
            },
        )

    def _inside(self) -> Floats:
        rank = len(self.extents)
        natural = np.broadcast_to(np.arange(rank)[:, None], self.tile.shape[::-1]).T

        def ranks(order: Ints) -> Ints:
            """N x D: place of each dimension, 0 outermost."""
            found = np.empty_like(order)
            np.put_along_axis(found, order, natural, axis=1)
            return found

        parts = [np.minimum(self.unit, self.tile)]
        steps = (
            (ranks(self.point_order), self.tile),
            (ranks(self.tile_order), self.chunk),
            (natural, np.broadcast_to(self.extents[:, None], self.tile.shape[::-1]).T),
        )
        for places, whole in steps:
            before = parts[-1]
            parts += [np.where(places >= rank - k, whole, before) for k in range(1, rank + 1)]
        found = np.empty((len(parts), rank, self.count))
        for level, part in zip(found, parts, strict=True):
            level[...] = part.T
        return found.transpose(0, 2, 1)

    @property
    def count(self) -> int:
        """N."""
        return len(self.lane)

    @property
    def rank(self) -> int:
        """D."""
        return len(self.extents)

    @property
    def along_lanes(self) -> Bools:
        """N x D: whether lanes run along a dimension."""
        found: Bools = (np.arange(self.rank)[:, None] == self.lane).T
        return found

    def along(self, each: Ints | Floats | Bools) -> Floats:
        """Of an N x D array, what stands at the lanes' dimension; 1 without lanes."""
        found = np.take_along_axis(np.asarray(each), np.maximum(self.lane, 0)[:, None], axis=1)
        return np.where(self.lane >= 0, found[:, 0], 1).astype(np.float64)

    def pieces(self, unit: Ints) -> Floats:
        """N x D: turns of all loops over pieces of at most ``unit`` points along a dimension, what
        is cut short at the ends of tiles and chunks included."""

        # Floats count as exactly up to 2 ** 53, and divide in a fraction of the time.
        size, tile, chunk = (each.astype(np.float64) for each in (unit, self.tile, self.chunk))
        in_tile = np.ceil(tile / size)

        def in_chunk(points: Floats) -> Floats:
            tiles = np.floor(points / tile)
            found: Floats = tiles * in_tile + np.ceil((points - tiles * tile) / size)
            return found

        chunks = np.floor(self.extents / chunk)
        return chunks * in_chunk(chunk) + in_chunk(self.extents - chunks * chunk)

    def footprint(self, access: int, packed: Bools | None = None) -> Floats:
        """L x N: bytes of the lines of a cache that an access (operands, then the target) touches;
        where it is ``packed``, elements lie one after the other in a panel."""
        elements, lines = self.touched[access]
        if packed is None:
            return lines
        return np.where(packed, elements * self.subject.reads[access].access.itemsize, lines)

    def _boxed(self, touched: Touched, points: Floats) -> tuple[Floats, Floats]:
        shape = self.inside.shape[:2]
        run, rows, full = np.ones(shape), np.ones(shape), np.ones(shape, np.bool_)
        for axis in touched.axes:
            span = points
            if not axis.anywhere:
                first = 1 - sum(elements for _, elements in axis.steps)
                span = np.full(shape, float(first))
                for dim, elements in axis.steps:
                    span += elements * self.inside[:, :, dim]
            span = np.minimum(axis.extent, span)
            # What is touched of rows that are touched as a whole is one longer row.
            run *= np.where(full, span, 1.0)
            rows *= np.where(full, 1.0, span)
            full &= span >= axis.extent
        itemsize = touched.access.itemsize
        return run * rows, rows * np.ceil(run * itemsize / LINE) * LINE
