"""What contenders that launch through CuPy share. In a rehearsal NumPy takes CuPy's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.gpu.clock import Clock, HostClock, Run
from benchmarks.gpu.cuda_clocks import CupyClock
from benchmarks.gpu.peer import COPY, Probe, Setting
from tcl.bench.arrays import Array
from tcl.bench.task import Task

_COPIED = (64 << 20, 1 << 30)
_THREADS = 256
_COPY = """
extern "C" __global__ void copy(const float4* __restrict__ from, float4* __restrict__ to)
{
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x * %(each)d;
    float4 held[%(each)d];
    #pragma unroll
    for (int i = 0; i < %(each)d; ++i) held[i] = from[first + i * blockDim.x + threadIdx.x];
    #pragma unroll
    for (int i = 0; i < %(each)d; ++i) to[first + i * blockDim.x + threadIdx.x] = held[i];
}
"""


class CupyBase:
    """What CuPy's contender and ours share."""

    clock: Clock

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.on_gpu = setting.device == "cuda"
        self.xp: Any = import_module("cupy") if self.on_gpu else np
        self.clock = CupyClock(setting.l2_bytes, setting.bus) if self.on_gpu else HostClock()

    def versions(self) -> dict[str, str]:
        """Of CuPy and of CUDA."""
        if not self.on_gpu:
            return {"numpy": np.__version__}
        runtime = self.xp.cuda.runtime
        return {
            "cupy": self.xp.__version__,
            "CUDA driver": str(runtime.driverGetVersion()),
            "CUDA runtime": str(runtime.runtimeGetVersion()),
        }

    def device_arrays(self, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """On the device."""
        return {name: self.xp.asarray(array) for name, array in inputs.items()}

    def copies(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The same values at other addresses."""
        return {name: array.copy() for name, array in arrays.items()}

    def host(self, array: Any) -> Array:
        """An array as one of NumPy's."""
        found: Array = self.xp.asnumpy(array) if self.on_gpu else np.array(array)
        return found

    def repeated(
        self, arrays: Mapping[str, Any], build: Callable[[dict[str, Any]], Run]
    ) -> Callable[[int], list[Run]]:
        """``DeviceForm.runs``, of what makes one from inputs."""
        first = build(dict(arrays))

        def runs(count: int) -> list[Run]:
            return [first, *(build(self.copies(arrays)) for _ in range(count - 1))]

        return runs

    def facts(self, task: Task) -> dict[str, Any]:
        """Nothing."""
        return {}

    def probes(self) -> Iterator[Probe]:
        """Copies: the driver's, and kernels with 16-byte accesses."""
        for size in _COPIED if self.on_gpu else (1 << 20,):
            yield Probe(f"copyto, {size >> 20} MiB", COPY, 2 * size, partial(self._copyto, size))
            for each in (1, 4) if self.on_gpu else ():
                name = f"kernel, {each} x 16 bytes per thread, {size >> 20} MiB"
                yield Probe(name, COPY, 2 * size, partial(self._kernel, size, each))

    def _pair(self, size: int) -> tuple[Any, Any]:
        source = self.xp.arange(size // 4, dtype=self.xp.float32)
        return source, self.xp.empty_like(source)

    def _copyto(self, size: int) -> Run:
        source, target = self._pair(size)
        return lambda: self.xp.copyto(target, source)

    def _kernel(self, size: int, each: int) -> Run:
        source, target = self._pair(size)
        kernel = self.xp.RawKernel(_COPY % {"each": each}, "copy")
        blocks = size // (16 * each * _THREADS)
        return lambda: kernel((blocks,), (_THREADS,), (source, target))

    def latencies(self) -> dict[str, list[float]]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Give memory back to the device."""
        if self.on_gpu:
            self.clock.check()
            self.xp.get_default_memory_pool().free_all_blocks()
