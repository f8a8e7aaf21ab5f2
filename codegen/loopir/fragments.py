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
from tcl.grammar.syntax.types import FLOAT32


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
    return load.total and load.ref.is_affine


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
    if width == 1 and length == math.prod(f.count for f, _ in row):
        row, length = (), 1
    along = {f for f, _ in row}
    rest = tuple(f for f in over if f not in along)
    return Fragment(load, rest, row, length, width, tuple(guarded))


MANY_SUMS = 128
"""Results of a thread whose sums leave few registers to its operands."""


def row_loop(
    geometry: Geometry,
    loops: Sequence[ir.Loop],
    body: Sequence[ir.Statement],
    found: Iterable[Fragment],
) -> ir.Fold | None:
    """Of float32 sums of products of two operands in a block's memory, one that is read in rows
    along the sum, and one that is read along the results: the loop whose every iteration has rows
    of its own. It is best the outermost, and reads them in each iteration. None for others.

    Registers lie in two banks, by odd and even numbers, and each cycle reads one register of each.
    A product has a factor that the product before it had, so it takes one cycle if its sum lies in
    another bank than its other factor: compilers see to that where registers are left. Fewer than
    ``MANY_SUMS`` sums leave enough: products of 512 took longer on an H100, those of 1024 .95."""

    def summed(fold: ir.Fold) -> bool:
        return geometry.dims[fold.dim].reduction

    (point, *others) = body
    if not loops or summed(loops[-1].fold) or others or not isinstance(point, ir.Accumulate):
        return None
    value = point.value
    product = point.op == "+" and isinstance(value, ir.Binary) and value.op == "*"
    if not product or value.type != FLOAT32:
        return None
    along, across = list[Fragment](), list[Fragment]()
    for fragment in found:
        is_along = any(summed(fold) for fold, _ in fragment.row)
        (along if is_along else across).append(fragment)
    if len(along) != 1 or len(across) != 1 or not across[0].row:
        return None
    if not all(geometry.program.tensor(f.load.ref.tensor).shared for f in (*along, *across)):
        return None
    results = math.prod(x.fold.count for x in loops if not summed(x.fold))
    own = [f for f in along[0].over if not summed(f) and f.count > 1]
    if len(own) != 1 or own[0] in across[0].over or own[0] == loops[-1].fold or results < MANY_SUMS:
        return None
    return own[0]
