"""Torch as contenders on a GPU have it: settings, tensors from arrays and back, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.gpu.clock import Clock, HostClock, Run
from benchmarks.gpu.cuda_clocks import TorchClock
from benchmarks.gpu.peer import COPY, Probe, Setting
from tcl.bench.arrays import Array
from tcl.bench.task import Task

torch: Any = import_module("torch")

_COPIED = (64 << 20, 1 << 30)
"""Bytes of the arrays that are copied."""
_PRODUCT = 8192


class TorchBase:
    """What eager torch and ``torch.compile`` share."""

    clock: Clock

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        torch.set_grad_enabled(False)
        # float32 is to mean float32; products have it by default, convolutions do not.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        if setting.device == "cpu":
            torch.set_num_threads(1)
            self.clock = HostClock()
        else:
            torch.cuda.init()
            self.clock = TorchClock(setting.l2_bytes, setting.bus)

    def versions(self) -> dict[str, str]:
        """Of torch and what it calls."""
        found = {"torch": str(torch.__version__)}
        if self.setting.device == "cuda":
            found["torch's CUDA"] = str(torch.version.cuda)
            found["cuDNN"] = str(torch.backends.cudnn.version())
        return found

    def tensors(self, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """On the device."""
        return {name: self._tensor(array) for name, array in inputs.items()}

    def _tensor(self, array: Array) -> Any:
        if array.dtype.name == "bfloat16":  # NumPy's is none that torch knows
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(self._device)
        return torch.from_numpy(array).to(self._device)

    @property
    def _device(self) -> str:
        return self.setting.device

    def facts(self, task: Task) -> dict[str, Any]:
        """Nothing."""
        return {}

    def probes(self) -> Iterator[Probe]:
        """Copies and products."""
        small = self._device == "cpu"
        for size in (1 << 20,) if small else _COPIED:
            for name in ("copy_", "mul"):
                make = partial(self._copy, name, size)
                yield Probe(f"torch {name}, {size >> 20} MiB", COPY, 2 * size, make)
        extent = 256 if small else _PRODUCT
        for type_ in ("float32", "float16", "bfloat16"):
            make = partial(self._product, type_, extent)
            yield Probe(f"torch mm, {extent}, {type_}", type_, 2 * extent**3, make)

    def _copy(self, name: str, size: int) -> Run:
        source = torch.randn(size // 4, device=self._device)
        target = torch.empty_like(source)
        if name == "copy_":
            return lambda: target.copy_(source)
        return lambda: torch.mul(source, 1.5, out=target)

    def _product(self, type_: str, extent: int) -> Run:
        kind = getattr(torch, type_)
        a, b = (torch.randn(extent, extent, device=self._device, dtype=kind) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    def latencies(self) -> dict[str, list[float]]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Give memory back to the device."""
        if self._device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def clones(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The same values at other addresses."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def host(tensor: Any) -> Array:
    """A tensor as an array, 16-bit floats as float32."""
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    found: Array = tensor.cpu().numpy()
    return found


def repeated(
    tensors: Mapping[str, Any], build: Callable[[dict[str, Any]], Run]
) -> Callable[[int], list[Run]]:
    """``DeviceForm.runs``, of what makes one from inputs."""
    first = build(dict(tensors))

    def runs(count: int) -> list[Run]:
        return [first, *(build(clones(tensors)) for _ in range(count - 1))]

    return runs
