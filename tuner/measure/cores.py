"""The cores of this machine, and what other processes do on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tcl.common.errors import ArgumentError


def available_cores() -> tuple[int, ...]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def split_cores(
    cores: Sequence[int], measuring: int = 1
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cores to compile on and those to measure on; where none are left, both are all of them."""
    if measuring > len(cores):
        raise ArgumentError(
            f"kernels with {measuring} threads need as many cores for the measurement; "
            f"there {'is' if len(cores) == 1 else 'are'} {len(cores)}"
        )
    measure = tuple(cores[len(cores) - measuring :])
    return tuple(cores[: len(cores) - measuring]) or measure, measure


_STAT = Path("/proc/stat")
_IDLE = (3, 4)
_TWICE = (8, 9)
"""Guests' time, which is part of the first two as well."""


def busy_seconds(cores: Sequence[int], stat: Path = _STAT) -> float | None:
    """Seconds that these cores did anything, since the machine was started; None if unknown."""
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        lines = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
        times = {name: [int(x) for x in words] for name, *words in lines}
        wanted = [times[f"cpu{core}"] for core in cores]
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    skipped = (*_IDLE, *_TWICE)
    return sum(x for each in wanted for k, x in enumerate(each) if k not in skipped) / ticks


class Others:
    """Which share of this process's cores others used, from one look to the next."""

    def __init__(
        self,
        busy: Callable[[], float | None] | None = None,
        own: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cores = available_cores()
        self._busy = busy or (lambda: busy_seconds(self._cores))
        self._own = own
        self._clock = clock
        self.start()

    def start(self) -> None:
        """Begin anew."""
        self._before = self._look()

    def busy_share(self) -> float | None:
        """From 0 to 1, since the start; None if unknown. For a short time it is a rough one, and
        may lie below 0: mean many."""
        (busy, own, now), (busy_then, own_then, then) = self._look(), self._before
        if busy is None or busy_then is None or now <= then:
            return None
        return (busy - busy_then - own + own_then) / ((now - then) * len(self._cores))

    def _look(self) -> tuple[float | None, float, float]:
        return self._busy(), self._own(), self._clock()
