"""Arrays that lie on a CUDA device: CuPy's, torch's, and what others hand over without a copy."""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tcl.arrays.arguments import Array
from tcl.arrays.cuda_shadow import Shadow, shadow
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.devices.cupy_driver import Memory, cupy
from tcl.grammar.types import SCALAR_TYPES, ScalarType

ON_CUDA = (2, 13)
"""DLPack's numbers for memory of a CUDA device, and for memory that it shares with the host."""


Like: TypeAlias = tuple[Any, Any, Any, Any, int, int, bool]
"""Type, element type, shape, strides, device, bits that no address has, and whether elements lie
side by side in row-major order (which is quicker to ask for than strides)."""


class Library(ABC):
    """What arrays of one library are asked for. A ``device`` is the current one too."""

    noun: str
    """What one is called."""

    @abstractmethod
    def device(self, array: Any) -> int:
        """The device that it lies on."""

    @abstractmethod
    def shadow(self, what: str, array: Any) -> Shadow:
        """See ``Shadow``. Raises ``ArgumentError`` for what no tensor can be."""

    @abstractmethod
    def like(self, array: Any, unaligned: int) -> Like:
        """What ``addresses`` compares arrays with. ``unaligned`` are bits that no address has."""

    @abstractmethod
    def addresses(self, arrays: tuple[Any, ...], likes: tuple[Like, ...]) -> list[int] | None:
        """Where their first elements lie; None if one has another type, shape, strides or device
        than the array that its ``like`` was made of. There are as many of both."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        """A new array."""

    @abstractmethod
    def filled(self, values: Array, device: int) -> Any:
        """A new array with these values."""

    @abstractmethod
    def memory(self, size: int, device: int) -> Memory:
        """Memory for work on the current stream."""

    @abstractmethod
    def stream(self, device: int) -> int:
        """The caller's current stream."""

    @abstractmethod
    def conversion(self, type_: ScalarType) -> str:
        """How one becomes one of another type."""

    @abstractmethod
    def moving(self, device: int) -> str:
        """How an array of the host's memory comes to a device."""


