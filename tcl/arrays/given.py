"""What a caller passes, of whichever library, checked against a def's signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcl.arrays.arguments import (
    Array,
    base_outputs,
    check_count,
    check_initialised,
    check_outputs_count,
    input_array,
    input_arrays,
    new_output,
    output_arrays,
    wrong_rank,
)
from tcl.arrays.foreign import Adopted, adopted
from tcl.arrays.libraries import HOST, NUMPY
from tcl.codegen.common.dtypes import numpy_dtype, scalar_type_of
from tcl.codegen.devices.cupy_driver import Driver
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef, Tensor


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """What the arrays of a call have in common."""

    library: Any
    """Whose arrays they are, and outputs will be: a ``Library`` or ``Handed``."""
    device: int
    name: str = ""
    """The name of the input that the others are compared with, quoted."""


@dataclass(frozen=True, slots=True)
class Given:
    """The inputs of a call."""

    kind: ArrayKind
    arrays: tuple[Any, ...]
    views: tuple[Array, ...]
    """The same memory as NumPy sees it; see ``Library.view``. Of an array on the host that is not
    aligned, a copy."""
    copied: bool = False

    @property
    def library(self) -> Any:
        """Whose arrays they are, and outputs will be."""
        return self.kind.library

    @property
    def device(self) -> int:
        return self.kind.device


_NUMPY = ArrayKind(NUMPY, HOST)


def given_inputs(
    checked: CheckedDef, arguments: Sequence[Any], driver: Callable[[], Driver]
) -> Given:
    """The inputs as arrays of one library on one device, with the declared element types and
    ranks. Numbers for inputs of rank 0 are moved there. ``driver`` is asked for if that is a GPU.

    Sizes are not compared here: range inference does that. Raises ``ArgumentError``.
    """
    check_count(checked, arguments)
    if not all(type(argument) is np.ndarray for argument in arguments):
        found = [
            adopted(f"input '{tensor.name}' of {checked.name}", argument)
            for tensor, argument in zip(checked.inputs, arguments, strict=True)
        ]
        if any(map(_is_other, found)):
            return _foreign_inputs(checked, arguments, found, driver)
        arguments = [  # what handed its memory over to NumPy
            argument if one is None else one.array
            for argument, one in zip(arguments, found, strict=True)
        ]
    arrays = input_arrays(checked, arguments)
    return Given(_NUMPY, arrays, arrays)


def _is_other(one: Adopted | None) -> bool:
    """Whether it is an array of another library than NumPy."""
    return one is not None and one.library is not NUMPY


def _foreign_inputs(
    checked: CheckedDef,
    arguments: Sequence[Any],
    found: Sequence[Adopted | None],
    driver: Callable[[], Driver],
) -> Given:
    """Likewise, for arrays that are not NumPy's."""
    kinds = [
        ArrayKind(
            one.library,
            one.library.device(f"input '{tensor.name}' of {checked.name}", one.array),
            f"'{tensor.name}'",
        )
        for tensor, one in zip(checked.inputs, found, strict=True)
        if one is not None and _is_other(one)
    ]
    kind = next((each for each in kinds if each.device != HOST), kinds[0])
    library, device = kind.library, kind.device

    def take(tensor: Tensor, argument: Any, one: Adopted | None) -> tuple[Any, Array]:
        what = f"input '{tensor.name}' of {checked.name}"
        if one is not None:
            view = checked_view(what, tensor, one, kind)
            return one.array, view if device != HOST or view.flags.aligned else view.copy()
        if tensor.rank == 0 and isinstance(argument, np.generic | bool | int | float):
            array = library.filled(input_array(checked.name, tensor, argument), device)
            return array, library.view(what, array)
        raise ArgumentError(astray(what, argument, kind))

    def take_all() -> Given:
        pairs = [take(*each) for each in zip(checked.inputs, arguments, found, strict=True)]
        arrays, views = zip(*pairs, strict=True)
        copied = any(view is not array and view.flags.owndata for array, view in pairs)
        return Given(kind, arrays, views, copied)

    if device == HOST:
        return take_all()
    with driver().on(device):
        return take_all()


