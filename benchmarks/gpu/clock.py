"""Timing as the rest sees it: replay some work many times, and learn how long it took.

A replay is a CUDA graph of many launches where the device has graphs, so that nothing on the
host's side is part of it; the caches are emptied before. Graphs and events are torch's or CuPy's;
``HostClock`` times the host, for rehearsals.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

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
    held_down: tuple[str, ...] = ()
    """Why the clock was not higher, as far as the device says."""


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
    keep: object = None
    """What has the buffers: a graph knows their addresses alone."""


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


_WARM = 3
"""Calls before anything is captured or timed."""
_LEAST_FLUSH = 256 << 20
"""Bytes that are read before a replay: also so many that reading them takes longer than launching
the replay, which is done meanwhile."""


_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat",
    0x40: "heat, by hardware",
    0x80: "power brake",
}
"""Bits of NVML's clock event reasons, of those that hold a busy device down."""


class Nvml:
    """The clock rate of a device, where the library that knows it is there."""

    def __init__(self, bus: str) -> None:
        """``bus`` is the device's PCI address."""
        self._nvml: Any = None
        with contextlib.suppress(Exception):  # not installed, or refused
            nvml: Any = import_module("pynvml")
            nvml.nvmlInit()
            self._device = nvml.nvmlDeviceGetHandleByPciBusId(bus)
            self._nvml = nvml

    def mhz(self) -> int | None:
        """Of the multiprocessors, now."""
        if self._nvml is None:
            return None
        try:
            return int(self._nvml.nvmlDeviceGetClockInfo(self._device, self._nvml.NVML_CLOCK_SM))
        except Exception:
            return None

    def held_down(self) -> tuple[str, ...]:
        """Why the clock is not higher now; nothing if that is not known."""
        if self._nvml is None:
            return ()
        try:
            bits = int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._device))
        except Exception:
            return ()
        return tuple(reason for bit, reason in _REASONS.items() if bits & bit)


class CudaClock:
    """Replays on a stream of a library, between its events.

    The caches are emptied by reading: what a write leaves in them would have to be written back at
    the expense of what is timed.
    """

    stream: Any
    events: tuple[Any, Any]
    on_stream: Callable[[], AbstractContextManager[object]]
    flush: Run
    elapsed: Callable[[], float]
    """Milliseconds between the events."""

    def __init__(self, bus: str) -> None:
        self.spoiled = False
        self._nvml = Nvml(bus)
        self.check()

    def timed(self, runs: Sequence[Run], launches: int) -> Timed:
        """A graph, or, for work that cannot be captured (CuPy's calls of cuBLAS), a loop."""
        self.check()
        play = one_by_one(runs, launches)
        replay = self.captured([runs[0]] * _WARM + [*runs], play)
        return Timed(replay or play, launches, len(runs), replay is not None, keep=runs)

    def sample(self, timed: Timed) -> Sample:
        """By events around the replay."""
        start, stop = self.events
        with self.on_stream():
            self.flush()
            start.record(self.stream)
            timed.play()
            stop.record(self.stream)
        mhz, held_down = self._nvml.mhz(), self._nvml.held_down()  # while the device is at work
        stop.synchronize()
        return Sample(1e-3 * self.elapsed() / timed.launches, mhz, held_down)

    def check(self) -> None:
        """Wait for all streams."""
        raise NotImplementedError

    def captured(self, before: Sequence[Run], play: Run) -> Run | None:
        """The replay of a graph, captured when ``before`` has run; None if that is impossible."""
        raise NotImplementedError


class TorchClock(CudaClock):
    """For work that torch launches."""

    def __init__(self, l2_bytes: int, bus: str) -> None:
        torch: Any = import_module("torch")
        self._cuda = cuda = torch.cuda
        self.stream = cuda.Stream()
        self.events = start, stop = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        numbers = torch.ones(max(2 * l2_bytes, _LEAST_FLUSH) // 4, device="cuda")
        total = torch.empty((), device="cuda")
        self.flush = lambda: torch.sum(numbers, 0, out=total)
        self.on_stream = lambda: cuda.stream(self.stream)
        self.elapsed = lambda: start.elapsed_time(stop)
        super().__init__(bus)

    def check(self) -> None:
        """Wait for all streams."""
        self._cuda.synchronize()

    def captured(self, before: Sequence[Run], play: Run) -> Run | None:
        """See ``CudaClock``."""
        cuda = self._cuda
        with self.on_stream():
            for run in before:
                run()
        self.check()
        graph = cuda.CUDAGraph()
        try:
            # What other threads do meanwhile (compilers have some) is not to spoil it.
            with cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                play()
        except Exception:
            # A failed capture leaves its stream the current one, and the allocator in doubt.
            self.spoiled = True
            cuda.set_stream(cuda.default_stream())
            self.check()
            return None
        replay: Run = graph.replay
        return replay


class CupyClock(CudaClock):
    """For work that is launched on CuPy's current stream."""

    def __init__(self, l2_bytes: int, bus: str) -> None:
        cupy: Any = import_module("cupy")
        self._cuda = cuda = cupy.cuda
        self.stream = cuda.Stream(non_blocking=True)  # others cannot be captured
        self.events = start, stop = cuda.Event(), cuda.Event()
        numbers = cupy.ones(max(2 * l2_bytes, _LEAST_FLUSH) // 4, dtype="float32")
        total = cupy.empty((), dtype="float32")
        self.flush = lambda: numbers.sum(out=total)
        self.on_stream = lambda: self.stream
        self.elapsed = lambda: cuda.get_elapsed_time(start, stop)
        super().__init__(bus)

    def check(self) -> None:
        """Wait for all streams."""
        self._cuda.runtime.deviceSynchronize()

    def captured(self, before: Sequence[Run], play: Run) -> Run | None:
        """See ``CudaClock``."""
        # A graph keeps the addresses of what was allocated while it was captured: nobody else may
        # get that memory as long as the graph is there.
        pool = self._cuda.MemoryPool()
        with self._cuda.using_allocator(pool.malloc), self.stream:
            for run in before:
                run()
            self.stream.synchronize()
            self.stream.begin_capture()
            complete = True
            try:
                play()
            except Exception:
                complete = False
            try:
                graph = self.stream.end_capture()
            except Exception:
                self.spoiled = True
                self.check()
                return None
        return partial(_launch, graph, self.stream, pool) if complete else None


def _launch(graph: Any, stream: Any, pool: Any) -> object:
    """Replay a graph, which lives as long as its memory."""
    return graph.launch(stream)
