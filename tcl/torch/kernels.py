"""Kernels of one def for torch's tensors on the CPU, found by their sizes and strides."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch

from tcl.arrays.libraries import memory_view
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.launch import Launcher, lengths
from tcl.common.errors import ArgumentError
from tcl.executors.call_kernels import MOST_VARIED
from tcl.executors.calls import contiguous
from tcl.executors.dispatch import Kernels
from tcl.executors.executor import Executor
from tcl.executors.varying import VaryingExecutor
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.torch.tensors import check_inputs, torch_dtype

Steps: TypeAlias = tuple[int, ...]
"""Strides in elements, as torch counts them."""


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """What calls on inputs of some sizes and strides need."""

    sized: SizedDef
    """As far as a call needs it."""
    launcher: Launcher
    scratch: Sequence[int]
    """Bytes of its scratch arrays."""
    outputs: tuple[tuple[tuple[int, ...], Steps, Any], ...]
    """Sizes, strides and element type of each."""
    of_class: VaryingExecutor | None
    """That of the class of sizes whose kernel it is."""


class CpuKernels:
    """An operator on the CPU: a function of tensors that makes its outputs, and returns those at
    ``places``.

    Safe to call from several threads at once. Gradients are not recorded here.
    """

    def __init__(
        self, kernels: Kernels, checked: CheckedDef, places: Sequence[int], *, unchecked: bool
    ) -> None:
        self.places = places
        """Of the outputs that are returned, among the def's."""
        self.varying = kernels.varying_of(checked.name)
        """Sizes that vary."""
        self.unchecked = unchecked
        self._kernels = kernels
        self._checked = checked
        self._rows: dict[tuple[Any, ...], SignatureRow] = {}
        self._varied: deque[tuple[Any, ...]] = deque()
        """Their keys, oldest first, if sizes vary."""
        self._unaligned = tuple(t.type.itemsize - 1 for t in checked.inputs)
        """For each input, bits that no address of an element has."""

    def __call__(self, *inputs: Any) -> Any:
        """One tensor, or a tuple of them. Raises ``ArgumentError``, what compiling raises, and
        ``IndexError`` for a data-dependent subscript out of range."""
        addresses = [t.data_ptr() for t in inputs]
        if not all(addresses):
            self._check_memory(inputs)
        for address, bits in zip(addresses, self._unaligned, strict=True):
            if address & bits:
                return self(*map(self._copied_if_unaligned, inputs, self._unaligned))
        row = self.row(inputs)
        outputs = [torch.empty_strided(s, steps, dtype=d) for s, steps, d in row.outputs]
        addresses += [t.data_ptr() for t in outputs]
        launcher = row.launcher
        failed = launcher.run(addresses, launcher.sizes, row.scratch)
        if failed is not None:
            raise launcher.failed(failed)
        returned = tuple(outputs[place] for place in self.places)
        return returned[0] if len(returned) == 1 else returned

    def _check_memory(self, inputs: Sequence[Any]) -> None:
        """Raises ``ArgumentError`` for a tensor with elements whose memory was given back."""
        for tensor, argument in zip(self._checked.inputs, inputs, strict=True):
            if argument.numel() and not argument.data_ptr():
                raise ArgumentError(
                    f"input '{tensor.name}' of {self._checked.name} has no memory: its storage "
                    "was resized to nothing"
                )

    @staticmethod
    def _copied_if_unaligned(tensor: Any, bits: int) -> Any:
        """The tensor, or a copy of one whose elements lie across the boundaries of their type."""
        if not tensor.data_ptr() & bits:
            return tensor
        return tensor.clone(memory_format=torch.contiguous_format)

    def row(self, inputs: Sequence[Any]) -> SignatureRow:
        """What calls on inputs like these need; compiled if it is not there."""
        key = tuple([(t.dtype, t.shape, t.stride()) for t in inputs])
        found = self._rows.get(key)
        if found is None:
            found = self._rows.setdefault(key, self._make_kernel(inputs))
            if self.varying:
                self._varied.append(key)
                if len(self._varied) > MOST_VARIED:
                    self._rows.pop(self._varied.popleft(), None)
        return found

    def _make_kernel(self, inputs: Sequence[Any]) -> SignatureRow:
        checked = self._checked
        check_inputs(checked, inputs)
        standing = [
            # Nothing reads their values: any address will do.
            memory_view(_ALIGNED, tuple(a.shape), _strides(a), numpy_dtype(t.type))
            for t, a in zip(checked.inputs, inputs, strict=True)
        ]
        found, _ = self._kernels.executor(checked.name, standing)
        executor = cast(Executor, found)
        shapes = [executor.outline.shapes[t.name] for t in checked.outputs]
        new = [contiguous(s, t.type.itemsize) for s, t in zip(shapes, checked.outputs, strict=True)]
        launcher = executor.kernel((*(s.strides for s in standing), *new), unchecked=self.unchecked)
        dtypes = [torch_dtype(t.type) for t in checked.outputs]
        steps = [contiguous(s, 1) for s in shapes]
        outputs = tuple(zip(shapes, steps, dtypes, strict=True))
        of_class = executor if isinstance(executor, VaryingExecutor) and launcher.sizes else None
        return SignatureRow(
            executor.outline, launcher, lengths(launcher.scratch), outputs, of_class
        )


_ALIGNED = 1 << 12


def _strides(tensor: Any) -> tuple[int, ...]:
    """In bytes. A dimension of one element has any in torch, and here that of a new tensor, so
    that no kernel is compiled for another."""
    new = contiguous(tuple(tensor.shape), 1)
    each = zip(tensor.shape, tensor.stride(), new, strict=True)
    return tuple(tensor.itemsize * (step if n > 1 else own) for n, step, own in each)
