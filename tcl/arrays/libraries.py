"""What a call asks of a library of arrays, and NumPy's answers; every library is one behind the
same interface."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tcl.arrays.arguments import Array, base_array, refuse_mask
from tcl.arrays.likeness import WRITEABLE, Native, Record, numpy_alike
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run import memory
from tcl.codegen.cpu.run.launch import DATA, DIRECT, address_of, words
from tcl.codegen.devices.cupy_driver import Memory
from tcl.grammar.syntax.types import ScalarType

HOST = -1
"""The number of the device whose memory NumPy's arrays lie in. Those of CUDA count from 0."""

Like: TypeAlias = tuple[Any, Any, Any, Any, int, int, bool]
"""Type, element type, shape, strides, device, bits that no address has, and whether elements lie
side by side in row-major order (which is quicker to ask for than strides)."""


class Library(ABC):
    """What arrays of one library are asked for."""

    noun: str
    """What one is called."""

    @abstractmethod
    def device(self, what: str, array: Any) -> int:
        """The device that it lies on. Raises ``ArgumentError`` for one that no kernel is for."""

    @abstractmethod
    def view(self, what: str, array: Any) -> Array:
        """The same memory as NumPy sees it; of a GPU's memory, what stands for it (``Shadow``).
        Raises ``ArgumentError`` for what no tensor can be."""

    @abstractmethod
    def like(self, array: Any, unaligned: int) -> Like:
        """What ``addresses`` compares arrays with. ``unaligned`` are bits that no address has."""

    @abstractmethod
    def addresses(self, arrays: tuple[Any, ...], likes: tuple[Like, ...]) -> list[int] | None:
        """Where their first elements lie; None if one has another type, shape, strides or device
        than the array that its ``like`` was made of. There are as many of both."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        """A new array. A GPU has to be the current one."""

    def maker(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Callable[[], Any]:
        """What makes new arrays, as ``empty`` does, time and again."""
        return partial(self.empty, shape, type_, device)

    @abstractmethod
    def filled(self, values: Array, device: int) -> Any:
        """A new array with these values. A GPU has to be the current one."""

    @abstractmethod
    def permits(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> bool:
        """Whether arrays like those of an earlier call may be used in this one: whether nobody
        would have to record that, and the caller's ``outputs`` may be written to. Where the library
        counts how often an array was written to, this counts."""

    @abstractmethod
    def numbers(self, array: Any) -> Array:
        """Its values as NumPy's, on the host: exactly, if in another type."""

    @abstractmethod
    def conversion(self, type_: ScalarType) -> str:
        """How one becomes one of another type."""

    @abstractmethod
    def moving(self, device: int) -> str:
        """How an array of another device comes to this one."""

    foreign = False
    """Whether it is ``Handed``."""

    def place(self, device: int) -> str:
        """A device, as the library calls it."""
        return f"cuda:{device}"


class HostLibrary(Library):
    """A library whose arrays may lie in the host's memory."""

    @abstractmethod
    def native(self) -> Native | None:
        """What compares arrays natively, and runs; None where there is no such thing."""

    @abstractmethod
    def record(self, array: Any, unaligned: int, place: int, *, output: bool) -> Record:
        """What it compares an array with. ``unaligned`` are bits that no address has."""


class CudaLibrary(Library):
    """A library whose arrays may lie on a CUDA device, which has to be the current one."""

    @abstractmethod
    def memory(self, size: int, device: int) -> Memory:
        """Memory for work on the current stream."""

    @abstractmethod
    def stream(self, device: int) -> int:
        """The caller's current stream."""

    def reader(self) -> Native | None:
        """What compares arrays on a device natively; None where Python does."""
        return None


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
        return partial(self.empty, shape, type_, device)


_ALIGNMENT = 64
"""Bytes; XLA's for memory of the CPU."""

NUMPY = NumpyArrays()
ALIGNED = AlignedArrays()


class Shadow(np.ndarray[Any, np.dtype[Any]]):
    """Has the address, shape, strides and type of an array on a device, so that what is checked of
    NumPy's arrays is checked of those too: types, ranks, and exactly whether two overlap. Its
    values are not there to be read, not even to be shown in a traceback."""

    __array_ufunc__ = None  # type: ignore[assignment]  # NumPy's way to say: no arithmetic

    def _unreadable(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this array represents device memory, which cannot be read here")

    copy = tobytes = tolist = item = astype = _unreadable
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _unreadable

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in (np.may_share_memory, np.shares_memory):  # which look at addresses alone
            self._unreadable()
        return super().__array_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return f"<memory of a device: {self.dtype} of shape {self.shape}>"

    __str__ = __repr__


class _Interface:
    def __init__(self, interface: dict[str, object], keep: object) -> None:
        self.__array_interface__ = interface
        self.keep = keep


def memory_view(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    keep: object = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """An array on this memory, which lives as long as ``keep`` does; the array keeps it."""
    interface = {
        "version": 3,
        "data": (address if 0 not in shape else dtype.alignment, False),
        "shape": shape,
        "strides": strides,
        "typestr": f"|V{dtype.itemsize}",
    }
    return np.asarray(_Interface(interface, keep)).view(dtype)


def shadow(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> Shadow:
    """What stands for this memory."""
    return memory_view(address, shape, strides, dtype).view(Shadow)
