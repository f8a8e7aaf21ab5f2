"""Where panels lie in shared memory, so that threads do not wait for each other's banks."""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.passes.gpu.bind import thread_folds
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
    addresses = _of_tensor_cores(place, nest, layout.itemsize)
    if addresses is None:
        addresses = _of_threads(place, thread_folds(nest))[:BANKS]
    elif layout.itemsize == 2:
        width = 16
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


def _of_tensor_cores(place: ir.Affine, nest: ir.Nest, itemsize: int) -> list[int] | None:
    """The offsets that a warp reads at once for tensor cores; None for other nests."""
    depth = next((x.fold for x in nest.loops if x.fold.level == "mma"), None)
    if depth is None:
        return None
    along = place.coefficient(depth.name)
    threads = (x.fold for x in nest.loops if x.fold.level == "thread")
    across = next((c for f in threads if (c := place.coefficient(f.name))), 0)
    if itemsize == 2:  # eight rows of a matrix
        step = across if along == itemsize else along
        return [step * k for k in range(8)]
    return [across * (k // 4) + along * (k % 4) for k in range(BANKS)]
