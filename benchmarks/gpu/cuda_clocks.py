"""CUDA graphs and events, through torch or through CuPy."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.gpu.clock import Run, Timed
from benchmarks.gpu.samples import Sample

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
        self.highest: int | None = None
        with contextlib.suppress(Exception):  # not installed, or refused
            nvml: Any = import_module("pynvml")
            nvml.nvmlInit()
            self._device = nvml.nvmlDeviceGetHandleByPciBusId(bus)
            self.highest = int(nvml.nvmlDeviceGetMaxClockInfo(self._device, nvml.NVML_CLOCK_SM))
            self._nvml = nvml

    def mhz(self) -> int | None:
        """Of the multiprocessors, now."""
        if self._nvml is None:
            return None
        try:
            return int(self._nvml.nvmlDeviceGetClockInfo(self._device, self._nvml.NVML_CLOCK_SM))
        except Exception:
            return None


def _rotation(runs: Sequence[Run], launches: int) -> list[Run]:
    return [runs[i % len(runs)] for i in range(launches)]


def _one_by_one(order: Sequence[Run]) -> Run:
    def play() -> None:
        for run in order:
            run()

    return play


class TorchClock:
    """For work that torch launches.

    The caches are emptied by reading: what a write leaves in them would have to be written back at
    the expense of what is timed.
    """

    def __init__(self, l2_bytes: int, bus: str) -> None:
        self.spoiled = False
        self._torch: Any = import_module("torch")
        self._nvml = Nvml(bus)
        cuda = self._torch.cuda
        self._stream = cuda.Stream()
        self._start = cuda.Event(enable_timing=True)
        self._stop = cuda.Event(enable_timing=True)
        count = max(2 * l2_bytes, _LEAST_FLUSH) // 4
        self._flush = self._torch.ones(count, device="cuda")
        self._total = self._torch.empty((), device="cuda")
        cuda.synchronize()

    def timed(self, runs: Sequence[Run], launches: int) -> Timed:
        """A graph, or, for work that cannot be captured, a loop."""
        torch = self._torch
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            for _ in range(_WARM):
                runs[0]()
            for run in runs:
                run()
        torch.cuda.synchronize()
        order = _rotation(runs, launches)
        graph = torch.cuda.CUDAGraph()
        try:
            # What other threads do meanwhile (compilers have some) is not to spoil it.
            mode = "thread_local"
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode=mode):
                for run in order:
                    run()
        except Exception:
            # A failed capture leaves its stream the current one, and the allocator in doubt.
            self.spoiled = True
            torch.cuda.set_stream(torch.cuda.default_stream())
            torch.cuda.synchronize()
            return Timed(_one_by_one(order), launches, len(runs), captured=False)
        return Timed(graph.replay, launches, len(runs), captured=True)

    def sample(self, timed: Timed) -> Sample:
        """By events around the replay."""
        torch = self._torch
        with torch.cuda.stream(self._stream):
            torch.sum(self._flush, 0, out=self._total)
            self._start.record(self._stream)
            timed.play()
            self._stop.record(self._stream)
        mhz = self._nvml.mhz()  # while the device is at work
        self._stop.synchronize()
        seconds = 1e-3 * self._start.elapsed_time(self._stop) / timed.launches
        return Sample(seconds, mhz)

    def check(self) -> None:
        """Wait for all streams."""
        self._torch.cuda.synchronize()


@dataclass(frozen=True, slots=True)
class _Replay:
    graph: Any
    stream: Any
    pool: Any
    """Of the memory that the graph uses."""

    def __call__(self) -> object:
        return self.graph.launch(self.stream)


class CupyClock:
    """For work that is launched on CuPy's current stream."""

    def __init__(self, l2_bytes: int, bus: str) -> None:
        self.spoiled = False
        self._cupy: Any = import_module("cupy")
        cuda = self._cupy.cuda
        self._nvml = Nvml(bus)
        self._stream = cuda.Stream(non_blocking=True)  # others cannot be captured
        self._start, self._stop = cuda.Event(), cuda.Event()
        count = max(2 * l2_bytes, _LEAST_FLUSH) // 4
        self._flush = self._cupy.ones(count, dtype="float32")
        self._total = self._cupy.empty((), dtype="float32")
        self.check()

    def timed(self, runs: Sequence[Run], launches: int) -> Timed:
        """A graph, or, for work that cannot be captured (CuPy's calls of cuBLAS), a loop."""
        self.check()
        # A graph keeps the addresses of what was allocated while it was captured: nobody else may
        # get that memory as long as the graph is there.
        pool = self._cupy.cuda.MemoryPool()
        with self._cupy.cuda.using_allocator(pool.malloc), self._stream:
            for _ in range(_WARM):
                runs[0]()
            for run in runs:
                run()
            self._stream.synchronize()
            order = _rotation(runs, launches)
            graph = self._captured(order)
        if graph is None:
            return Timed(_one_by_one(order), launches, len(runs), captured=False)
        return Timed(_Replay(graph, self._stream, pool), launches, len(runs), captured=True)

    def _captured(self, order: Sequence[Run]) -> Any:
        """None if it cannot be captured."""
        self._stream.begin_capture()
        complete = True
        try:
            for run in order:
                run()
        except Exception:
            complete = False
        try:
            graph = self._stream.end_capture()
        except Exception:
            self.spoiled = True
            self.check()
            return None
        return graph if complete else None

    def sample(self, timed: Timed) -> Sample:
        """By events around the replay."""
        with self._stream:
            self._flush.sum(out=self._total)
            self._start.record(self._stream)
            timed.play()
            self._stop.record(self._stream)
        mhz = self._nvml.mhz()  # while the device is at work
        self._stop.synchronize()
        elapsed = self._cupy.cuda.get_elapsed_time(self._start, self._stop)
        return Sample(1e-3 * elapsed / timed.launches, mhz)

    def check(self) -> None:
        """Wait for all streams."""
        self._cupy.cuda.runtime.deviceSynchronize()
