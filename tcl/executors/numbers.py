"""Python's numbers as inputs of calls like one that went well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.arrays.libraries import HOST, NUMPY, Library
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.tree.checked import Tensor

if TYPE_CHECKING:
    from tcl.executors.calls import Repeat

_Make = Callable[[Any], Any]


class WithNumbers:
    """A ``Repeat`` for calls with numbers for inputs of rank 0: those become arrays first. What is
    not plainly a value of the input's type is left for who looks at everything."""

    __slots__ = ("_makers", "_repeat")

    def __init__(
        self, repeat: Repeat, tensors: Sequence[tuple[int, Tensor]], library: Library
    ) -> None:
        """``tensors``: inputs of rank 0, with their places. ``library``: whose arrays the others
        are."""
        self._repeat = repeat
        self._makers = [(place, _maker(tensor, library)) for place, tensor in tensors]

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        given = list(inputs)
        for place, make in self._makers:
            try:
                kind = type(value := given[place])
            except IndexError:
                return None
            if kind is float or kind is int:
                array = make(value)
                if array is None:
                    return None
                given[place] = array
        return self._repeat(tuple(given), outputs)


def _maker(tensor: Tensor, library: Library) -> _Make:
    """From a number to an array of rank 0; None for one that may not be a value of the type."""
    dtype = numpy_dtype(tensor.type)
    if tensor.type.is_float:
        try:
            high: float = float(np.finfo(dtype).max)
        except ValueError:  # a type that NumPy does not know
            return lambda value: None
        low = -high
    elif tensor.type.is_bool:
        return lambda value: None
    else:
        low, high = tensor.type.limits
    whole = not tensor.type.is_float

    def made(value: float) -> Any:
        if not low <= value <= high or (whole and type(value) is not int):
            return None
        return np.array(value, dtype)

    if library is NUMPY:
        return made

    def moved(value: float) -> Any:
        array = made(value)
        return None if array is None else library.filled(array, HOST)

    return moved
