"""Kernels of one def for torch's tensors on a CUDA device."""

from __future__ import annotations

from typing import Any

import torch

from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.loopir.layouts import WIDEST
from tcl.executors.dispatch import Kernels
from tcl.grammar.checked import CheckedDef


class CudaKernels:
    """An operator on CUDA devices: a function of tensors that makes its outputs, on the current
    stream. It does not wait, unless data-dependent subscripts are checked.

    In a capture for a CUDA graph nothing is compiled, and nothing waited for: the first raises
    ``ArgumentError``, and so does the other.
    """

    def __init__(self, kernels: Kernels, checked: CheckedDef, *, unchecked: bool) -> None:
        self._kernels = kernels
        self._checked = checked
        self._unchecked = unchecked
        self._called: set[tuple[Any, ...]] = set()
        """What calls depended on that went well."""

    def __call__(self, *inputs: Any) -> Any:
        key = tuple((t.shape, t.stride(), t.device, t.data_ptr() % WIDEST == 0) for t in inputs)
        captured = torch.cuda.is_current_stream_capturing()
        if captured and key not in self._called:
            raise ArgumentError(
                f"{self._checked.name} was not called with these sizes and strides before the "
                "capture, in which no kernel can be compiled; call it once before"
            )
        with torch.no_grad():  # it is recorded outside, if at all
            executor, given = self._kernels.executor(self._checked.name, inputs)
            if (
                captured
                and not self._unchecked
                and any(s.checks for s in executor.sized.statements)
            ):
                raise ArgumentError(
                    f"{self._checked.name} waits for the checks of its data-dependent subscripts, "
                    "which no capture allows; make the operator with unchecked=True"
                )
            found = executor.run(given, None, unchecked=self._unchecked)
        self._called.add(key)
        return found
