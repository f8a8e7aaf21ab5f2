"""What a caller passes, of whichever library, checked against a def's signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.arrays.adopted import Adopted, adopted
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
from tcl.arrays.libraries import HOST, Library
from tcl.arrays.numpy_arrays import NUMPY
from tcl.codegen.common.dtypes import numpy_dtype, scalar_type_of
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.devices.cupy_driver import Driver
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.shown import kind_of
from tcl.grammar.sized import SizedDef


@dataclass(frozen=True, slots=True)
class Given:
    """The inputs of a call."""

    library: Library
    """Whose arrays they are, and outputs will be."""
    device: int
    """That all lie on."""
    arrays: tuple[Any, ...]
    views: tuple[Array, ...]
    """The same memory as NumPy sees it; see ``Library.view``. Of an array on the host that is not
    aligned, a copy."""
    first: str
    """The name of the one that the others are compared with, quoted."""
    copied: bool = False
    """Whether any of them was."""


def given_inputs(
    checked: CheckedDef, arguments: Sequence[Any], driver: Callable[[], Driver]
) -> Given:
    """The inputs as arrays of one library on one device, with the declared element types and
    ranks. Numbers for inputs of rank 0 are moved there. ``driver`` is asked for if that is a GPU.

    Sizes are not compared here: range inference does that. Raises ``ArgumentError``.
    """
    check_count(checked, arguments)
    if not all(type(argument) is np.ndarray for argument in arguments):
        found = [adopted(argument) for argument in arguments]
        if any(one is not None and one.library is not NUMPY for one in found):
            return _given(checked, arguments, found, driver)
    arrays = input_arrays(checked, arguments)
    return Given(NUMPY, HOST, arrays, arrays, "")


def _given(
    checked: CheckedDef,
    arguments: Sequence[Any],
    found: Sequence[Adopted | None],
    driver: Callable[[], Driver],
) -> Given:
    """Likewise, for arrays that are not NumPy's."""
    names = [f"input '{tensor.name}' of {checked.name}" for tensor in checked.inputs]
    devices = [
        None if one is None else one.library.device(what, one.array)
        for what, one in zip(names, found, strict=True)
    ]
    leader = next(
        (k for k, device in enumerate(devices) if device not in (None, HOST)),
        next(k for k, one in enumerate(found) if one is not None and one.library is not NUMPY),
    )
    first, device = found[leader], devices[leader]
    assert first is not None and device is not None
    library, name = first.library, f"'{checked.inputs[leader].name}'"

    def take(tensor: Tensor, argument: Any, one: Adopted | None) -> tuple[Any, Array]:
        what = f"input '{tensor.name}' of {checked.name}"
        if one is not None:
            view = checked_view(what, tensor, one, library, device, name)
            return one.array, view if device != HOST or view.flags.aligned else view.copy()
        if tensor.rank == 0 and isinstance(argument, np.generic | bool | int | float):
            array = library.filled(input_array(checked.name, tensor, argument), device)
            return array, library.view(what, array)
        raise ArgumentError(astray(what, argument, library, device, name))

    def take_all() -> Given:
        pairs = [take(*each) for each in zip(checked.inputs, arguments, found, strict=True)]
        arrays, views = zip(*pairs, strict=True)
        copied = any(view.flags.owndata for view in views)
        return Given(library, device, arrays, views, name, copied)

    if device == HOST:
        return take_all()
    with driver().on(device):
        return take_all()


def given_outputs(
    sized: SizedDef, given: Given, outputs: Any
) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
    """The caller's output arrays, checked, or new ones, and what NumPy sees of them.

    Raises ``ArgumentError`` as ``output_arrays``, and for another library or device.
    """
    checked, library, device = sized.checked, given.library, given.device
    if (library is NUMPY and outputs is None) or (library is NUMPY and not _others(outputs)):
        arrays = output_arrays(sized, given.views, base_outputs(outputs))
        return arrays, arrays
    names = [f"output '{t.name}' of {checked.name}" for t in checked.outputs]
    if outputs is None:
        check_initialised(checked)

        def make(tensor: Tensor) -> Any:
            return new_output(
                sized, tensor, lambda shape, _: library.empty(shape, tensor.type, device)
            )

        arrays = tuple(map(make, checked.outputs))
        return arrays, tuple(library.view(*each) for each in zip(names, arrays, strict=True))
    if not isinstance(outputs, tuple | list) and adopted(outputs) is not None:
        outputs = (outputs,)
    check_outputs_count(checked, outputs)
    found = []
    for what, tensor, output in zip(names, checked.outputs, outputs, strict=True):
        one = adopted(output)
        if one is None:
            raise ArgumentError(astray(what, output, library, device, given.first))
        found.append((one.array, checked_view(what, tensor, one, library, device, given.first)))
    views = tuple(view for _, view in found)
    output_arrays(sized, given.views, views)
    return tuple(array for array, _ in found), views


def _others(outputs: Any) -> bool:
    """Whether there are arrays of another library than NumPy among a call's ``outputs=``."""
    each = outputs if isinstance(outputs, tuple | list) else (outputs,)
    return any((one := adopted(o)) is not None and one.library is not NUMPY for o in each)


def checked_view(
    what: str, tensor: Tensor, one: Adopted, library: Library, device: int, beside: str
) -> Array:
    """What NumPy sees of an array, if it may be used with those ``beside`` it."""
    lies = one.library.device(what, one.array)
    if (lies == HOST) != (device == HOST):
        raise ArgumentError(astray(what, one.array, library, device, beside))
    if one.library is not library:
        raise ArgumentError(
            f"{what} is {one.library.noun}, but {beside} is {library.noun}; "
            "pass arrays of one library"
        )
    if lies != device:
        raise ArgumentError(
            f"{what} lies on cuda:{lies}, but {beside} on cuda:{device}; "
            "all arrays of a call have to lie on one device"
        )
    view = library.view(what, one.array)
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


def astray(what: str, argument: object, library: Library, device: int, beside: str) -> str:
    """What is wrong with an argument that is no array, or does not lie on the device."""
    if adopted(argument) is None and not (
        hasattr(argument, "shape") and hasattr(argument, "dtype")
    ):
        return f"{what} has to be {library.noun}, not {kind_of(argument)}"
    if device == HOST:
        return (
            f"{what} lies on a GPU, but {beside} in the host's memory; move it with "
            f"{library.moving(device)}"
        )
    return (
        f"{what} lies in the host's memory, but {beside} on cuda:{device}; "
        f"move it with {library.moving(device)}"
    )
