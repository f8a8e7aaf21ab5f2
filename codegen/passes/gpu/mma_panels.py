"""Tensor cores: whether the panels of both factors lie so that they can be fed."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.gpu.mma_shape import factors
from tcl.grammar.types import FLOAT32

_ROW = 16
"""Bytes that are read at once of a row of a matrix."""


def check_mma(program: ir.Program, name: str, mma: Sequence[int], profile: GpuProfile) -> None:
    """``OptionsError`` unless both factors are staged so that tensor cores can be fed."""
    if len(mma) < 3:
        return
    nest = program.nest(name)
    found = factors(nest.point.value)
    assert found is not None  # refused when the nest was bound
    for load in found:
        staged = next((c for c in nest.staged if c.source.ref == load.ref), None)
        if staged is None:
            raise OptionsError(f"mma: nest {name}: {load.ref.tensor} is not staged")
        if load.type != FLOAT32 and _along(program, nest, staged.panel, mma) is None:
            raise OptionsError(
                f"mma: nest {name}: rows of {load.ref.tensor} do not lie in multiples of {_ROW} "
                "bytes in shared memory"
            )
        reduction = nest.dims[mma[2]].name
        ends = (s for s in load.ref.subscripts if isinstance(s, ir.Affine))
        if not any(s.terms and all(n == reduction for n, _ in s.terms) for s in ends):
            raise OptionsError(
                f"mma: nest {name}: no axis of {load.ref.tensor} is that of {reduction} alone"
            )


def _along(
    program: ir.Program, nest: ir.Nest, panel: ir.TensorRef, mma: Sequence[int]
) -> int | None:
    """The dimension of tensor cores along which a panel's rows are contiguous, if they begin at
    multiples of 16 bytes."""
    layout = program.tensor(panel.tensor).layout
    place = layout.place(panel)
    found = None
    for k in mma:
        for fold in nest.folds(nest.dims[k].name):
            step = place.coefficient(fold.name) * fold.step
            if not step:
                continue
            if abs(step) < _ROW and fold.level in ("thread", "lane", "mma"):
                if place.coefficient(fold.name) == layout.itemsize:
                    found = k
            elif step % _ROW:
                return None
    rest = [
        s
        for s, e in zip(layout.strides, layout.extents, strict=True)
        if s != layout.itemsize and e > 1
    ]
    if place.constant % _ROW or any(s % _ROW for s in rest):
        return None
    return found
