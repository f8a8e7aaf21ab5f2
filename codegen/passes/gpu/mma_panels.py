"""Tensor cores: whether the panels of both factors lie so that they can be fed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tcl.codegen.common.warps import WARPGROUP_DEPTH
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import axis_order
from tcl.codegen.loopir.terms import factors
from tcl.codegen.passes.gpu.banks import steps_of
from tcl.codegen.passes.gpu.bind import BlockFolds
from tcl.codegen.passes.gpu.panel import Footprint, ordered
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import provably_equal
from tcl.grammar.syntax.types import FLOAT32

_ROW = 16
"""Bytes that are read at once of a row of a matrix."""


@dataclass(frozen=True, slots=True)
class FeedTensorCores:
    """Refuses a nest whose factors are not staged so that tensor cores can be fed; changes
    nothing."""

    nest: str
    mma: tuple[int, ...]

    def __call__(self, program: ir.Program) -> ir.Program:
        if len(self.mma) < 3:
            return program
        nest = program.nest(self.nest)
        panels = {}
        for staged in nest.staged:
            ref, layout = staged.source.ref, program.tensor(staged.panel.tensor).layout
            axes = ordered(ref, axis_order(program.tensor(ref.tensor).layout))
            panels[ref] = Footprint(axes, layout, layout.place(staged.panel).constant)
        if reason := why_not_fed(nest, self.mma, panels, BlockFolds.of_bound(nest)):
            raise OptionsError(reason)
        return program


def why_not_fed(
    nest: ir.Nest, mma: Sequence[int], panels: Mapping[ir.TensorRef, Footprint], folds: BlockFolds
) -> str | None:
    """Why tensor cores cannot be fed from these panels, by what they are of; None if they can, or
    need not."""
    if len(mma) < 3:
        return None
    for load in factors(nest.point.value) or ():  # others are refused when the nest is bound
        panel = panels.get(load.ref)
        if panel is None:
            return f"mma: nest {nest.name}: {load.ref.tensor} is not staged"
        if panel.layout.slabs:
            if not _as_warpgroups_read(panel, nest, mma, folds):
                return (
                    f"mma: nest {nest.name}: the panel of {load.ref.tensor} does not have "
                    f"{WARPGROUP_DEPTH} points of the reduction and those of one other dimension"
                )
        elif load.type != FLOAT32 and not _in_rows(panel, {nest.dims[k].name for k in mma}, folds):
            return (
                f"mma: nest {nest.name}: rows of {load.ref.tensor} in shared memory do not "
                f"begin at multiples of {_ROW} bytes"
            )
        reduction = nest.dims[mma[2]].name
        # Panels are zero beyond such an axis, which sums need where loops go further.
        whole = provably_equal(nest.reach(reduction), nest.dim(reduction).extent)
        ends = load.ref.affine
        if not whole and not any(s.terms and all(n == reduction for n, _ in s.terms) for s in ends):
            return (
                f"mma: nest {nest.name}: no axis of {load.ref.tensor} depends on {reduction} alone"
            )
    return None


def _as_warpgroups_read(
    panel: Footprint, nest: ir.Nest, mma: Sequence[int], folds: BlockFolds
) -> bool:
    """Whether a panel is a matrix with the points of the reduction that are added up at once and
    those that a block has of rows or columns, either of them in order."""
    layout, steps = panel.layout, steps_of(panel.layout, panel.axes)
    size, depth = layout.itemsize, nest.dims[mma[2]].name
    points = dict.fromkeys(steps, 1)
    for fold in (*folds.threads, *folds.registers, *folds.lanes):
        if fold.dim in points:
            points[fold.dim] *= fold.count
    others = [name for name in points if points[name] > 1 and name != depth]
    if panel.first or len(others) != 1 or layout.elements != points[others[0]] * WARPGROUP_DEPTH:
        return False
    ways = (size, size * points[others[0]]), (size * WARPGROUP_DEPTH, size)
    return (steps[depth], steps[others[0]]) in (ways[0][::-1], ways[1][::-1])


def _in_rows(panel: Footprint, dims: Collection[str], folds: BlockFolds) -> bool:
    """Whether rows along one of the dimensions of tensor cores begin at multiples of 16 bytes.
    Loops around those of tensor cores move by whole matrices, which are such multiples."""
    layout, found = panel.layout, False
    steps = steps_of(layout, panel.axes)
    for fold in (*folds.threads, *folds.registers, *folds.lanes):
        step = steps.get(fold.dim, 0) * fold.step
        if fold.dim not in dims or not step:
            continue
        if abs(step) < _ROW and fold.level in ("thread", "lane", "mma"):
            found = found or steps[fold.dim] == layout.itemsize
        elif step % _ROW:
            return False
    pairs = zip(layout.strides, layout.extents, strict=True)
    rest = (s for s, e in pairs if s != layout.itemsize and e > 1)
    return found and not panel.first % _ROW and not any(s % _ROW for s in rest)
