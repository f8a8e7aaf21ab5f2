"""What a caller passes that lies on a CUDA device, checked against a def's signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.arrays.arguments import (
    check_count,
    check_initialised,
    check_outputs_count,
    input_array,
    output_arrays,
    wrong_rank,
)
from tcl.arrays.cuda_libraries import Library, adopted
from tcl.arrays.cuda_shadow import Shadow
from tcl.codegen.common.dtypes import numpy_dtype, scalar_type_of
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.devices.cupy_driver import Driver
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.sized import SizedDef


@dataclass(frozen=True, slots=True)
class Given:
    """The inputs of a call."""

    library: Library
    """Whose arrays they are, and outputs will be."""
    device: int
    """That all lie on."""
    arrays: tuple[Any, ...]
    first: str
    """The name of the first that lies there, quoted."""


def cuda_inputs(checked: CheckedDef, arguments: Sequence[Any], driver: Driver) -> Given:
    """The inputs as arrays of one library on one device, with the declared element types and
    ranks. Numbers for inputs of rank 0 are moved there.

    Sizes are not compared here: range inference does that. Raises ``ArgumentError``.
    """
    check_count(checked, arguments)
    found = [adopted(argument) for argument in arguments]
    pairs = zip(found, checked.inputs, strict=True)
    leader = next(((one, tensor.name) for one, tensor in pairs if one is not None), None)
    if leader is None:
        raise ArgumentError(f"no input of {checked.name} lies on a CUDA device")
    (library, first), name = leader
    device = library.device(first)
    arrays: list[Any] = []
    with driver.on(device):
        for tensor, argument, one in zip(checked.inputs, arguments, found, strict=True):
            what = f"input '{tensor.name}' of {checked.name}"
            if one is not None:
                checked_shadow(what, tensor, one, library, device, f"'{name}'")
                arrays.append(one[1])
            elif tensor.rank == 0 and isinstance(argument, np.generic | bool | int | float):
                values = input_array(checked.name, tensor, argument)
                arrays.append(library.filled(values, device))
            else:
                raise ArgumentError(_astray(what, argument, library, device, f"'{name}'"))
    return Given(library, device, tuple(arrays), f"'{name}'")


def shadows(checked: CheckedDef, given: Given) -> tuple[Shadow, ...]:
    """What stands for the inputs of a call."""
    names = (f"input '{tensor.name}' of {checked.name}" for tensor in checked.inputs)
    return tuple(given.library.shadow(*each) for each in zip(names, given.arrays, strict=True))


def cuda_outputs(
    sized: SizedDef, given: Given, outputs: Sequence[Any] | None
) -> tuple[tuple[Any, ...], tuple[Shadow, ...]]:
    """The caller's output arrays, checked, or new ones, and what stands for them.

    Raises ``ArgumentError`` as ``output_arrays``, and for another library or device.
    """
    checked, library, device = sized.checked, given.library, given.device
    if outputs is None:
        check_initialised(checked)
        arrays = tuple(library.empty(sized.shapes[t.name], t.type, device) for t in checked.outputs)
        names = (f"output '{t.name}' of {checked.name}" for t in checked.outputs)
        return arrays, tuple(library.shadow(*each) for each in zip(names, arrays, strict=True))
    if not isinstance(outputs, tuple | list) and adopted(outputs) is not None:
        outputs = (outputs,)
    check_outputs_count(checked, outputs)
    found = []
    for tensor, output in zip(checked.outputs, outputs, strict=True):
        what = f"output '{tensor.name}' of {checked.name}"
        one = adopted(output)
        if one is None:
            raise ArgumentError(_astray(what, output, library, device, given.first))
        found.append((one[1], checked_shadow(what, tensor, one, library, device, given.first)))
    standing = tuple(shadow for _, shadow in found)
    output_arrays(sized, shadows(checked, given), standing)
    return tuple(array for array, _ in found), standing


def checked_shadow(
    what: str, tensor: Tensor, one: tuple[Library, Any], library: Library, device: int, beside: str
) -> Shadow:
    """What stands for an array, if it may be used with those ``beside`` it."""
    if one[0] is not library:
        raise ArgumentError(
            f"{what} is {one[0].noun}, but {beside} is {library.noun}; pass arrays of one library"
        )
    lies = library.device(one[1])
    if lies != device:
        raise ArgumentError(
            f"{what} lies on cuda:{lies}, but {beside} on cuda:{device}; "
            "all arrays of a call have to lie on one device"
        )
    standing = library.shadow(what, one[1])
    dtype = numpy_dtype(tensor.type)
    if standing.dtype != dtype:
        scalar_type_of(standing.dtype, what)  # says so when no tensor could have this type
        raise ArgumentError(
            f"{what} is {tensor.type}, but {library.noun} of {standing.dtype} was given; "
            f"convert it with {library.conversion(tensor.type)}"
        )
    if standing.ndim != tensor.rank:
        raise ArgumentError(wrong_rank(what, tensor, standing.shape))
    steps = (s for s, n in zip(standing.strides, standing.shape, strict=True) if n > 1)
    if any(place % dtype.itemsize for place in (standing.ctypes.data, *steps)):
        raise ArgumentError(f"{what} is not aligned in memory; pass .copy()")
    return standing


def _astray(what: str, argument: object, library: Library, device: int, beside: str) -> str:
    """What is wrong with an argument that does not lie on a CUDA device."""
    if hasattr(argument, "shape") and hasattr(argument, "dtype"):
        return (
            f"{what} lies in the host's memory, but {beside} on cuda:{device}; "
            f"move it with {library.moving(device)}"
        )
    return f"{what} has to be {library.noun}, not {type(argument).__name__}"