def given_outputs(
    sized: SizedDef, given: Given, outputs: Any, tensors: Sequence[Tensor]
) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
    """The caller's arrays for these outputs, checked, or new ones, and what NumPy sees of them.

    Raises ``ArgumentError`` as ``output_arrays``, and for another library or device.
    """
    checked, kind = sized.checked, given.kind
    if outputs is None:
        check_initialised(checked)
        arrays = tuple(new_array(sized, tensor, kind) for tensor in tensors)
        return arrays, tuple(map(kind.library.view, (t.name for t in tensors), arrays))
    names = [f"output '{tensor.name}' of {checked.name}" for tensor in tensors]
    each = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
    found = [adopted(what, output) for what, output in zip(names, each, strict=False)]
    if isinstance(outputs, tuple | list) or found[0] is not None:
        outputs = each
    if kind is _NUMPY and not any(map(_is_other, found)):
        if outputs is each and len(found) == len(each):
            pairs = zip(each, found, strict=True)
            outputs = tuple(output if one is None else one.array for output, one in pairs)
        own = output_arrays(sized, given.views, base_outputs(outputs), tensors)
        return own, own
    if kind is _NUMPY:
        first = f"'{checked.inputs[0].name}'" if checked.inputs else "what a call makes"
        kind = replace(kind, name=first)
    check_outputs_count(checked, outputs, tensors)
    views = []
    for what, tensor, output, one in zip(names, tensors, each, found, strict=True):
        if one is None:
            raise ArgumentError(astray(what, output, kind))
        if one.library.foreign:
            one.library.check_output(what)
        views.append(checked_view(what, tensor, one, kind))
    output_arrays(sized, given.views, views, tensors)
    return tuple(one.array for one in found if one is not None), tuple(views)


def new_array(sized: SizedDef, tensor: Tensor, kind: ArrayKind) -> Any:
    """A new array for an output. Raises ``ArgumentError`` if it is larger than the memory."""
    library, device = kind.library, kind.device
    return new_output(sized, tensor, lambda shape, _: library.empty(shape, tensor.type, device))


def checked_view(what: str, tensor: Tensor, one: Adopted, kind: ArrayKind) -> Array:
    """What NumPy sees of an array, if it may be used with those of this kind."""
    library, device = kind.library, kind.device
    lies = one.library.device(what, one.array)
    if (lies == HOST) != (device == HOST):
        raise ArgumentError(astray(what, one.array, kind))
    if one.library.noun != library.noun:
        raise ArgumentError(
            f"{what} is {one.library.noun}, but {kind.name} is {library.noun}; "
            "pass arrays of one library"
        )
    if lies != device or one.library != library:
        raise ArgumentError(
            f"{what} is on {one.library.place(lies)}, but {kind.name} on "
            f"{library.place(device)}; all arrays of a call must be on one device"
        )
    view: Array = library.view(what, one.array)
    dtype = numpy_dtype(tensor.type)
    if view.dtype != dtype:
        scalar_type_of(view.dtype, what)  # says so when no tensor could have this type
        raise ArgumentError(
            f"{what} is {tensor.type}, but {library.noun} of {view.dtype} was given; "
            f"convert it with {library.conversion(tensor.type)}"
        )
    if view.ndim != tensor.rank:
        raise ArgumentError(wrong_rank(what, tensor, view.shape))
    if device != HOST:
        steps = (s for s, n in zip(view.strides, view.shape, strict=True) if n > 1)
        if any(place % dtype.itemsize for place in (view.ctypes.data, *steps)):
            raise ArgumentError(f"{what} is not aligned in memory; pass .copy()")
    return view


def astray(what: str, argument: object, kind: ArrayKind) -> str:
    """What is wrong with an argument that is no array, or does not lie on the device."""
    if not (hasattr(argument, "shape") and hasattr(argument, "dtype")):
        return f"{what} has to be {kind.library.noun}, not {kind_of(argument)}"
    moving = kind.library.moving(kind.device)
    if kind.device == HOST:
        return f"{what} is not in host memory, but {kind.name} is; move it with {moving}"
    return f"{what} is in host memory, but {kind.name} on cuda:{kind.device}; move it with {moving}"
