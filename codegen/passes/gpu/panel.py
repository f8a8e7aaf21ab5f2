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
from tcl.codegen.passes.gpu.transposed import LEAST, transposed_axis
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, Undecided, provably_equal


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
        program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, inside: Mapping[str, int]
    ) -> Footprint:
        """The panel of an operand that is affine, of a nest that is bound. ``inside``: the points
        that each dimension goes through inside of the loops."""
        source, folds = program.tensor(ref.tensor).layout, BlockFolds.of_bound(nest)
        order = panel_order(program, nest, ref, folds)
        axes = ordered(ref, order)
        for s in axes:
            if isinstance(extent(s, inside), Size):
                raise Undecided("what a panel holds is known only when the kernel runs")
        last = axis_order(source)[-1] if order else 0
        filled = order.index(last) if order else 0
        layout = padded(source.type, tuple(extent(s, inside) for s in axes), axes, folds, filled)
        first = sum(
            stride * -c * (inside[name] - 1)
            for s, stride in zip(axes, layout.strides, strict=True)
            for name, c in s.terms
            if c < 0
        )
        return Footprint(axes, layout, first)


def panel_order(
    program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, folds: BlockFolds
) -> list[int]:
    """The axes of a tensor in the order of its panel's: as in memory, unless it is transposed."""
    order = axis_order(program.tensor(ref.tensor).layout)
    own = (*folds.registers, *folds.lanes)
    if any(f.level == "mma" for f in own):
        return order
    kept = {f.dim for f in own if f.step == 1 and f.count % LEAST == 0}
    held = math.prod(f.count for f in own if not nest.dim(f.dim).reduction)
    axis = transposed_axis(program, nest, ref, kept, held)
    return order if axis is None else [*(k for k in order if k != axis), axis]


def ordered(ref: ir.TensorRef, order: Sequence[int]) -> tuple[ir.Affine, ...]:
    """The subscripts of an operand that is affine, along the axes of its panel."""
    subscripts = (ref.subscripts[k] for k in order)
    return tuple(s for s in subscripts if isinstance(s, ir.Affine))


def extent(subscript: ir.Affine, inside: Mapping[str, int]) -> int:
    """Elements that a subscript reaches."""
    return 1 + sum(abs(c) * (inside[name] - 1) for name, c in subscript.terms)


def moving(nest: ir.Nest, subscript: ir.Affine) -> str | None:
    """The dimension that alone decides, in a block, where along an axis an element lies: none where
    several do, or where it goes by steps."""
    if len(subscript.terms) == 1:
        return subscript.terms[0][0]

    def within(name: str) -> bool:
        folds = (f for f in nest.folds(name) if f not in nest.chunks)
        return not all(provably_equal(f.count, 1) for f in folds)

    names = [(name, c) for name, c in subscript.terms if within(name)]
    return names[0][0] if len(names) == 1 and provably_equal(names[0][1], 1) else None


def panel_bytes(layout: ir.Layout) -> int:
    """Bytes of one copy of a panel."""
    size = layout.itemsize
    for count, stride in zip(layout.extents, layout.strides, strict=True):
        size = max(size, count * stride)
    unit = max(SHARED_LINE, layout.base)
    return -(-size // unit) * unit


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
