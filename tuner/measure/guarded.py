"""Memory that kernels are tried on: where arrays lie, and poison that shows what they write.

Outputs are filled with NaN, or a pattern for other types, before a kernel runs, so that elements
that it does not write are found; the memory before and behind them is filled too, so that stray
writes are.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from tcl.codegen.devices.cpu import LINE
from tcl.tuner.measure.correctness import EPSILON, Array
from tcl.tuner.measure.placement import ALIGNED, Placement

_MARGIN = 256
"""Bytes of poison on either side of an output."""
_POISONS = 0xA7, 0x5B
_ROW = 1 << 15
"""Bytes of a row of what is summed up ..."""
_ROWS = 16
"""... so many at a time, which a cache holds."""


class Guarded:
    """Memory with an array of the shape, strides and type of ``like`` in it, and poison on either
    side. The array's first byte lies where ``placement`` says."""

    def __init__(self, like: Array, placement: Placement = ALIGNED) -> None:
        reach = [(n - 1) * s for n, s in zip(like.shape, like.strides, strict=True) if n > 1]
        below = -sum(r for r in reach if r < 0)
        size = below + sum(r for r in reach if r > 0) + like.itemsize
        self.raw = np.empty(size + 2 * _MARGIN + 2 * LINE, dtype=np.uint8)
        """All bytes, margins included."""
        shift = (placement.past - self.raw.ctypes.data - _MARGIN) % LINE
        self.start: int = _MARGIN + shift
        """Where the array's own bytes begin among them."""
        self._stop = self.start + size
        self._inner: Array = np.ndarray(
            like.shape, like.dtype, self.raw.data, self.start + below, like.strides
        )

    @property
    def array(self) -> Any:
        """What kernels take."""
        return self._inner

    def poison(self, *, second: bool = False) -> None:
        """Fill everything: floats with NaN, the rest and the margins with a pattern. ``second``:
        with other values than otherwise, so that what a kernel leaves alone in both is seen even
        if either is a result."""
        self._filled = _POISONS[second]
        self.raw.fill(self._filled)
        if self._inner.dtype.name in EPSILON:
            self._inner.fill(math.inf if second else math.nan)

    def hold(self, values: Array) -> None:
        """Poison the margins, and give the array these values."""
        self._filled = _POISONS[0]
        self.raw.fill(self._filled)
        np.copyto(self._inner, values)

    def values(self) -> Array:
        """What the array holds now, in the host's memory."""
        return self._inner

    def checksum(self) -> int:
        """Of every byte, margins included."""
        return fingerprint(self.raw)

    def intact(self) -> bool:
        """Whether the margins were still poisoned when ``values`` was last asked for."""
        before, behind = self.raw[: self.start], self.raw[self._stop :]
        return bool((before == self._filled).all() and (behind == self._filled).all())


def bytes_of(values: Array) -> Array:
    """Of an array, in row-major order."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def fingerprint(raw: Array) -> int:
    """Of bytes: which of them changed shows, in the sums of rows and in the differences of columns,
    that these words are laid out in. Four times as fast as a CRC."""
    words = raw[: raw.size // _ROW * _ROW].view(np.uint64).reshape(-1, _ROW // 8)
    columns = np.zeros(_ROW // 8, np.uint64)
    found = zlib.crc32(raw[words.nbytes :].data)
    for begin in range(0, len(words), _ROWS):
        block = words[begin : begin + _ROWS]
        columns ^= np.bitwise_xor.reduce(block, axis=0)
        found = zlib.crc32(np.add.reduce(block, axis=1).data, found)
    return zlib.crc32(columns.data, found)