class CupyArrays(Library):
    """CuPy's arrays."""

    noun = "a CuPy array"

    def __init__(self) -> None:
        package = cupy()
        self._package = package
        self._array = package.ndarray
        self._stream = package.cuda.get_current_stream

    def device(self, array: Any) -> int:
        return int(array.data.device_id)

    def shadow(self, what: str, array: Any) -> Shadow:
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
            data = array.data if type(array) is kind else None
            if (
                data is None
                or array.dtype is not dtype
                or array.shape != shape
                or not (array._c_contiguous if plain else array.strides == strides)
                or data.device_id != device
                or data.ptr & unaligned
            ):
                return None
            found.append(data.ptr)
        return found

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        return self._package.empty(shape, numpy_dtype(type_))

    def filled(self, values: Array, device: int) -> Any:
        return self._package.asarray(values)

    def memory(self, size: int, device: int) -> Memory:
        found: Memory = self._package.cuda.alloc(size)
        return found

    def stream(self, device: int) -> int:
        found: int = self._stream().ptr
        return found

    def conversion(self, type_: ScalarType) -> str:
        return f".astype({type_.name!r})"

    def moving(self, device: int) -> str:
        return "cupy.asarray(...)"


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Memory that a tensor holds."""

    tensor: Any

    @property
    def ptr(self) -> int:
        return int(self.tensor.data_ptr())


class TorchTensors(Library):
    """torch's tensors."""

    noun = "a torch tensor"

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self._torch: Any = torch
        self._records = self._torch.is_grad_enabled
        self._devices: dict[int, Any] = {}

    def device(self, array: Any) -> int:
        return int(array.get_device())

    def shadow(self, what: str, array: Any) -> Shadow:
        name = str(array.dtype).removeprefix("torch.")
        if name not in SCALAR_TYPES:
            raise ArgumentError(
                f"{what} is a tensor of {array.dtype}, which is not supported; "
                f"convert to one of {', '.join(SCALAR_TYPES)}"
            )
        if array.layout is not self._torch.strided or array.is_neg():
            raise ArgumentError(
                f"{what} is sparse, or negated lazily, which is not supported; "
                "convert it with .to_dense() or .resolve_neg()"
            )
        if array.requires_grad and self._records():
            raise ArgumentError(
                f"{what} requires grad, but what happens here is not recorded; "
                "pass .detach(), or call under torch.no_grad()"
            )
        dtype = numpy_dtype(SCALAR_TYPES[name])
        strides = tuple(dtype.itemsize * step for step in array.stride())
        return shadow(array.data_ptr(), tuple(array.shape), strides, dtype)

    def like(self, array: Any, unaligned: int) -> Like:
        return (
            *(type(array), array.dtype, array.shape, array.stride(), array.get_device()),
            *(unaligned, array.is_contiguous()),
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
                or not (
                    array.is_contiguous()
                    if plain
                    else array.stride() == strides and not array.is_neg()
                )
                or array.get_device() != device
                or (array.requires_grad and self._records())
            ):
                return None
            address = array.data_ptr()
            if address & unaligned:
                return None
            found.append(address)
        return found

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        dtype = getattr(self._torch, type_.name)
        return self._torch.empty(shape, dtype=dtype, device=self._on(device))

    def filled(self, values: Array, device: int) -> Any:
        if values.dtype.name == "bfloat16":  # NumPy's is none that torch knows
            bits = self._torch.as_tensor(values.view(np.int16))
            return bits.view(self._torch.bfloat16).to(self._on(device))
        return self._torch.as_tensor(values).to(self._on(device))

    def memory(self, size: int, device: int) -> Memory:
        return _Bytes(self._torch.empty(size, dtype=self._torch.uint8, device=self._on(device)))

    def stream(self, device: int) -> int:
        return int(self._torch.cuda.current_stream(device).cuda_stream)

    def conversion(self, type_: ScalarType) -> str:
        return f".to(torch.{type_.name})"

    def moving(self, device: int) -> str:
        return f".to('cuda:{device}')"

    def _on(self, device: int) -> Any:
        """The device as torch calls it."""
        found = self._devices.get(device)
        if found is None:
            found = self._devices[device] = self._torch.device("cuda", device)
        return found


@functools.cache
def _cupy_arrays() -> CupyArrays:
    return CupyArrays()


@functools.cache
def _torch_tensors() -> TorchTensors:
    return TorchTensors()


def _kind(argument: Any) -> str:
    """How an array on a CUDA device is taken over: ``torch``, ``cupy``, ``dlpack``, ``interface``;
    nothing for all else."""
    if isinstance(argument, np.ndarray | np.generic | bool | int | float):
        return ""
    torch, package = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(argument, torch.Tensor):
        return "torch" if argument.is_cuda else ""
    if package is not None and isinstance(argument, package.ndarray):
        return "cupy"
    placed = getattr(argument, "__dlpack_device__", None)
    if placed is not None:
        return "dlpack" if int(placed()[0]) in ON_CUDA else ""
    return "interface" if hasattr(argument, "__cuda_array_interface__") else ""


def on_cuda(arguments: Sequence[object]) -> bool:
    """Whether any is an array on a CUDA device."""
    return any(map(_kind, arguments))


def adopted(argument: Any) -> tuple[Library, Any] | None:
    """An array on a CUDA device, with its library; None for all else. Arrays of other libraries
    become CuPy's, on the same memory."""
    kind = _kind(argument)
    if not kind:
        return None
    if kind == "torch":
        return _torch_tensors(), argument
    if kind == "dlpack":
        argument = cupy(_FOREIGN).from_dlpack(argument)
    elif kind == "interface":
        argument = cupy(_FOREIGN).asarray(argument)
    return _cupy_arrays(), argument


_FOREIGN = "an array on a CUDA device that is neither CuPy's nor torch's"
