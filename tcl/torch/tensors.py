"""torch's tensors as arguments of a def: their types, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tcl.arrays.arguments import check_count, input_array, wrong_rank
from tcl.common.errors import ArgumentError, TclError
from tcl.common.shown import kind_of
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
