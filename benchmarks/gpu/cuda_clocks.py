"""CUDA graphs and events, through torch or through CuPy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.gpu.clock import Run, Sample, Timed, one_by_one

_WARM = 3
"""Calls before anything is captured or timed."""
_LEAST_FLUSH = 256 << 20
"""Bytes that are read before a replay: also so many that reading them takes longer than launching
the replay, which is done meanwhile."""


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
        return Timed(replay or play, launches, len(runs), captured=replay is not None)

    def sample(self, timed: Timed) -> Sample:
        """By events around the replay."""
        start, stop = self.events
        with self.on_stream():
            self.flush()
            start.record(self.stream)
            timed.play()
            stop.record(self.stream)
        mhz = self._nvml.mhz()  # while the device is at work
        stop.synchronize()
        return Sample(1e-3 * self.elapsed() / timed.launches, mhz)

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
