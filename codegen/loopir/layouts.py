"""How the tensors of a def lie in memory: what kernels are made for, on a CPU and on a GPU.

Every element lies at a multiple of its own size: the check of a call's arguments sees to that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tcl.codegen.loopir import ir
from tcl.common.errors import ArgumentError
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import provably_at_least

WIDEST = 16
"""Bytes of a GPU's widest access. A tensor either begins at a multiple of them, or else is known to
begin at one of its elements' size only."""


def cpu_layouts(
    sized: SizedDef, strides: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, ir.Layout]:
    """The layouts of all tensors on a CPU. ``strides``: in bytes, of those that need not be
    row-major."""
    found = {}
    for tensor in sized.checked.inputs + sized.checked.outputs:
        shape, origin = sized.shapes[tensor.name], sized.origins[tensor.name]
        layout = ir.contiguous(tensor.type, shape, origin)
        if strides and tensor.name in strides:
            given = tuple(strides[tensor.name])
            if len(given) != len(shape):
                raise ArgumentError(f"{tensor.name} has {len(shape)} dimensions: {given}")
            layout = replace(layout, strides=given)
        found[tensor.name] = replace(layout, alignment=layout.itemsize)
    return found


def gpu_layouts(
    sized: SizedDef,
    strides: Mapping[str, tuple[int, ...]] | None = None,
    wide: Collection[str] | None = None,
) -> dict[str, ir.Layout]:
    """The layouts of all tensors on a GPU, as ``cpu_layouts``.

    ``wide``: the tensors that begin at multiples of ``WIDEST``. None: those that do where the
    memory of each begins at one, as memory of its own does; with negative strides, the first
    element is not the first in memory.
    """
    found = cpu_layouts(sized, strides)
    for name, layout in found.items():
        ends = zip(layout.strides, layout.extents, strict=True)
        below = sum(s * (n - 1) for s, n in ends if s < 0)
        fits = below % WIDEST == 0 if wide is None else name in wide
        found[name] = replace(layout, base=WIDEST if fits else layout.itemsize)
    return found


def axis_order(source: ir.Layout) -> list[int]:
    """The axes of a tensor in the order of its panel's. Lines of memory stay lines: the one that
    is contiguous comes last."""
    if all(provably_at_least(abs(a), abs(b)) for a, b in pairwise(source.strides)):
        return list(range(len(source.strides)))  # whichever of the strides are equal
    return sorted(range(len(source.strides)), key=lambda k: -abs(source.strides[k]))


def packed(folds: Sequence[ir.Fold]) -> tuple[ir.Affine, int]:
    """The place of an element in memory with an axis for each of these folds, the last one in
    order, and how many elements there are."""
    axes, size = {}, 1
    for fold in reversed(folds):
        # Offsets of folds count points: an axis may need room for points that there are not.
        axes[fold.name] = -(-size // fold.step)
        size = axes[fold.name] * fold.step * fold.count
    return ir.Affine(tuple(sorted(axes.items()))), size
