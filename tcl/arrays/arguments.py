"""What a caller passes: NumPy arrays and scalars, checked against a def's signature."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.common.dtypes import numpy_dtype, scalar_type_of
from tcl.common.closest import did_you_mean
from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.common.shown import kind_of, shown
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef, Tensor
from tcl.workers.process_memory import free_memory, in_words, total_memory

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # importing numpy.typing takes 15 ms
Scalar: TypeAlias = np.generic | int | float | bool
Wanted: TypeAlias = str | Sequence[str] | None
"""Names of the outputs that a call returns; None for all."""
Argument: TypeAlias = Array | Scalar
"""An array; for an input of rank 0 also a scalar."""


def input_arrays(checked: CheckedDef, arguments: Sequence[Argument]) -> tuple[Array, ...]:
    """The inputs as arrays of the declared element types and ranks.

    Sizes are not compared here: range inference does that. Raises ``ArgumentError``.
    """
    check_count(checked, arguments)
    return tuple(
        [
            argument
            if type(argument) is np.ndarray
            and argument.dtype == numpy_dtype(tensor.type)
            and argument.ndim == tensor.rank
            and argument.flags.aligned
            else input_array(checked.name, tensor, argument)
            for tensor, argument in zip(checked.inputs, arguments, strict=True)
        ]
    )


def check_count(checked: CheckedDef, arguments: Sequence[object]) -> None:
    """Raises ``ArgumentError`` if there are not as many as the def has inputs."""
    expected = checked.inputs
    if len(arguments) != len(expected):
        names = ", ".join(t.name for t in expected)
        missing = [t.name for t in expected[len(arguments) :]]
        which = f": {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing"
        raise ArgumentError(
            f"{checked.name} takes {plural(len(expected), 'input')} ({names}), "
            f"but {plural(len(arguments), 'argument')} "
            f"{'was' if len(arguments) == 1 else 'were'} given" + which * bool(missing)
        )


def input_array(entry: str, tensor: Tensor, argument: Argument) -> Array:
    """An input as an array of the declared element type and rank. Raises ``ArgumentError``."""
    what = f"input '{tensor.name}' of {entry}"
    dtype = numpy_dtype(tensor.type)
    if isinstance(argument, np.ndarray):
        refuse_mask(what, argument)
        array = base_array(argument)
    elif isinstance(argument, np.generic):
        array = np.asarray(argument)
    elif tensor.rank == 0 and isinstance(argument, bool | int | float):
        return _scalar(what, tensor, argument)
    else:
        wanted = "a NumPy array" if tensor.rank else "a number or a NumPy array of rank 0"
        becomes_one = isinstance(argument, list | tuple | range) or hasattr(argument, "__array__")
        raise ArgumentError(
            f"{what} has to be {wanted}, not {kind_of(argument)}"
            + f"; use numpy.asarray(..., {dtype.name!r})" * becomes_one
        )
    if array.dtype != dtype:
        scalar_type_of(array.dtype, what)  # says so when no tensor could have this type
        if isinstance(argument, np.generic) and tensor.rank == 0:
            return _scalar(what, tensor, argument.item())
        raise ArgumentError(
            f"{what} is {tensor.type}, but an array of {array.dtype} was given; "
            f"convert it with .astype({dtype.name!r})"
        )
    if array.ndim != tensor.rank:
        raise ArgumentError(wrong_rank(what, tensor, array.shape))
    return array if array.flags.aligned else array.copy()


def _scalar(what: str, tensor: Tensor, value: bool | int | float) -> Array:
    if not tensor.type.is_float:
        low, high = tensor.type.limits
        if isinstance(value, float) or not low <= value <= high:
            remedy = "; pass int(x)" * (isinstance(value, float) and not tensor.type.is_bool)
            raise ArgumentError(
                f"{what} is {tensor.type}, which {shown(value)} is not a value of{remedy}"
            )
    with np.errstate(over="ignore"):
        try:
            array = np.asarray(value, dtype=numpy_dtype(tensor.type))
        except OverflowError:  # an integer beyond float64
            array = np.asarray(np.inf)
    if np.isinf(array) and abs(value) != math.inf:
        raise ArgumentError(
            f"{what} is {tensor.type}, which cannot hold a number as large as the given one"
        )
    return array


def base_array(array: Array) -> Array:
    """The array as NumPy itself sees it. Kernels go to memory by shape, strides and address, and
    a subclass may say of these what it likes."""
    return array if type(array) is np.ndarray else np.asarray(array)


def base_outputs(outputs: Any) -> Any:
    """A call's ``outputs=`` with the arrays that kernels write to. What is no array, or is one with
    a mask, is left for ``output_arrays`` to refuse."""
    if isinstance(outputs, tuple | list):
        return tuple([_base_output(each) for each in outputs])
    return _base_output(outputs)


def _base_output(output: Any) -> Any:
    if type(output) is np.ndarray or not issubclass(type(output), np.ndarray):
        return output  # before NumPy loads masked arrays, which takes 20 ms
    return output if isinstance(output, np.ma.MaskedArray) else base_array(output)


def refuse_mask(what: str, array: Array) -> None:
    """Raises ``ArgumentError`` for an array whose mask would be ignored."""
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"{what} is a masked array, and its mask would be ignored; pass .filled(value) or .data"
        )


def output_arrays(
    sized: SizedDef, inputs: Sequence[Array], outputs: Any, tensors: Sequence[Tensor]
) -> tuple[Array, ...]:
    """The caller's arrays for these outputs, checked.

    Raises ``ArgumentError`` for a wrong count, shape, type or layout, and for memory that overlaps
    an input or another output.
    """
    checked = sized.checked
    if isinstance(outputs, np.ndarray):
        outputs = (outputs,)
    check_outputs_count(checked, outputs, tensors)
    for position, (tensor, array) in enumerate(zip(tensors, outputs, strict=True)):
        what = f"output '{tensor.name}' of {checked.name}"
        _check_output(what, tensor, array, sized.shapes[tensor.name])
        for other, name in (
            *zip(inputs, (f"input '{t.name}'" for t in checked.inputs), strict=True),
            *zip(outputs[:position], (f"output '{t.name}'" for t in tensors), strict=False),
        ):
            if _overlap(array, other):
                raise ArgumentError(f"{what} overlaps {name} in memory; pass a separate array")
    return tuple(outputs)


def check_outputs_count(checked: CheckedDef, outputs: object, tensors: Sequence[Tensor]) -> None:
    """Raises ``ArgumentError`` if it is no sequence of as many as these outputs of the def."""
    names = ", ".join(t.name for t in tensors)
    if not isinstance(outputs, (tuple, list)):
        raise ArgumentError(
            f"outputs= has to be a tuple of arrays, here ({names}{',' * (', ' not in names)}), "
            f"not {kind_of(outputs)}"
        )
    if len(outputs) != len(tensors):
        some = len(tensors) < len(checked.outputs)
        raise ArgumentError(
            f"{checked.name} has {plural(len(tensors), 'output')}{' that is wanted' * some} "
            f"({names}), but outputs= has {len(outputs)}"
        )


def wanted_places(checked: CheckedDef, wanted: Wanted) -> tuple[int, ...]:
    """The places, among the def's outputs, of those that are wanted. Raises ``ArgumentError`` for a
    name that is none's, or is given twice, and if one is left out that the def adds to."""
    names = [t.name for t in checked.outputs]
    some = (wanted,) if isinstance(wanted, str) else wanted
    if not isinstance(some, tuple | list) or not all(isinstance(name, str) for name in some):
        raise ArgumentError(
            f"wanted has to be a tuple of names of outputs, here of {', '.join(names)}, "
            f"not {shown(wanted)}"
        )
    for position, name in enumerate(some):
        if name not in names:
            hint = did_you_mean(name, names, f"its outputs are {', '.join(names)}", "'")
            raise ArgumentError(
                f"{checked.name} has no output '{name}' to select with wanted; {hint}"
            )
        if name in some[:position]:
            raise ArgumentError(f"wanted names the output '{name}' of {checked.name} twice")
    if not some:
        raise ArgumentError(f"wanted names no output of {checked.name}; name one")
    for name in names:
        if name in checked.uninitialised and name not in some:
            raise ArgumentError(
                f"{checked.name} adds to its output '{name}' without initialising it, so wanted "
                "cannot leave it out; write the reduction with '!'"
            )
    return tuple(names.index(name) for name in some)


