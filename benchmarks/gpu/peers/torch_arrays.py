"""Torch as contenders on a GPU have it: settings, tensors from arrays and back."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.gpu.clock import HostClock
from benchmarks.gpu.cuda_clocks import TorchClock
from benchmarks.gpu.peer import GpuPeer, Setting
from tcl.bench.peers import torch_peer
from tcl.bench.task import Array

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
