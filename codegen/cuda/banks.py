"""Where panels lie in shared memory, so that threads do not wait for each other's banks."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from tcl.codegen import ir
from tcl.codegen.cuda.bind import thread_folds
from tcl.grammar.types import ScalarType

BANKS = 32
WORD = 4
"""Bytes that a bank hands over at once."""
_PADS = (0, 4, 8, 16, 32)
"""Bytes that may be added to each row."""


def padded(
    type_: ScalarType, extents: tuple[int, ...], places: ir.TensorRef, nest: ir.Nest
) -> ir.Layout:
    """A row-major layout of a panel, whose rows have so much room that the fewest threads of a
    warp that read it at once need the same bank. Rows that are whole vectors stay so."""
    plain = replace(ir.contiguous(type_, extents, [0] * len(extents)), base=16)
    if len(extents) < 2:
        return plain
    row = extents[-1] * plain.itemsize
    whole = next(v for v in (16, 8, 4, 2, 1) if row % v == 0)
    found = []
    for pad in _PADS:
        if pad % whole == 0 or pad == 0:
            layout = _with_rows(plain, row + pad)
            found.append((conflicts(layout, places, nest), pad, layout))
    return min(found, key=lambda x: x[:2])[2]


def _with_rows(plain: ir.Layout, row: int) -> ir.Layout:
    strides = [plain.itemsize]
    size = row
    for extent in reversed(plain.extents[1:-1]):
        strides.append(size)
        size *= extent
    strides.append(size)
    return replace(plain, strides=tuple(reversed(strides)))


def conflicts(layout: ir.Layout, places: ir.TensorRef, nest: ir.Nest) -> int:
    """The accesses to the busiest bank when a warp reads one element, or one vector, per thread."""
    place = layout.place(places)
    fixed = (x.fold for x in nest.loops if x.kind in (ir.Kind.VECTOR, ir.Kind.UNROLL))
    along = (f for f in fixed if f.step == 1 and place.coefficient(f.name) == layout.itemsize)
    width = min(16, layout.itemsize * max((f.count for f in along), default=1))
    addresses = islice(_of_threads(place, thread_folds(nest)), BANKS)
    words = {(a + k) // WORD for a in addresses for k in range(0, width, WORD)}
    per_bank = [0] * BANKS
    for word in words:
        per_bank[word % BANKS] += 1
    return max(per_bank)


def _of_threads(place: ir.Affine, folds: tuple[ir.Fold, ...]) -> list[int]:
    """The offset of each thread, in their order."""
    offsets = [0]
    for fold in folds:
        c = place.coefficient(fold.name)
        offsets = [o + c * k * fold.step for o in offsets for k in range(fold.count)]
    return offsets