def check_initialised(checked: CheckedDef) -> None:
    """Raises ``ArgumentError`` if new outputs will not do, because the def adds to them."""
    if checked.uninitialised:
        names = ", ".join(f"'{n}'" for n in sorted(checked.uninitialised))
        raise ArgumentError(
            f"{checked.name} reduces into {names} without initialising it; pass outputs=, "
            "or write the reduction with '!'"
        )


def new_output(sized: SizedDef, tensor: Tensor, make: Callable[..., Array]) -> Array:
    """What ``make``, as ``numpy.empty`` and ``numpy.zeros``, gives for an output; ``ArgumentError``
    if it is larger than the memory."""
    what = f"output '{tensor.name}' of {sized.checked.name}"
    return allocated(what, tensor, sized.shapes[tensor.name], sized.sizes, make)


def allocated(
    what: str,
    tensor: Tensor,
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    make: Callable[..., Array],
) -> Array:
    """A new array; ``ArgumentError`` for one that is larger than the memory."""
    dtype = numpy_dtype(tensor.type)
    needed = math.prod(shape) * dtype.itemsize
    try:
        if needed > LARGE and needed > (total_memory() or needed):
            raise MemoryError  # the system may promise it all the same, and kill who uses it
        return make(shape, dtype)
    except ArgumentError:  # of a variable's value, which is a ValueError, too
        raise
    except (MemoryError, ValueError):
        free = free_memory()
        by = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise ArgumentError(
            f"{what} needs {in_words(needed)} of memory: it is {tensor.type} of shape {shape}"
            + f", with {by}" * bool(by)
            + (f"; {in_words(free)} is free" if free is not None else "")
        ) from None


