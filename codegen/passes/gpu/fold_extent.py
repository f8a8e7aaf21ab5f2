"""How far folds reach."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tcl.codegen.loopir import ir


def largest_offset(folds: Sequence[ir.Fold], outer: Container[ir.Fold] = ()) -> int:
    """The largest sum of offsets of those folds of a dimension that are not ``outer``, where
    there are threads and registers for points that there are not."""
    return sum(f.step * (f.count - 1) for f in folds if f not in outer)


def ragged(dim: ir.Dim, folds: Sequence[ir.Fold]) -> bool:
    """Whether some iterations of the folds lie beyond the dimension."""
    return largest_offset(folds) >= dim.extent
