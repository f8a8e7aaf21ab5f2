"""What a thread of a GPU reads of operands before it computes: registers, filled in vectors where
memory allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import loads, values_in
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, provably_equal


@dataclass(frozen=True, slots=True)
class Fragment:
    """An operand, as it is read in some unrolled loops and lanes."""

    load: ir.Load
    over: tuple[ir.Fold, ...]
    """The folds that it depends on, those of ``row`` aside."""
    row: tuple[tuple[ir.Fold, int], ...]
    """Folds whose iterations touch neighbours, and by how many elements each moves. Several may
    come to the same element, as those of a window and its results do: it is read once."""
    length: int
    """The elements of a row; 1 without one."""
    width: int
    """Elements that are read at once, the most."""
    guarded: tuple[str, ...]
    """Dimensions whose points have to be there; elsewhere it is zero."""

    def pieces(self) -> list[tuple[int, int]]:
        """(first element, how many) of what is read at once of a row."""
        return row_pieces(self.length, self.width)


def row_pieces(length: int, width: int) -> list[tuple[int, int]]:
    """(first element, how many) of what is read at once of a row, ``width`` elements at most."""
    found, first = [], 0
    while first < length:
        while width > length - first:
            width //= 2
        found.append((first, width))
        first += width
    return found


def row_of(steps: Iterable[tuple[int, ir.Fold]]) -> tuple[tuple[tuple[ir.Fold, int], ...], int]:
    """The folds that go through neighbours together, with the elements that each moves by, and how
    many elements these are. ``steps``: the elements by which folds move, those that are whole."""
    found, length = list[tuple[ir.Fold, int]](), 1
    for step, fold in sorted((x for x in steps if x[0] > 0), key=lambda each: each[0]):
        if step > length or (not found and step != 1):
            break
        found.append((fold, step))
        length += step * (fold.count - 1)
    return tuple(found), length


def hoistable(load: ir.Load) -> bool:
    """Whether an element can be read before it is known that it is needed."""
    return load.total and all(isinstance(s, ir.Affine) for s in load.ref.subscripts)


def fragments(
    geometry: Geometry, loops: Sequence[ir.Loop], body: Sequence[ir.Statement]
) -> list[Fragment]:
    """What can be read before unrolled loops and lanes around a body."""
    if not loops:
        return []
    values = (v for statement in body for v in values_in(statement))
    found = {x.ref: x for v in values for x in loads(v) if hoistable(x)}
    return [_fragment(geometry, load, loops) for load in found.values()]


def _fragment(geometry: Geometry, load: ir.Load, loops: Sequence[ir.Loop]) -> Fragment:
    tensor = geometry.program.tensor(load.ref.tensor)
    place = tensor.layout.place(load.ref)
    over = [x.fold for x in loops if not provably_equal(geometry.stride(place, x.fold), 0)]
    dims = {f.dim for f, _ in geometry.strides(place)}
    guarded = [d for d in geometry.dims if d in dims and geometry.ragged[d] and not tensor.shared]
    size = tensor.layout.itemsize
    steps = [(geometry.stride(place, f), f) for f in over]
    known = [(s, f) for s, f in steps if not isinstance(s, Size) and s % size == 0]
    row, length = row_of((s // size, f) for s, f in known)
    if len(row) > 1 and any(f.dim in guarded for f, _ in row):  # a test is of a whole vector
        row, length = row[:1], row[0][0].count
    width = geometry.width(tensor.layout, place, [f for f, _ in row], guarded) if row else 1
    while width > length:
        width //= 2
    if width == 1 and length == row_points(row):
        row, length = (), 1
    along = {f for f, _ in row}
    rest = tuple(f for f in over if f not in along)
    return Fragment(load, rest, row, length, width, tuple(guarded))


def row_points(row: Sequence[tuple[ir.Fold, int]]) -> int:
    """The points of the loops along a row."""
    return math.prod(f.count for f, _ in row)
