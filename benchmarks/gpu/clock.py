"""Timing as the rest sees it: replay some work many times, and learn how long it took.

A replay is a CUDA graph of many launches where the device has graphs, so that nothing on the
host's side is part of it; the caches are emptied before. ``cuda_clocks`` has the clocks of
devices; the one here times the host, for rehearsals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from tcl.bench.task import Array
from tcl.common.dataclass import dataclass

Run: TypeAlias = Callable[[], object]

_REPLAY = 200e-6
"""Seconds that a replay takes at least. The events around it add about 2 µs."""
_LAUNCHES = 256
"""Of a replay, at most."""
_MEMORY = 4 << 30
"""Bytes of all the buffers of a replay, at most."""


class Sample(NamedTuple):
    """One replay, divided by how often the work is done in it."""

    seconds: float
    mhz: int | None = None
    """Clock of the multiprocessors meanwhile; None if unknown."""


@dataclass(frozen=True, slots=True)
class DeviceForm:
    """One way of a contender to do a task, with everything on the device."""

    runs: Callable[[int], Sequence[Run]]
    """So many functions that do it once each, on inputs and outputs of their own; the first is the
    same every time. They return before the device is done."""
    results: Callable[[], Sequence[Array]]
    """Do it once and return the task's results."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Work that is ready to be replayed."""

    play: Run
    launches: int
    """How often the work is done in a replay."""
    copies: int
    """On how many sets of buffers, in turns."""
    captured: bool
    """Whether it is one graph; else the host launches everything, one by one."""


class Clock(Protocol):
    """The timing primitives of a device."""

    spoiled: bool
    """Whether something went wrong after which another process had better go on."""

    def timed(self, runs: Sequence[Run], launches: int) -> Timed:
        """Make a replay of so many launches that uses ``runs`` in turns, after running each."""

    def sample(self, timed: Timed) -> Sample:
        """Empty the caches, replay once, and say how long a launch took."""

    def check(self) -> None:
        """Wait for the device; raises if it failed."""


def schedule(clock: Clock, form: DeviceForm, moved: int, held: int, l2_bytes: int) -> Timed:
    """A replay that is long enough to be timed, on so many buffers that each launch finds its own
    outside the cache, if it moves so many bytes, of buffers of so many."""
    timed = clock.timed(form.runs(1), 1)
    clock.sample(timed)
    seconds = min(clock.sample(timed).seconds for _ in range(3))
    for _ in range(2):  # a single launch looks longer than it is
        if seconds * timed.launches >= _REPLAY / 2 or timed.launches == _LAUNCHES:
            break
        launches = min(_LAUNCHES, math.ceil(_REPLAY / max(seconds, 1e-9)))
        copies = min(launches, 1 + math.ceil(2 * l2_bytes / moved), max(1, _MEMORY // held))
        timed = clock.timed(form.runs(copies), launches)
        seconds = clock.sample(timed).seconds
    return timed


def one_by_one(runs: Sequence[Run], launches: int) -> Run:
    """So many launches, in turns."""
    order = [runs[i % len(runs)] for i in range(launches)]

    def play() -> None:
        for run in order:
            run()

    return play


class HostClock:
    """Calls on the CPU, timed by the host; for rehearsals."""

    spoiled = False

    def __init__(self) -> None:
        self._flush = np.zeros(1 << 20, np.uint8)

    def timed(self, runs: Sequence[Run], launches: int) -> Timed:
        """A loop."""
        one_by_one(runs, len(runs))()
        return Timed(one_by_one(runs, launches), launches, len(runs), captured=False)

    def sample(self, timed: Timed) -> Sample:
        """By the clock of the host."""
        self._flush += 1
        begin = time.perf_counter()
        timed.play()
        return Sample((time.perf_counter() - begin) / timed.launches)

    def check(self) -> None:
        """Nothing runs on its own."""
