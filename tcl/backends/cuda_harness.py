"""A GPU's memory and clock, as the tuner's bench.

Events around the kernels alone, after the second-level cache was filled with something else: what
fills it is still running while the kernels are launched, so that launching takes no part in what is
measured. Short kernels are launched many times by a graph, on one set of arrays after the other,
which together do not fit into that cache. Scratch memory is the same in all launches of a graph, as
it is in calls one after the other.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tcl.arrays.arguments import Array
from tcl.codegen.devices.cupy_driver import Memory
from tcl.codegen.devices.gpu import GpuProfile
from tcl.tuner.measure.harness import Bench, Guarded, Run
from tcl.tuner.measure.machine_lock import locked
from tcl.tuner.measure.placement import Placement
from tcl.tuner.measure.timing import MeasureSettings

TIMING = MeasureSettings(sample=2e-4, discard=3, samples=15, budget=0.1, slow=3.0, single=False)
"""Calls that take less than the sample are timed in graphs that take as long: the events around
them add about 2 µs, and a launch from Python may come late on a busy host."""
_SETS = 64
"""Of arrays that a graph goes through, at most."""
_FLUSHING = 2e-4
"""Seconds that filling the cache takes at least: longer than launching what is timed, which is
done meanwhile."""
_ALIGNED = 256
"""Arrays begin at multiples of so many bytes, as they do in memory that CUDA allocates: vectors
that straddle sectors would make all kernels slower than they are."""
_FATAL = 70
"""The exit code of a process whose device is lost."""


class Device:
    """A device by CuPy's bindings."""

    def __init__(self, number: int, profile: GpuProfile) -> None:
        import cupy

        self._runtime: Any = cupy.cuda.runtime
        self._cuda: Any = cupy.cuda
        self._runtime.setDevice(number)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._start, self._stop = cupy.cuda.Event(), cupy.cuda.Event()
        size = 2 * profile.l2_bytes
        self._others = cupy.zeros(size // 4, "float32")
        self._total = cupy.empty((), "float32")
        self._reads = math.ceil(_FLUSHING * profile.memory_bytes_per_second / size)
        """How often that is read to fill the cache."""

    @property
    def stream(self) -> int:
        """Where kernels are launched."""
        return int(self._stream.ptr)

    def allocate(self, size: int) -> Memory:
        with self._stream:
            found: Memory = self._cuda.alloc(size)
        return found

    def upload(self, address: int, values: Array) -> None:
        """Copy bytes to the device."""
        kind = self._runtime.memcpyHostToDevice
        self._copy(address, values.ctypes.data, values.nbytes, kind)

    def download(self, address: int, values: Array) -> None:
        """Copy bytes from the device, once all that was launched has ended."""
        kind = self._runtime.memcpyDeviceToHost
        self._copy(values.ctypes.data, address, values.nbytes, kind)

    def duplicate(self, to: int, of: int, size: int) -> None:
        """Copy bytes on the device; returns at once."""
        kind = self._runtime.memcpyDeviceToDevice
        self._runtime.memcpyAsync(to, of, size, kind, self.stream)

    def _copy(self, to: int, of: int, size: int, kind: int) -> None:
        """In the stream's order. CUDA's ``memcpy`` is not: it may return while the bytes are still
        on their way to the device, and this stream does not wait for it."""
        self._runtime.memcpyAsync(to, of, size, kind, self.stream)
        self._stream.synchronize()

    def flush(self) -> None:
        """Fill the second-level cache with something else; returns at once. By reading: what is
        written there has to be written back, at the expense of what is timed."""
        with self._stream:
            for _ in range(self._reads):
                self._others.sum(out=self._total)

    def timed(self, launch: Run) -> float:
        """Seconds from the start of what is launched to its end; both are waited for."""
        self._start.record(self._stream)
        launch()
        self._stop.record(self._stream)
        self._stop.synchronize()
        return float(self._cuda.get_elapsed_time(self._start, self._stop)) * 1e-3

    def graph(self, launches: Sequence[Run]) -> Run | None:
        """These launches as one; None if they cannot be captured."""
        pool = self._cuda.MemoryPool()  # of this graph alone, which keeps the addresses
        try:
            with self._cuda.using_allocator(pool.malloc):
                launches[0]()  # allocates, and loads kernels: not to be done while capturing
                self._stream.begin_capture()
                try:
                    for launch in launches:
                        launch()
                finally:
                    graph = self._stream.end_capture()
        except RuntimeError:  # of launches that cannot be captured
            return None
        return partial(self._launch, graph, pool)

    def _launch(self, graph: Any, pool: object) -> None:
        """``pool``: has the memory that the graph's kernels write to."""
        graph.launch(self._stream)

    def check(self) -> None:
        """Raises if the device is lost to this process."""
        self._stream.synchronize()


@dataclass(frozen=True, slots=True)
class DeviceArray:
    device: Device
    address: int
    """Of its first element."""


class DeviceGuarded(Guarded):
    """Memory on a device: its bytes are those of the host's, from where and to where they go."""

    def __init__(self, like: Array, device: Device) -> None:
        super().__init__(like)
        self._device = device
        self._memory = device.allocate(len(self.raw) + _ALIGNED)
        self._base = self._memory.ptr + -(self._memory.ptr + self.start) % _ALIGNED
        first = super().array.ctypes.data - self.raw.ctypes.data
        self._outer = DeviceArray(device, self._base + first)

    @property
    def array(self) -> DeviceArray:
        return self._outer

    def poison(self, *, second: bool = False) -> None:
        super().poison(second=second)
        self._device.upload(self._base, self.raw)

    def hold(self, values: Array) -> None:
        super().hold(values)
        self._device.upload(self._base, self.raw)

    def values(self) -> Array:
        self._device.download(self._base, self.raw)
        return super().values()

    def checksum(self) -> int:
        self.values()
        return super().checksum()

    def another(self) -> DeviceGuarded:
        """Memory of its own with the same contents, on the device alone: only kernels look at it,
        and to move it to the host and back takes as long as timing them."""
        found = DeviceGuarded(super().array, self._device)
        to, of = found._base + found.start, self._base + self.start
        self._device.duplicate(to, of, self._stop - self.start)
        return found

    @property
    def size(self) -> int:
        """Bytes on the device."""
        return len(self.raw)


@dataclass(slots=True, eq=False)
class Bound:
    """A call of a kernel, on one set of arrays or on others with the same contents."""

    kernel: Callable[..., object]
    inputs: Sequence[DeviceGuarded]
    outputs: Sequence[DeviceGuarded]
    most: int
    """Bytes that all sets together need not be more than."""
    graphs: dict[int, Run | None] = field(default_factory=dict)
    _sets: list[Run] = field(default_factory=list)
    _keep: list[object] = field(default_factory=list)

    def __call__(self) -> object:
        return self._run(self.inputs, self.outputs)

    def _run(self, inputs: Sequence[DeviceGuarded], outputs: Sequence[DeviceGuarded]) -> object:
        return self.kernel([h.array for h in inputs], [h.array for h in outputs])

    def sets(self) -> Sequence[Run]:
        """The call on each set of arrays."""
        if not self._sets:
            own = sum(h.size for h in (*self.inputs, *self.outputs))
            count = max(1, min(_SETS, -(-self.most // max(1, own))))
            self._sets.append(self)
            for _ in range(count - 1):
                inputs, outputs = ([h.another() for h in x] for x in (self.inputs, self.outputs))
                self._keep.append((inputs, outputs))
                self._sets.append(partial(self._run, inputs, outputs))
        return self._sets


class CudaBench(Bench):
    """One device of this machine."""

    placements = (Placement(f"at_{_ALIGNED}_bytes", 0),)

    def __init__(
        self,
        number: int,
        profile: GpuProfile,
        device: Callable[[int, GpuProfile], Device] | None = None,
    ) -> None:
        self._number, self._profile = number, profile
        self._make = device or Device
        self._made: Device | None = None

    @property
    def device(self) -> Device:
        """The device, from when it is first used on."""
        if self._made is None:
            self._made = self._make(self._number, self._profile)
        return self._made

    def guarded(self, like: Array, placement: Placement) -> DeviceGuarded:
        return DeviceGuarded(like, self.device)

    def bound(
        self, kernel: Callable[..., object], inputs: Sequence[Guarded], outputs: Sequence[Guarded]
    ) -> Run:
        ours, theirs = ([h for h in x if isinstance(h, DeviceGuarded)] for x in (inputs, outputs))
        return Bound(kernel, ours, theirs, 2 * self._profile.l2_bytes)

    def seconds(self, run: Run, calls: int) -> float:
        """Cold calls on their own, but for short ones: then many by a graph."""
        device = self.device
        if calls > 1 and isinstance(run, Bound):
            count = 1 << (calls - 1).bit_length()  # estimates differ a little: one graph for them
            if count not in run.graphs:
                sets = run.sets()
                run.graphs[count] = self.device.graph([sets[k % len(sets)] for k in range(count)])
            graph = run.graphs[count]
            if graph is not None:
                graph()  # the first launch of a graph uploads it
                device.flush()
                return device.timed(graph) / count
        total = 0.0
        for _ in range(calls):
            device.flush()
            total += device.timed(run)
        return total / calls

    @contextmanager
    def alone(self) -> Iterator[None]:
        with locked(f"tcl-measuring-cuda-{self._number}"):
            yield

    def failed(self, error: Exception) -> None:
        """After an illegal access no kernel runs in this process any more: it ends."""
        try:
            self.device.check()
        except Exception:
            print(" ".join(str(error).split()), file=sys.stderr, flush=True)
            os._exit(_FATAL)
