"""CuPy's arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tcl.arrays.arguments import Array
from tcl.arrays.libraries import CudaLibrary, Like, shadow
from tcl.arrays.likeness import Native, Record, cupy_alike
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cupy_driver import Memory, cupy
from tcl.grammar.syntax.types import ScalarType


class CupyArrays(CudaLibrary):
    """CuPy's arrays."""

    noun = "a CuPy array"

    def __init__(self) -> None:
        package = cupy()
        self._package = package
        self._array = package.ndarray
        self._stream = package.cuda.get_current_stream

    def device(self, what: str, array: Any) -> int:
        return int(array.data.device_id)

    def view(self, what: str, array: Any) -> Array:
        return shadow(array.data.ptr, array.shape, array.strides, array.dtype)

    def like(self, array: Any, unaligned: int) -> Like:
        plain = getattr(array, "_c_contiguous", False)  # of CuPy 14: as its flags say, but quick
        return (
            *(type(array), array.dtype, array.shape, array.strides, array.data.device_id),
            *(unaligned, plain),
        )

    def addresses(self, arrays: tuple[Any, ...], likes: tuple[Like, ...]) -> list[int] | None:
        found: list[int] = []
        for array, (kind, dtype, shape, strides, device, unaligned, plain) in zip(  # noqa: B905
            arrays, likes
        ):
            if (
                type(array) is not kind
                or array.dtype is not dtype
                or array.shape != shape
                or not (array._c_contiguous if plain else array.strides == strides)
            ):
                return None
            data = array.data
            address = data.ptr
            if address & unaligned or data.device_id != device:
                return None
            found.append(address)
        return found

    def reader(self) -> Native | None:
        return cupy_alike()

    def record(self, array: Any, unaligned: int, place: int) -> Record:
        """What ``reader`` compares an array with, as ``HostLibrary.record``."""
        device = int(array.data.device_id)
        kind = id(type(array)), id(array.dtype), unaligned, device
        return (*kind, 1, array.shape, array.strides, place)

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        return self._package.empty(shape, numpy_dtype(type_))

    def filled(self, values: Array, device: int) -> Any:
        return self._package.asarray(values)

    def permits(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> bool:
        return True

    def memory(self, size: int, device: int) -> Memory:
        found: Memory = self._package.cuda.alloc(size)
        return found

    def stream(self, device: int) -> int:
        found: int = self._stream(device).ptr
        return found

    def numbers(self, array: Any) -> Array:
        found: Array = array.get()
        return found

    def conversion(self, type_: ScalarType) -> str:
        return f".astype({type_.name!r})"

    def moving(self, device: int) -> str:
        return "cupy.asarray(...)"


@functools.cache
def cupy_arrays() -> CupyArrays:
    """The library. Raises ``ArgumentError`` if CuPy is missing."""
    return CupyArrays()
