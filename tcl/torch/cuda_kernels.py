"""Kernels of one def for torch's tensors on a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tcl.codegen.loopir.layouts import WIDEST
from tcl.common.errors import ArgumentError
from tcl.executors.calls import Calls
from tcl.executors.dispatch import Kernels
from tcl.grammar.tree.checked import CheckedDef


class CudaKernels:
    """An operator on CUDA devices: a function of tensors that makes its outputs, and returns those
    that are ``wanted``, on the current stream. It does not wait, unless data-dependent subscripts
    are checked.

    In a capture for a CUDA graph nothing is compiled, and nothing waited for: the first raises
    ``ArgumentError``, and so does the other.
    """

    def __init__(
        self, kernels: Kernels, checked: CheckedDef, wanted: Sequence[str], *, unchecked: bool
    ) -> None:
        self._wanted = tuple(wanted)
        self._kernels = kernels
        self._checked = checked
        self._unchecked = unchecked
        self._latest: Calls[Any] | None = None
        self._waits: dict[tuple[Any, ...], bool] = {}
        """For inputs like those of calls that went well, whether a call is waited for."""

    def __call__(self, *inputs: Any) -> Any:
        """One tensor, or a tuple of them. Raises ``ArgumentError``, what compiling raises, and
        ``IndexError`` for a data-dependent subscript out of range."""
        with torch.no_grad():  # it is recorded outside, if at all
            if torch.cuda.is_current_stream_capturing():
                self._check_capture(inputs)
            elif self._latest is not None:
                found = self._latest.again(inputs, None, self._unchecked, self._wanted)
                if found is not None:
                    return found
            executor, given = self._kernels.executor(self._checked.name, inputs)
            found = executor.run(given, None, self._unchecked, self._wanted)
        self._latest = executor
        checks = any(s.checks for s in executor.sized.statements)
        self._waits[_likeness(inputs)] = checks and not self._unchecked
        return found

    def _check_capture(self, inputs: Sequence[Any]) -> None:
        """Raises ``ArgumentError`` for a call that a capture does not allow."""
        waits = self._waits.get(_likeness(inputs))
        if waits is None:
            raise ArgumentError(
                f"{self._checked.name} was not called with these sizes and strides before the "
                "capture, and a capture cannot compile kernels; call it once before the "
                "capture"
            )
        if waits:
            raise ArgumentError(
                f"{self._checked.name} waits for the checks of its data-dependent subscripts, "
                "which is not possible in a capture; create the operator with unchecked=True"
            )


def _likeness(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What a kernel depends on."""
    return tuple((t.shape, t.stride(), t.device, t.data_ptr() % WIDEST == 0) for t in inputs)
