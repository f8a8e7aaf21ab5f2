"""Where arrays lie while kernels run on them, and how calls are timed.

This is the host's: its memory and its clock. Another device's takes its place by being part of a
``tcl.tuner.measure.backend.Problem``.

Outputs are filled with NaN, or a pattern for other types, before a kernel runs, so that elements
that it does not write are found; the memory before and behind them is filled too, so that stray
writes are.
"""

from __future__ import annotations

import math
import resource
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.devices.cpu import LINE
from tcl.tuner.measure.correctness import EPSILON, Array
from tcl.tuner.measure.placement import ALIGNED, NUMPY, Placement

Run: TypeAlias = Callable[[], object]
Timer: TypeAlias = Callable[[Run, int], float]
"""From what is called and how often to seconds per call."""


class Bench:
    """The host's memory and clock. ``one_thread``: kernels run on their caller's thread alone."""

    placements: tuple[Placement, ...] = (ALIGNED, NUMPY)
    """Where arrays may lie when a kernel is called: all of them are timed."""
    _one_thread = False

    def __init__(self, *, one_thread: bool = False) -> None:
        self._one_thread = one_thread

    def guarded(self, like: Array, placement: Placement) -> Guarded:
        """Memory for an array of this shape, with these strides and this type."""
        return Guarded(like, placement)

    def bound(
        self, kernel: Callable[..., object], inputs: Sequence[Guarded], outputs: Sequence[Guarded]
    ) -> Run:
        return partial(kernel, [h.array for h in inputs], [h.array for h in outputs])

    def seconds(self, run: Run, calls: int) -> float:
        """As a ``Timer``."""
        return (without_preemption if self._one_thread else by_clock())(run, calls)

    def alone(self) -> AbstractContextManager[object]:
        """A block in which nobody else measures on the device."""
        return nullcontext()

    def failed(self, error: Exception) -> None:
        """A kernel failed like that. Does not return if this process can run none any more."""


def by_clock(clock: Callable[[], float] = time.perf_counter) -> Timer:
    """Times what has ended when it returns."""

    def seconds(run: Run, calls: int) -> float:
        begin = clock()
        for _ in range(calls):
            run()
        return (clock() - begin) / calls

    return seconds


def without_preemption(run: Run, calls: int) -> float:
    """A ``Timer`` of what the calling thread does itself: where the system took the core away from
    it meanwhile, the time that the thread ran counts, not the time that passed."""
    (waited, preempted), used, begin = _switches(), time.thread_time(), time.perf_counter()
    for _ in range(calls):
        run()
    passed, used = time.perf_counter() - begin, time.thread_time() - used
    now = _switches()
    # One that waits for something, as for a disk, is not slow for lack of a core.
    alone = now[0] > waited or now[1] == preempted
    return (passed if alone else min(passed, used)) / calls


def _switches() -> tuple[int, int]:
    """How often this thread gave its core away to wait, and how often the system took it; 0 where
    the system does not say."""
    if not hasattr(resource, "RUSAGE_THREAD"):
        return 0, 0
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw, usage.ru_nivcsw


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
