"""Where panels lie in shared memory, so that threads do not wait for each other's banks."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tcl.codegen.common.warps import SLAB_TURN
from tcl.codegen.devices.banks import BANKS, VECTOR, matrix_wavefronts, swizzled, wavefronts
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.fragments import row_of, row_pieces
from tcl.codegen.passes.gpu.bind import BlockFolds
from tcl.grammar.syntax.types import ScalarType

_PADS = (0, 4, 8, 16, 32)
"""Bytes that may be added to each row, beside what makes whole vectors of it."""


@functools.lru_cache(maxsize=1024)
def padded(
    type_: ScalarType,
    extents: tuple[int, ...],
    axes: tuple[ir.Affine, ...],
    folds: BlockFolds,
    filled: int,
) -> ir.Layout:
    """A row-major layout of a panel whose axes go along with these subscripts. Its rows have so
    much room that a warp reads it in the fewest wavefronts, and then writes it so, its threads
    along the axis ``filled``. Rows that are whole vectors stay so. Rows that tensor cores read need
    no room if vectors can change places in them instead. Then copies write whole lines: those of
    16 bytes to rows with some room take 2.6 times as many wavefronts, and read 1.5 times as many
    sectors (measured on an H100)."""
    plain = replace(ir.contiguous(type_, extents, [0] * len(extents)), base=VECTOR)
    if any(f.by_warpgroup for f in folds.registers):
        return replace(plain, base=SLAB_TURN, swizzle=extents[-1] * plain.itemsize, slabs=True)
    if len(extents) < 2:
        return plain
    if extents[-1] == 1:  # the rows are those of the axis before
        rows = padded(type_, extents[:-1], axes[:-1], folds, min(filled, len(extents) - 2))
        return replace(plain, strides=(*rows.strides, plain.itemsize), swizzle=rows.swizzle)
    row = extents[-1] * plain.itemsize
    whole = next(v for v in (16, 8, 4, 2, 1) if row % v == 0)
    sizes = {row + pad for pad in _PADS if pad % whole == 0}
    sizes |= {-(-row // VECTOR) * VECTOR + pad for pad in _PADS if pad % VECTOR == 0}
    found: tuple[tuple[float, float], ir.Layout] | None = None
    if row > VECTOR and row & (row - 1) == 0 and _on_tensor_cores(folds, plain.itemsize):
        layout = replace(plain, swizzle=row)
        found = (wavefronts_each(layout, axes, folds), 0), layout
    for size in sorted(sizes):
        strides = [plain.itemsize]
        for extent in reversed(plain.extents[1:-1]):
            strides.append(size)
            size *= extent
        strides.append(size)
        layout = replace(plain, strides=tuple(reversed(strides)))
        written = 0
        if filled != len(extents) - 1:
            along, row = extents[filled], layout.strides[filled]
            places = (row * (k % along) + plain.itemsize * (k // along) for k in range(BANKS))
            written = _of_a_warp(tuple(places), plain.itemsize)
        asked = wavefronts_each(layout, axes, folds), written
        if found is None or asked < found[0]:
            found = asked, layout
    assert found is not None  # without room
    return found[1]


def wavefronts_each(layout: ir.Layout, axes: Sequence[ir.Affine], folds: BlockFolds) -> float:
    """The wavefronts in which a warp reads what its threads have of a panel at once."""
    steps, size = steps_of(layout, axes), layout.itemsize
    addresses = _of_tensor_cores(steps, folds, size)
    if addresses is not None and _on_tensor_cores(folds, size):
        rows = np.array([addresses])
        if layout.swizzle:
            rows = swizzled(rows, layout.swizzle)
        return int(matrix_wavefronts(rows, rows >= 0, 1)[0])
    pieces, apart = [(0, 1)], 1
    if addresses is None:
        addresses = _of_threads(steps, folds.threads)
        pieces, apart = _read(layout, steps, folds)
    return apart * sum(_of_a_warp(tuple(addresses), width * size) for _, width in pieces)


@functools.lru_cache(maxsize=4096)
def _of_a_warp(addresses: tuple[int, ...], size: int) -> int:
    """The wavefronts in which the first threads of a warp read ``size`` bytes each. Panels of many
    candidates and nests are read alike."""
    count = len(addresses)
    offsets = np.pad(np.array([addresses]), ((0, 0), (0, BANKS - count)))
    return int(wavefronts(offsets, np.arange(BANKS)[None] < count, size)[0])


def _read(
    layout: ir.Layout, steps: Mapping[str, int], folds: BlockFolds
) -> tuple[list[tuple[int, int]], int]:
    """What a thread reads of each row, and how many rows: as ``loopir.fragments`` finds them."""
    size = layout.itemsize
    own = [(steps.get(f.dim, 0) * f.step // size, f) for f in (*folds.registers, *folds.lanes)]
    row, length = row_of(own)
    along = {f for f, _ in row}
    rest = [step for step, f in own if f not in along]
    others = [steps.get(f.dim, 0) * f.step for f in folds.threads] + [x * size for x in rest]
    inside = {s for s, e in zip(layout.strides[:-1], layout.extents, strict=False) if e > 1}
    inside -= {size * step for _, step in row}
    width = max(1, VECTOR // size)
    while width > 1 and (width > length or any(s % (width * size) for s in (*others, *inside))):
        width //= 2
    places = {0}
    for step, fold in own:
        if step and fold not in along:
            places = {p + k * step for p in places for k in range(fold.count)}
    return row_pieces(length, width), len(places)


def steps_of(layout: ir.Layout, axes: Sequence[ir.Affine]) -> dict[str, int]:
    """Bytes from one point of a dimension to the next one, for those that move."""
    found: dict[str, int] = {}
    for subscript, stride in zip(axes, layout.strides, strict=True):
        for name, c in subscript.terms:
            found[name] = found.get(name, 0) + c * stride
    return found


def _of_threads(steps: Mapping[str, int], folds: Sequence[ir.Fold]) -> list[int]:
    """The offset of each thread of a warp, in their order: at most 32."""
    offsets = [0]
    for fold in reversed(folds):
        if len(offsets) >= BANKS:
            break
        step = steps.get(fold.dim, 0) * fold.step
        offsets = [o + step * k for k in range(min(fold.count, BANKS)) for o in offsets]
    return offsets[:BANKS]


def _on_tensor_cores(folds: BlockFolds, itemsize: int) -> bool:
    """Whether matrices of 16-bit numbers are read."""
    return itemsize == 2 and any(f.level == "mma" for f in folds.registers)


def _of_tensor_cores(
    steps: Mapping[str, int], folds: BlockFolds, itemsize: int
) -> list[int] | None:
    """The offsets that a warp reads at once for tensor cores; None for other nests."""
    depth = next((f for f in folds.registers if f.level == "mma"), None)
    if depth is None:
        return None
    along = steps.get(depth.dim, 0)
    threads = (f for f in folds.threads if f.level == "thread")
    across = next((c for f in threads if (c := steps.get(f.dim, 0))), 0)
    if itemsize == 2:  # eight rows of a matrix
        step = across if along == itemsize else along
        return [step * k for k in range(8)]
    return [across * (k // 4) + along * (k % 4) for k in range(BANKS)]
