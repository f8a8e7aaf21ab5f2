"""PyTorch, eager, and with it cuBLAS and cuDNN: the formulations of the CPU suite, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.gpu.clock import DeviceForm, HostClock, Run, TorchClock
from benchmarks.gpu.peer import COPY, GpuPeer, Probe, Setting
from tcl.bench.peers import torch_peer
from tcl.bench.peers.torch_peer import forms
from tcl.bench.task import Array, Builder, Task, values

torch: Any = import_module("torch")


class TorchBase(GpuPeer):
    """What eager torch, ``torch.compile`` and Triton share."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._host = torch_peer.make(1)
        # float32 is to mean float32; products have it by default, convolutions do not.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        if self.on_gpu:
            torch.cuda.init()
        self.clock = TorchClock(setting.l2_bytes, setting.bus) if self.on_gpu else HostClock()

    def versions(self) -> dict[str, str]:
        """Of torch and what it calls."""
        found = {"torch": str(torch.__version__)}
        if self.on_gpu:
            found["torch's CUDA"] = str(torch.version.cuda)
            found["cuDNN"] = str(torch.backends.cudnn.version())
        return found

    def own(self, array: Array) -> Any:
        """An input on the device."""
        return self._host.own(array).to(self.setting.device)

    def copy(self, array: Any) -> Any:
        """The same values at another address."""
        return array.clone()

    def host(self, array: Any) -> Array:
        """A result as one of NumPy's arrays; bfloat16 as float32."""
        return self._host.array(array.cpu())

    def close(self) -> None:
        """Give memory back to the device."""
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


_CPU_ONLY = frozenset({"conv2d, packed filters"})
_COPIED = (64 << 20, 1 << 30)
"""Bytes of the arrays that are copied."""
_PRODUCT = 8192


class TorchEager(TorchBase):
    """The contender."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The registered forms."""
        tensors = self.all_own(inputs)
        for name, builder in forms.builders(task.entry):
            if name not in _CPU_ONLY:
                yield name, partial(self.form, tensors, partial(self._build, builder, task))

    def _build(self, builder: Builder, task: Task, given: dict[str, Any]) -> Run:
        kind = next((t.dtype for t in given.values() if t.is_floating_point()), torch.float32)

        def empty(*shape: int, dtype: str | None = None) -> Any:
            return torch.empty(shape, dtype=getattr(torch, dtype) if dtype else kind)

        with torch.device(self.setting.device):  # forms do not say where they make tensors
            run = builder(values(given, task.sizes, empty))
            run()  # some make them when they run first
        return run

    def probes(self) -> Iterator[Probe]:
        """Copies and products."""
        for size in _COPIED if self.on_gpu else (1 << 20,):
            for name in ("copy_", "mul"):
                make = partial(self._copied, name, size)
                yield Probe(f"torch {name}, {size >> 20} MiB", COPY, 2 * size, make)
        extent = _PRODUCT if self.on_gpu else 256
        for type_ in ("float32", "float16", "bfloat16"):
            make = partial(self._product, type_, extent)
            yield Probe(f"torch mm, {extent}, {type_}", type_, 2 * extent**3, make)

    def _copied(self, name: str, size: int) -> Run:
        source = torch.randn(size // 4, device=self.setting.device)
        target = torch.empty_like(source)
        if name == "copy_":
            return lambda: target.copy_(source)
        return lambda: torch.mul(source, 1.5, out=target)

    def _product(self, type_: str, extent: int) -> Run:
        about = {"device": self.setting.device, "dtype": getattr(torch, type_)}
        a, b = (torch.randn(extent, extent, **about) for _ in range(2))
        return partial(torch.mm, a, b, out=torch.empty_like(a))


make = TorchEager
