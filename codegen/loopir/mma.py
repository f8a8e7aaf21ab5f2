"""Products on tensor cores: what a warp, or four of them, multiply at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.terms import factors
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import FLOAT32


@dataclass(frozen=True, slots=True)
class Factor:
    """The fragments of a factor that a thread has."""

    load: ir.Load
    dim: str
    """The rows' or the columns' dimension."""
    kept: ir.Fold | None
    """The registers along it."""
    words: int
    """Of each fragment."""
    along_depth: bool
    """Whether rows of the panel go along the reduction."""

    @property
    def pairs(self) -> bool:
        """Whether two of them are read at once."""
        even = self.kept is not None and self.kept.count % 2 == 0
        return self.words == 2 and even and self.load.type != FLOAT32

    @property
    def read(self) -> ir.Fold | None:
        """The registers, or pairs of them: what a thread reads one after the other."""
        if self.kept is None or not self.pairs:
            return self.kept
        return ir.Fold(self.dim, self.kept.level, 2 * self.kept.step, self.kept.count // 2)

    def matrices(self, lane: Any) -> tuple[Any, Any]:
        """Of 16-bit factors, the row or column and the point of the reduction at which the row of a
        matrix of 8 x 8 begins whose address a thread gives. ``lane``: the number of the thread in
        its warp; what it is written with makes the results."""
        if self.pairs:
            row = lane // 16 * 8 + lane % 8 if self.along_depth else lane // 16 * 8
            return row, lane // 8 % 2 * 8 if self.along_depth else lane % 16
        if self.words == 4:  # rows 0-7, 8-15 of points 0-7, then of points 8-15
            row = lane % 16 if self.along_depth else lane // 8 % 2 * 8
            return row, lane // 16 * 8 if self.along_depth else lane // 16 * 8 + lane % 8
        # Points 0-7, 8-15 of the 8 columns.
        return (lane % 8, lane // 8 % 2 * 8) if self.along_depth else (lane * 0, lane % 16)

    def singles(self, lane: Any) -> list[tuple[Any, Any]]:
        """Likewise of float32 factors: those of the numbers that a thread reads."""
        if self.words == 2:
            return [(lane // 4, lane % 4 + 4 * k) for k in range(2)]
        return [(lane // 4 + 8 * (k % 2), lane % 4 + 4 * (k // 2)) for k in range(4)]


@dataclass(frozen=True, slots=True)
class Product:
    """The innermost part of a nest whose sums of products tensor cores add up."""

    accumulate: ir.Accumulate
    depth: ir.Fold
    """The points of the reduction that are added up at once."""
    factors: tuple[Factor, Factor]
    """The one that has the rows, and the one that has the columns."""

    @staticmethod
    def of(geometry: Geometry, loops: Sequence[ir.Loop], parts: Sequence[ir.Statement]) -> Product:
        """Of the innermost loops, with those over registers, and what is in them."""
        if len(parts) != 1 or not isinstance(parts[0], ir.Accumulate):
            raise ir.IRError("tensor cores do nothing but add up products")
        folds = [x.fold for x in loops]
        rows = next(f.dim for f in folds if f.level == "half")
        columns = next(x.fold.dim for x in loops if x.kind is ir.Kind.VECTOR)
        depth = next(f for f in folds if f.level == "mma")
        kept = {f.dim: f for f in folds if f.level == "register"}
        both = factors(parts[0].value)
        assert both is not None
        layouts = [geometry.program.tensor(load.ref.tensor).layout for load in both]
        along = [s.step(load.ref, depth.name) == 1 for s, load in zip(layouts, both, strict=True)]
        place = layouts[0].place(both[0].ref)
        r = int(all(geometry.dim_of(name) != rows for name, _ in place.terms))
        c = 1 - r
        by_row = Factor(both[r], rows, kept.get(rows), 4, along[r])
        by_column = Factor(both[c], columns, kept.get(columns), 2, along[c])
        return Product(parts[0], depth, (by_row, by_column))
