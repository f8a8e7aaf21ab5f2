"""Where panels lie in shared memory, so that threads do not wait for each other's banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.passes.gpu.bind import BlockFolds
from tcl.grammar.syntax.types import ScalarType

BANKS = 32
WORD = 4
"""Bytes that a bank hands over at once."""
_PADS = (0, 4, 8, 16, 32)
"""Bytes that may be added to each row."""


def padded(
    type_: ScalarType,
    extents: tuple[int, ...],
    axes: Sequence[ir.Affine],
    folds: BlockFolds,
) -> ir.Layout:
    """A row-major layout of a panel whose axes go along with these subscripts. Its rows have so
    much room that the fewest threads of a warp that read it at once need the same bank. Rows that
    are whole vectors stay so."""
    plain = replace(ir.contiguous(type_, extents, [0] * len(extents)), base=16)
    if len(extents) < 2:
        return plain
    row = extents[-1] * plain.itemsize
    whole = next(v for v in (16, 8, 4, 2, 1) if row % v == 0)
    found: tuple[int, ir.Layout] | None = None
    for pad in _PADS:
        if pad % whole == 0:
            strides = [plain.itemsize]
            size = row + pad
            for extent in reversed(plain.extents[1:-1]):
                strides.append(size)
                size *= extent
            strides.append(size)
            layout = replace(plain, strides=tuple(reversed(strides)))
            count = conflicts(layout, axes, folds)
            if found is None or count < found[0]:
                found = count, layout
            if count == 1:
                break
    assert found is not None  # without room
    return found[1]


def conflicts(layout: ir.Layout, axes: Sequence[ir.Affine], folds: BlockFolds) -> int:
    """The accesses to the busiest bank when a warp reads one element, or one vector, per thread."""
    steps, size = steps_of(layout, axes), layout.itemsize
    fixed = (*folds.registers, *folds.lanes)
    along = (f.count for f in fixed if f.step == 1 and steps.get(f.dim) == size)
    width = min(16, size * max(along, default=1))
    addresses = _of_tensor_cores(steps, folds, size)
    if addresses is None:
        addresses = _of_threads(steps, folds.threads)
    elif size == 2:
        width = 16
    words = {(a + k) // WORD for a in addresses for k in range(0, width, WORD)}
    per_bank = [0] * BANKS
    for word in words:
        per_bank[word % BANKS] += 1
    return max(per_bank)


def steps_of(layout: ir.Layout, axes: Sequence[ir.Affine]) -> dict[str, int]:
    """Bytes from one point of a dimension to the next one, for those that move."""
    found: dict[str, int] = {}
    for subscript, stride in zip(axes, layout.strides, strict=True):
        for name, c in subscript.terms:
            found[name] = found.get(name, 0) + c * stride
    return found


def _of_threads(steps: Mapping[str, int], folds: Sequence[ir.Fold]) -> list[int]:
    """The offset of each thread of a warp, in their order."""
    offsets = [0]
    for fold in reversed(folds):
        if len(offsets) >= BANKS:
            break
        step = steps.get(fold.dim, 0) * fold.step
        offsets = [o + step * k for k in range(min(fold.count, BANKS)) for o in offsets]
    return offsets[:BANKS]


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
