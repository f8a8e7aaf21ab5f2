"""NumPy's arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcl.arrays.arguments import Array, base_array, refuse_mask
from tcl.arrays.libraries import HOST, HostLibrary, Like
from tcl.arrays.likeness import WRITEABLE, Native, Record, numpy_alike
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run import memory
from tcl.codegen.cpu.run.launch import DATA, DIRECT, address_of, words
from tcl.grammar.syntax.types import ScalarType


class NumpyArrays(HostLibrary):
    """NumPy's arrays."""

    noun = "a NumPy array"

    def device(self, what: str, array: Any) -> int:
        return HOST

    def view(self, what: str, array: Any) -> Array:
        refuse_mask(what, array)
        return base_array(array)

    def like(self, array: Any, unaligned: int) -> Like:
        return type(array), array.dtype, array.shape, array.strides, HOST, unaligned, False

    def addresses(self, arrays: tuple[Any, ...], likes: tuple[Like, ...]) -> list[int] | None:
        found: list[int] = []
        for array, (kind, dtype, shape, strides, _, unaligned, _) in zip(  # noqa: B905
            arrays, likes
        ):
            if (
                type(array) is not kind
                or array.dtype is not dtype
                or array.shape != shape
                or array.strides != strides
            ):
                return None
            address = words[(id(array) >> 3) + DATA] if DIRECT else address_of(array)
            if address & unaligned:
                return None
            found.append(address)
        return found

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Array:
        return memory.empty(shape, numpy_dtype(type_))

    def maker(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Callable[[], Array]:
        return memory.maker(shape, numpy_dtype(type_))

    def filled(self, values: Array, device: int) -> Array:
        return values

    def permits(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> bool:
        return all(type(array) is np.ndarray and array.flags.writeable for array in outputs or ())

    def native(self) -> Native | None:
        return numpy_alike()

    def record(self, array: Any, unaligned: int, place: int, *, output: bool) -> Record:
        return (
            *(id(type(array)), id(array.dtype), unaligned, WRITEABLE if output else 0),
            *(0, array.shape, array.strides, place),
        )

    def numbers(self, array: Any) -> Array:
        return base_array(array)

    def conversion(self, type_: ScalarType) -> str:
        return f".astype({type_.name!r})"

    def moving(self, device: int) -> str:
        return "numpy.asarray(...)"


class AlignedArrays(NumpyArrays):
    """NumPy's arrays, of which new ones begin where JAX takes memory over without a copy."""

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Array:
        dtype = numpy_dtype(type_)
        size = math.prod(shape) * dtype.itemsize
        room = memory.empty((size + _ALIGNMENT,), np.uint8)
        start = -address_of(room) % _ALIGNMENT
        found: Array = room[start : start + size].view(dtype).reshape(shape)
        return found

    def maker(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Callable[[], Array]:
        return functools.partial(self.empty, shape, type_, device)


_ALIGNMENT = 64
"""Bytes; XLA's for memory of the CPU."""

NUMPY = NumpyArrays()
ALIGNED = AlignedArrays()
