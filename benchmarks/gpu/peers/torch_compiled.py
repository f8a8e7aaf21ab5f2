"""PyTorch through ``torch.compile``: the functions of the CPU suite, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.gpu.clock import DeviceForm, Run
from benchmarks.gpu.peers.torch_eager import TorchBase, torch
from tcl.bench.peers.torch_compile import LIBRARY, plain
from tcl.bench.task import Array, Task, as_tuple, values

_TUNED = "max-autotune-no-cudagraphs"


class TorchCompiled(TorchBase):
    """The contender."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], DeviceForm]]]:
        """The registered functions: with ``quick`` in one form, else also with new outputs and
        with every kernel that Inductor can try."""
        tensors = self.all_own(inputs)
        library = task.entry in LIBRARY
        for name, builder in plain.builders(task.entry):
            function = builder(values(tensors, task.sizes))
            for into in (False,) if library else (True, False):
                for mode in ("default", _TUNED):
                    if self.setting.quick and (mode == _TUNED or into is library):
                        continue
                    label = name + " into outputs" * into + f", {_TUNED}" * (mode == _TUNED)
                    yield label, partial(self._form, function, tensors, into, mode)

    def _form(
        self, function: Callable[..., Any], tensors: Mapping[str, Any], into: bool, mode: str
    ) -> DeviceForm:
        def write(out: Any, arguments: Any) -> None:
            for target, found in zip(out, as_tuple(function(**arguments)), strict=True):
                target.copy_(found)

        work = write if into else function
        compiled: Any = torch.compile(work, dynamic=False, fullgraph=True, mode=mode)

        def build(given: dict[str, Any]) -> Run:
            if not into:
                return lambda: compiled(**given)
            outputs = [torch.empty_like(o) for o in as_tuple(function(**given))]

            def run() -> object:
                compiled(outputs, given)
                return outputs

            return run

        return self.form(tensors, build)

    def close(self) -> None:
        """Forget what was compiled: there is a limit of how often one function is."""
        torch._dynamo.reset()
        super().close()


make = TorchCompiled
