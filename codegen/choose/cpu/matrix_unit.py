"""Options for a nest whose sums a CPU's matrix unit computes, where that pays.

The unit multiplies so fast that what surrounds it decides: copying both factors into panels, and
handing over its sums. So the dimensions that it multiplies along are those for which that takes
least; blocks follow from the second cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tcl.codegen.choose.cpu.access_costs import PanelCost, access_of
from tcl.codegen.choose.cpu.costs import (
    CACHE_BYTES_PER_CYCLE,
    COPY_APART_CYCLES,
    COPY_TRANSPOSED_CYCLES,
    DOT_PRODUCT_CYCLES,
    FRAGMENT_BYTES_PER_CYCLE,
    FRAGMENT_LINE_CYCLES,
    FRAGMENT_PRODUCT_CYCLES,
    INTERLEAVED_LINE_CYCLES,
    SUMS_ROW_CYCLES,
)
from tcl.codegen.choose.cpu.memory_reads import cached_bytes, memory_rate
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.devices.fragments import Fragment
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.cpu.dot import matrix_dots, matrix_fragment
from tcl.codegen.passes.cpu.matrix import multiplied_along
from tcl.codegen.passes.cpu.stage import dims_of, natural_level, why_not_copied
from tcl.common.dataclass import dataclass

_SIDE = 2
"""Fragments along each side of a register tile: four sums, four parts of factors."""
_DEEP = 4096
"""Bytes of the reduction of one result from which on it is cut, whatever the sums cost that are
stored and taken up again."""
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
        """Cycles to copy a factor."""
        layout = self.program.tensor(load.ref.tensor).layout
        dims = dims_of(load.ref)
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
        register tile reads in the first cache pay where the unit waits for lines of the second one
        longer than it takes to store sums, and to take them up again."""
        f, extent = self.fragment, self.nest.dims[self.mma[2]].extent
        step, sides = f.words * f.depth, 2 * _SIDE * f.rows
        most = max(step, _DEEP // each)
        near = int(self.device.l1_bytes * _NEAR) // sides // each // step * step
        if not 0 < near < extent:
            return most
        blocks = -(-extent // near)
        near = -(-extent // blocks // step) * step  # all about as long
        products = _SIDE**2 * FRAGMENT_PRODUCT_CYCLES / step
        waiting = sides * each / FRAGMENT_BYTES_PER_CYCLE - products
        results = self.program.tensor(self.nest.point.target.tensor).layout.bytes
        kept = results < cached_bytes(self.device)
        rate = CACHE_BYTES_PER_CYCLE if kept else memory_rate(self.device)
        rows = _SIDE**2 * f.rows
        again = max(0.0, 2 * rows * LINE / rate - products * near) + rows * SUMS_ROW_CYCLES
        return near if (blocks - 1) * again < waiting * extent else most

    def options(self) -> NestOptions:
        """The options for it."""
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
        if nest.dims[depth].extent > deep and nest.point.type.compute == nest.point.type:
            sizes[depth] = deep
        # A block of rows stays in the second cache.
        length = min(nest.dims[depth].extent, deep) * each
        most = max(_SIDE * f.rows, self.device.l2_bytes // 2 // length // 64 * 64)
        if nest.dims[rows].extent > most:
            sizes[rows] = most
        # One image, or one pair of matrices, after the other: panels of one stay near.
        for k in apart:
            if nest.dims[k].extent > 1:
                sizes[k] = 1
        order = (*apart, *along, depth, rows, columns)
        inner = (*apart, columns, rows, *along, depth)
        tiles = [nest.dims[k].name for k in order if 0 < sizes[k] < nest.dims[k].extent]
        register = [0] * len(nest.dims)
        counts = ((rows, f.rows), (columns, f.columns or 1))
        for k, size in counts:
            register[k] = min(_SIDE, -(-nest.dims[k].extent // size))
        natural = tuple(range(len(nest.dims)))
        return replace(
            PLAIN,
            tile=tuple(sizes) if any(sizes) else (),
            order=() if order == natural else order,
            inner_order=() if inner == natural else inner,
            vectorize=(columns, f.columns or 1),
            register=tuple(register),
            stage=tuple(natural_level(tiles, load.ref) for load in reads),
            dot=matrix_dots(f, self.mma, len(nest.dims)),
            mma=self.mma,
        )
