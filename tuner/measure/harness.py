"""Where arrays lie while kernels run on them, and how calls are timed.

This is the host's: its memory and its clock. Another device's takes its place by being part of a
``tcl.tuner.measure.backend.Problem``.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.guarded import Guarded
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
        """A call of a kernel on these arrays."""
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
