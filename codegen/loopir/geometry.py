"""The dimensions and folds of a kernel that is built, and what subscripts make of them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence

from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import (
    Size,
    largest,
    provably_at_least,
    provably_divides,
    provably_equal,
)


class Geometry:
    """The dimensions and folds of a kernel, and what subscripts make of them."""

    def __init__(self, program: ir.Built, kernel: ir.Kernel) -> None:
        self.program, self.kernel = program, kernel
        self.dims = {d.name: d for s in kernel.spaces for d in s.dims}
        self.space_of = {d.name: s for s in kernel.spaces for d in s.dims}
        self.threads = {f for s in kernel.spaces for f in s.threads}
        self.folds = {d: self.space_of[d].folds(d) for d in self.dims}
        self.fold = {f.name: f for folds in self.folds.values() for f in folds}
        self.ragged = {
            d: not provably_at_least(dim.extent, self.space_of[d].reach(d))
            for d, dim in self.dims.items()
        }
        """Whether there may be threads, registers or lanes for points that there are not."""

    def all_there(self, dim: str) -> Geometry:
        """The same where all points of a dimension are there, though elsewhere some are not."""
        made = copy.copy(self)
        made.ragged = {**self.ragged, dim: False}
        return made

    def iterations(self, fold: ir.Fold) -> int:
        """How many iterations of a fold may have points, whatever the other folds are at."""
        needed = largest(1, -(-self.dims[fold.dim].extent // fold.step))
        written_out = isinstance(needed, Size) and not isinstance(fold.count, Size)
        return needed if provably_at_least(fold.count, needed) and not written_out else fold.count

    def dim_of(self, name: str) -> str:
        """The dimension of a name in an index expression."""
        return self.fold[name].dim if name in self.fold else name

    def stride(self, place: ir.Affine, fold: ir.Fold) -> int:
        """What one iteration of a fold adds to an index expression."""
        c = place.coefficient(fold.dim) + place.coefficient(fold.name)
        return c * fold.step

    def strides(self, place: ir.Affine) -> Iterator[tuple[ir.Fold, int]]:
        """What the folds of all loops add."""
        for dim in {self.dim_of(name) for name, _ in place.terms}:
            for fold in self.folds[dim]:
                stride = self.stride(place, fold)
                if not provably_equal(fold.count, 1) and not provably_equal(stride, 0):
                    yield fold, stride

    def value_at_start(self, place: ir.Affine) -> int:
        """The value of an index expression where all folds begin."""
        return place.constant + sum(
            c * self.dims[name].first for name, c in place.terms if name in self.dims
        )

    def gathered(self, parts: Iterable[ir.Statement], lane: ir.Fold) -> dict[ir.TensorRef, int]:
        """Elements that statements write in vectors, and how many at once."""
        found = {}
        for ref in (s.ref for s in parts if isinstance(s, ir.Store)):
            if ref.is_affine:
                layout = self.program.tensor(ref.tensor).layout
                found[ref] = self.width(layout, layout.place(ref), [lane])
        return {ref: width for ref, width in found.items() if width > 1}

    def width(
        self,
        layout: ir.Layout,
        place: ir.Affine,
        row: Sequence[ir.Fold],
        guarded: Collection[str] | None = None,
    ) -> int:
        """How many elements along a row can be moved at once: these follow each other, begin at a
        multiple of their size, and are there all or none. ``row``: the folds that go along it, that
        with steps of one element first; ``guarded``: the dimensions whose points may not be there,
        all that are ragged without it."""
        size, first = layout.itemsize, row[0]
        if not provably_equal(self.stride(place, first), size) or first.step != 1:
            return 1
        rest = [s for f, s in self.strides(place) if f not in row]
        rest.append(self.value_at_start(place))
        ragged = self.ragged[first.dim] if guarded is None else first.dim in guarded
        ends = self.dims[first.dim].extent if ragged else 0
        width = max(1, 16 // size)
        while width > 1 and (
            (len(row) == 1 and first.count % width)
            or layout.base % (width * size)
            or not all(provably_divides(width * size, s) for s in rest)
            or not provably_divides(width, ends)
        ):
            width //= 2
        return width
