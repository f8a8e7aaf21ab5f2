"""Kernels of one def for torch's tensors: on the CPU, found by their sizes and strides, and on CUDA
devices; these as arguments of a def, their types, and what is wrong with one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch

from tcl.arrays.arguments import check_count, input_array, wrong_rank
from tcl.arrays.libraries import memory_view
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.launch import Launcher, lengths
from tcl.codegen.loopir.layouts import WIDEST
from tcl.common.errors import ArgumentError, TclError
from tcl.common.shown import kind_of
from tcl.executors.call_kernels import MOST_VARIED
from tcl.executors.calls import Calls, contiguous
from tcl.executors.dispatch import Kernels
from tcl.executors.executor import Executor
from tcl.executors.varying import VaryingExecutor
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree.checked import CheckedDef, Tensor


def torch_dtype(type_: ScalarType) -> Any:
    return getattr(torch, type_.name)


def check_inputs(checked: CheckedDef, inputs: Sequence[Any]) -> None:
    """Raises ``ArgumentError`` unless the inputs are strided tensors of the declared element types
    and ranks, on one device. Reads nothing but what a tensor that is being traced has, too."""
    check_count(checked, inputs)
    for tensor, argument in zip(checked.inputs, inputs, strict=True):
        check_input(checked, tensor, argument)
        if argument.device != inputs[0].device:
            raise ArgumentError(
                f"input '{tensor.name}' of {checked.name} is on {argument.device}, but "
                f"'{checked.inputs[0].name}' on {inputs[0].device}; move it with "
                f".to({str(inputs[0].device)!r})"
            )


def check_input(checked: CheckedDef, tensor: Tensor, argument: Any) -> None:
    """Raises ``ArgumentError`` unless the argument is a strided tensor of the element type and rank
    that this input of the def has."""
    what = f"input '{tensor.name}' of {checked.name}"
    if not isinstance(argument, torch.Tensor):
        raise ArgumentError(f"{what} has to be a torch tensor, not {kind_of(argument)}")
    dtype = torch_dtype(tensor.type)
    if argument.dtype != dtype:
        numbers = ".dequantize()" * argument.is_quantized  # .to() alone refuses these
        raise ArgumentError(
            f"{what} is {tensor.type}, but a tensor of {argument.dtype} was given; "
            f"convert it with {numbers}.to({dtype})"
        )
    if argument.is_nested:
        raise ArgumentError(
            f"{what} has to be a strided tensor, not a nested one; convert it with "
            ".to_padded_tensor(0.0)"
        )
    if argument.layout != torch.strided:
        raise ArgumentError(
            f"{what} has to be a strided tensor, not one of the layout {argument.layout}; "
            "convert it with .to_dense()"
        )
    if argument.ndim != tensor.rank:
        raise ArgumentError(wrong_rank(what, tensor, tuple(argument.shape)))


def sized_for(checked: CheckedDef, inputs: Sequence[Any]) -> SizedDef:
    """The def with the sizes of these tensors.

    Sizes that torch holds as symbols stay such, and sizes of outputs are expressions of them: what
    range inference compares becomes a condition of the program that is traced. Where it needs a
    number, the symbol is fixed to its value. Raises ``ArgumentError`` and ``RangeInferenceError``.
    """
    check_inputs(checked, inputs)
    shapes = {t.name: tuple(a.shape) for t, a in zip(checked.inputs, inputs, strict=True)}
    try:
        return infer(checked, shapes)
    except (TclError, TypeError):
        if all(isinstance(n, int) for shape in shapes.values() for n in shape):
            raise
        return infer(checked, {name: tuple(map(int, shape)) for name, shape in shapes.items()})


def new_outputs(sized: SizedDef, returned: Sequence[Tensor], like: Any) -> tuple[Any, ...]:
    """New tensors for these outputs, row-major, on the device of ``like``; traced if it is."""
    return tuple(like.new_empty(sized.shapes[t.name], dtype=torch_dtype(t.type)) for t in returned)


def number_as_tensor(entry: str, tensor: Tensor, number: float, device: Any) -> Any:
    """A number as a tensor of rank 0, for an input. Raises ``ArgumentError`` for one that the
    declared type has not."""
    dtype = torch_dtype(tensor.type)
    if tensor.type.is_float:
        # Plain comparisons, which torch can trace: infinite numbers and NaN are numbers, too.
        fits = not torch.finfo(dtype).max < abs(number) < math.inf
    else:
        low, high = tensor.type.limits
        fits = not isinstance(number, float) and low <= number <= high
    if not fits:
        input_array(entry, tensor, number)  # says what is wrong, if it is
    return torch.tensor(number, dtype=dtype, device=device)


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
    return tuple((t.shape, t.stride(), t.device, t.data_ptr() % WIDEST == 0) for t in inputs)
