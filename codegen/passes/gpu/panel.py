"""Panels: boxes of operands in shared memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tcl.codegen.devices.gpu import SHARED_LINE
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import axis_order
from tcl.codegen.passes.gpu.banks import padded
from tcl.codegen.passes.gpu.bind import BlockFolds
from tcl.codegen.passes.gpu.mma_shape import Sizes
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, Undecided


@dataclass(frozen=True, slots=True)
class Footprint:
    """The *footprint* of an operand inside of some loops: a box, as large along each axis of its
    tensor as its subscript reaches there."""

    axes: tuple[ir.Affine, ...]
    """The operand's subscripts along the panel's axes."""
    layout: ir.Layout
    first: int
    """Bytes before the first point's element: subscripts may go downwards."""

    @staticmethod
    def from_layout(
        source: ir.Layout, ref: ir.TensorRef, inside: Mapping[str, int], folds: BlockFolds
    ) -> Footprint:
        """The panel of an operand that is affine, in a tensor that lies in memory like ``source``.
        ``inside``: the points that each dimension goes through inside of the loops."""
        axes = ordered(ref, source)
        for s in axes:
            if isinstance(extent(s, inside), Size):
                raise Undecided("what a panel holds is known only when the kernel runs")
        layout = padded(source.type, tuple(extent(s, inside) for s in axes), axes, folds)
        first = sum(
            stride * -c * (inside[name] - 1)
            for s, stride in zip(axes, layout.strides, strict=True)
            for name, c in s.terms
            if c < 0
        )
        return Footprint(axes, layout, first)


def ordered(ref: ir.TensorRef, source: ir.Layout) -> tuple[ir.Affine, ...]:
    """The subscripts of an operand that is affine, along the axes of its panel."""
    subscripts = (ref.subscripts[k] for k in axis_order(source))
    return tuple(s for s in subscripts if isinstance(s, ir.Affine))


def extent(subscript: ir.Affine, inside: Mapping[str, int]) -> int:
    """Elements that a subscript reaches."""
    return 1 + sum(abs(c) * (inside[name] - 1) for name, c in subscript.terms)


def panel_bytes(layout: ir.Layout) -> int:
    """Bytes of one copy of a panel."""
    size = layout.itemsize
    for count, stride in zip(layout.extents, layout.strides, strict=True):
        size = max(size, count * stride)
    return -(-size // SHARED_LINE) * SHARED_LINE


def uniform_dims(
    dims: Sequence[ir.Dim], sizes: Sizes, chunk: Mapping[str, int], tile: Mapping[str, int]
) -> list[str]:
    """The dimensions of the loops inside of the chunks that all threads of a block run together,
    outermost first: those over results, then those over ``tile``, in its order."""
    found = []
    for dim in dims:
        if not dim.reduction and chunk.get(dim.name, dim.extent) > math.prod(sizes[dim.name]):
            found.append(dim.name)
    return found + list(tile)