LARGE = 1 << 28
"""Bytes from which on it is looked up how much memory there is."""


def _check_output(what: str, tensor: Tensor, array: Array, shape: tuple[int, ...]) -> None:
    dtype = numpy_dtype(tensor.type)
    if not issubclass(type(array), np.ndarray):  # a stand-in may have another ``__class__``
        raise ArgumentError(f"{what} has to be a NumPy array, not {kind_of(array)}")
    refuse_mask(what, array)
    if array.dtype != dtype:
        raise ArgumentError(
            f"{what} is {tensor.type}, but an array of {array.dtype} was given; "
            f"make it of dtype {dtype.name!r}"
        )
    if array.shape != shape:
        raise ArgumentError(f"{what} has shape {shape}, but an array of {array.shape} was given")
    if not array.flags.writeable:
        raise ArgumentError(f"{what} is read-only; pass an array that can be written")
    if not array.flags.aligned:
        raise ArgumentError(f"{what} is not aligned in memory; pass an aligned array")
    if not array.flags.forc and _overlaps_itself(array):
        raise ArgumentError(f"{what} overlaps itself in memory; pass an array without repetition")


def _overlaps_itself(array: Array) -> bool:
    """Whether two elements share memory. Exact for every array that slicing can make."""
    if array.size == 0:
        return False
    axes = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, extent in axes:
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def wrong_rank(what: str, tensor: Tensor, shape: tuple[int, ...]) -> str:
    dims = f" ({', '.join(map(str, tensor.dims))})" if tensor.dims else ""
    return (
        f"{what} has {plural(tensor.rank, 'dimension')}{dims}, "
        f"but an array of shape {shape} was given"
    )
