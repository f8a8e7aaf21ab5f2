"""Options for a nest whose sums a CPU's matrix unit computes, where that pays.

The unit multiplies so fast that what surrounds it decides: copying both factors into panels, and
handing over its sums. So the dimensions that it multiplies along are those for which that takes
least; blocks follow from the second cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from tcl.codegen.choose.cpu.access_costs import PAGE, PanelCost, access_of
from tcl.codegen.choose.cpu.costs import (
    COPY_APART_CYCLES,
    COPY_TRANSPOSED_CYCLES,
    DOT_PRODUCT_CYCLES,
    FRAGMENT_BYTES_PER_CYCLE,
    FRAGMENT_LINE_CYCLES,
    FRAGMENT_PRODUCT_CYCLES,
    INTERLEAVED_LINE_CYCLES,
    SUMS_ROW_CYCLES,
)
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.devices.fragments import Fragment
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.cpu.dot import dotted, matrix_dots, matrix_fragment
from tcl.codegen.passes.cpu.matrix import multiplied_along, rows_in_place
from tcl.codegen.passes.cpu.stage import why_not_copied
from tcl.codegen.passes.long_sums import most_points
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Size

_SIDE = 2
"""Fragments along each side of a register tile: four sums, four parts of factors."""
_DEEP = 4096
"""Bytes of the reduction of one result from which on it is cut, whatever the sums cost that are
stored and taken up again."""
_KEPT_SUMS = 1 / 4
"""The part of the second cache that keeps the sums of a block, beside both factors of it."""
_NEAR = 3 / 4
"""The part of the first cache that keeps what a register tile reads of both factors for the next
one, beside sums on their way."""


def matrix_options(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> NestOptions | None:
    """Choices for an untiled nest, so that the matrix unit computes it; None where that cannot be,
    or does not pay."""
    way = matrix_way(program, nest, device)
    return way.options() if way is not None else None


def matrix_way(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> MatrixWay | None:
    """The dimensions of an untiled nest that the matrix unit multiplies along in the fewest cycles;
    None where it cannot, or vectors take fewer."""
    found = list(_ways(program, nest, device))
    if not found:
        return None
    best = min(found, key=lambda way: way.cycles)
    vectors = nest.points / (best.fragment.columns or 1) / best.fragment.depth * DOT_PRODUCT_CYCLES
    return best if best.cycles < vectors else None


def _ways(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> Iterator[MatrixWay]:
    if nest.sequential or nest.points == 0 or not nest.reduces:
        return
    fragment = matrix_fragment(nest, device)
    if fragment is None or any(why_not_copied(nest, load) for load in operands(nest.point)):
        return
    for mma in multiplied_along(nest, fragment, device):
        yield MatrixWay(program, nest, device, fragment, mma)


@dataclass(frozen=True, slots=True)
class MatrixWay:
    """Dimensions that the matrix unit multiplies along."""

    program: ir.Program
    nest: ir.Nest
    device: CpuProfile
    fragment: Fragment
    mma: tuple[int, int, int]

    @property
    def cycles(self) -> float:
        """Of all that is done, on one core."""
        rows, columns, depth = (self.nest.dims[k] for k in self.mma)
        f = self.fragment
        whole = {rows.name: f.rows, columns.name: f.columns or 1, depth.name: f.words * f.depth}
        blocks = {d.name: -(-d.extent // whole.get(d.name, 1)) for d in self.nest.dims}
        results = [d for d in self.nest.dims if not d.reduction]
        given = math.prod(d.extent for d in results) / (f.columns or 1)
        layout = self.program.tensor(self.nest.point.target.tensor).layout
        apart = layout.step(self.nest.point.target, columns.name) != 1
        total = math.prod(blocks.values()) * FRAGMENT_PRODUCT_CYCLES
        total += given * SUMS_ROW_CYCLES * ((f.columns or 1) if apart else 1)
        return total + sum(
            self._copy_cycles(x, rows, columns, depth) for x in operands(self.nest.point)
        )

    def unit(self, dim: str) -> int:
        """Points of a dimension in a register tile."""
        rows, columns, _ = (self.nest.dims[k].name for k in self.mma)
        sides = {rows: self.fragment.rows, columns: self.fragment.columns or 1}
        return _SIDE * sides[dim] if dim in sides else 1

    def extra_copy_share(self, chunks: Mapping[str, int]) -> float:
        """What is copied besides for so many chunks per dimension, as a part of all work."""
        _, columns, depth = (self.nest.dims[k].name for k in self.mma)
        total = 0.0
        for load in operands(self.nest.point):
            access = access_of(self.program, self.nest, load)
            words = access.in_words(depth, self.fragment.depth, in_place=True)
            copies = math.prod(n for dim, n in chunks.items() if dim not in access.strides)
            if copies > 1:
                total += PanelCost(words, columns, self.device).more(copies)
        return total / self.cycles

    def _copy_cycles(self, load: ir.Load, rows: ir.Dim, columns: ir.Dim, depth: ir.Dim) -> float:
        layout = self.program.tensor(load.ref.tensor).layout
        dims = load.ref.names
        points = math.prod(self.nest.dim(name).extent for name in dims)
        lines = points * layout.itemsize / LINE
        words = points / self.fragment.depth
        deep, wide = (layout.step(load.ref, d.name) for d in (depth, columns))
        if rows.name in dims:
            return lines * FRAGMENT_LINE_CYCLES if deep == 1 else points * COPY_APART_CYCLES
        if wide == 1:
            return lines * INTERLEAVED_LINE_CYCLES
        return words * COPY_TRANSPOSED_CYCLES if deep == 1 else points * COPY_APART_CYCLES

    def _block(self, each: int) -> int:
        """Points of the reduction of a block; ``each``: bytes of a point. Blocks that leave what a
        register tile reads of one factor in the first cache pay where the unit waits longer for
        lines of both from the second one than for lines of one and of sums."""
        f, dim = self.fragment, self.nest.dims[self.mma[2]]
        step, rows = f.words * f.depth, _SIDE * f.rows
        most = max(step, _DEEP // each)
        near = int(self.device.l1_bytes * _NEAR) // (2 * rows) // each // step * step
        steps = math.prod(d.extent for d in self.nest.dims if d.reduction) // step
        long = most_points((self.nest.point,)) or steps
        if not 0 < near < dim.extent or steps > long:
            return most
        near = _block_length(dim.extent, near, step)
        blocks = -(-dim.extent // near)
        products = _SIDE**2 * FRAGMENT_PRODUCT_CYCLES / step
        line = rows * each / FRAGMENT_BYTES_PER_CYCLE  # of one factor, for a point
        sums = 2 * _SIDE**2 * f.rows * LINE / FRAGMENT_BYTES_PER_CYCLE
        cut = blocks * max(products * near, line * near + sums)
        return near if cut < max(products, 2 * line) * dim.extent else most

    def _sums(self) -> tuple[int, int]:
        """Rows and columns of the results of a block, whose sums stay in the second cache."""
        f, (rows, columns, _) = self.fragment, (self.nest.dims[k].extent for k in self.mma)
        kept = int(self.device.l2_bytes * _KEPT_SUMS) // 4
        if rows * columns <= kept:
            return rows, columns
        high = _block_length(rows, math.isqrt(kept), _SIDE * f.rows)
        return high, _block_length(columns, kept // high, _SIDE * (f.columns or 1))

    def _in_place(self, sizes: Sequence[int], each: int) -> ir.Load | None:
        """The factor of the rows, if the unit can read it where it lies: whole fragments, and rows
        that the first cache can keep beside the other factor. Lines a page apart share a set."""
        f, (rows, columns, depth) = self.fragment, self.mma
        dots = matrix_dots(f, self.mma, len(self.nest.dims))
        made = dotted(self.nest, dots, self.device, matrix=True)
        names = (self.nest.dims[k].name for k in (rows, columns))
        load = rows_in_place(self.program, made, *names)
        if load is None:
            return None
        whole = self.program.nest(self.nest.name).dims
        for k, points in ((rows, f.rows), (depth, f.words * f.depth)):
            lengths = whole[k].extent, self.nest.dims[k].extent, sizes[k]
            if any(isinstance(n, Size) or n % points for n in lengths):
                return None
        layout = self.program.tensor(load.ref.tensor).layout
        apart = layout.place(load.ref).coefficient(self.nest.dims[rows].name)
        length = (sizes[depth] or self.nest.dims[depth].extent) * each
        taken = max(length, math.gcd(apart, PAGE))
        kept = _SIDE * f.rows * (length + taken) <= self.device.l1_bytes * _NEAR
        return load if kept else None

    def options(self) -> NestOptions:
        nest, f = self.nest, self.fragment
        rows, columns, depth = self.mma
        reads = operands(nest.point)
        itemsize = 4 // f.depth
        sizes = [0] * len(nest.dims)
        others = [k for k in range(len(nest.dims)) if k not in self.mma]
        apart = [k for k in others if not nest.dims[k].reduction]
        along = [k for k in others if nest.dims[k].reduction]
        each = math.prod(nest.dims[k].extent for k in along) * itemsize
        deep = self._block(each)
        # Blocks of both factors and of sums stay in the second cache.
        sides = *self._sums(), deep
        if nest.dims[depth].extent <= deep:
            length = nest.dims[depth].extent * each
            sides = max(_SIDE * f.rows, self.device.l2_bytes // 2 // length // 64 * 64), 0, 0
        for k, size in zip(self.mma, sides, strict=True):
            sizes[k] = size if 0 < size < nest.dims[k].extent else 0
        # One image, or one pair of matrices, after the other: panels of one stay near.
        for k in apart:
            if nest.dims[k].extent > 1:
                sizes[k] = 1
        order = (*apart, *along, rows, columns, depth)
        inner = (*apart, columns, rows, *along, depth)
        tiles = [nest.dims[k].name for k in order if 0 < sizes[k] < nest.dims[k].extent]
        register = [0] * len(nest.dims)
        counts = ((rows, f.rows), (columns, f.columns or 1))
        for k, size in counts:
            register[k] = min(_SIDE, -(-nest.dims[k].extent // size))
        natural = tuple(range(len(nest.dims)))
        there = self._in_place(sizes, each)
        return replace(
            PLAIN,
            tile=tuple(sizes) if any(sizes) else (),
            order=() if order == natural else order,
            inner_order=() if inner == natural else inner,
            vectorize=(columns, f.columns or 1),
            register=tuple(register),
            stage=tuple(-1 if x == there else _copied_once(tiles, x.ref) for x in reads),
            dot=matrix_dots(f, self.mma, len(nest.dims)),
            mma=self.mma,
        )


def _block_length(extent: int, most: int, unit: int) -> int:
    """The length of blocks of whole units, none longer than ``most``, that leave as little of the
    last one empty as they can; a unit, if that is longer."""
    fewest = -(-extent // max(unit, most // unit * unit))
    lengths = [-(-extent // blocks // unit) * unit for blocks in range(fewest, 2 * fewest)]
    return min(lengths, key=lambda length: -extent % length)


def _copied_once(tiles: Iterable[str], ref: ir.TensorRef) -> int:
    """The innermost level at which nothing of an operand is copied twice."""
    dims = ref.names
    return len(list(takewhile(lambda dim: dim in dims, tiles)))
