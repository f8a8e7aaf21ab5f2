"""PyTorch, eager, and with it cuBLAS and cuDNN: the formulations of the CPU suite, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.peer import Setting, element_types
from benchmarks.gpu.peers.torch_arrays import TorchBase, host, repeated, torch
from tcl.bench.arrays import Array
from tcl.bench.peers.torch_peer import forms
from tcl.bench.task import Builder, Task, as_tuple, values

_CPU_ONLY = frozenset({"conv2d, packed filters"})


class TorchEager(TorchBase):
    """The contender."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The registered forms."""
        tensors = self.tensors(inputs)
        kinds = {t for t in element_types(task).values() if t.startswith(("float", "bfloat"))}
        kind = getattr(torch, max(kinds, default="float32"))
        for name, builder in forms.builders(task.entry):
            if name not in _CPU_ONLY:
                yield name, partial(self._form, builder, task, tensors, kind)

    def _form(
        self, builder: Builder, task: Task, tensors: Mapping[str, Any], kind: Any
    ) -> DeviceForm:
        def build(given: dict[str, Any]) -> Run:
            before = torch.get_default_dtype()
            torch.set_default_dtype(kind)  # builders make outputs without saying of what type
            try:
                with torch.device(self.setting.device):
                    return builder(values(given, task.sizes, _empty))
            finally:
                torch.set_default_dtype(before)

        runs = repeated(tensors, build)
        return DeviceForm(runs, lambda: [host(t) for t in as_tuple(runs(1)[0]())])


def _empty(*shape: int, dtype: str | None = None) -> Any:
    """An output, where new tensors are made, and of their type if no other is named."""
    return torch.empty(shape, dtype=None if dtype is None else getattr(torch, dtype))


def make(setting: Setting) -> TorchEager:
    """The contender."""
    return TorchEager(setting)
