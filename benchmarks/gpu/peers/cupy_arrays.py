"""What contenders that launch through CuPy share. In a rehearsal NumPy takes CuPy's place."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.gpu.clock import HostClock
from benchmarks.gpu.cuda_clocks import CupyClock
from benchmarks.gpu.peer import GpuPeer, Setting
from tcl.bench.task import Array


class CupyBase(GpuPeer):
    """What CuPy's contender and ours share."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
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

    def own(self, array: Array) -> Any:
        """An input on the device."""
        return self.xp.asarray(array)

    def copy(self, array: Any) -> Any:
        """The same values at another address."""
        return array.copy()

    def host(self, array: Any) -> Array:
        """A result as one of NumPy's arrays."""
        found: Array = self.xp.asnumpy(array) if self.on_gpu else np.array(array)
        return found

    def close(self) -> None:
        """Give memory back to the device."""
        if self.on_gpu:
            self.clock.check()
            self.xp.get_default_memory_pool().free_all_blocks()
