"""Arrays that say that they lie on a CUDA device, though their memory is the host's.

CuPy's arrays are real ones, which may be made for any address without a driver. torch's are real
tensors of a subclass that answers two questions otherwise. What would need a driver, new memory
and the current stream, is replaced.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver

from tcl.arrays.cupy_arrays import CupyArrays
from tcl.arrays.torch_tensors import TorchTensors
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.syntax.types import ScalarType

Array = np.ndarray[Any, np.dtype[Any]]

STREAM = 0xBEEF


@dataclass
class Held:
    """Host memory in place of a device's."""

    memory: Array

    @property
    def ptr(self) -> int:
        return self.memory.ctypes.data


def room(size: int, offset: int = 0) -> Array:
    """Memory that begins at a multiple of 256, or so many bytes after one."""
    memory = np.zeros(size + 512 + offset, np.uint8)
    start = -memory.ctypes.data % 256 + offset
    return memory[start : start + size]


def cupy_array(
    values: Array, device: int = 0, *, offset: int = 0, strides: Sequence[int] | None = None
) -> Any:
    """A CuPy array of these values; with ``strides``, one that spans no more than they do."""
    cupy = pytest.importorskip("cupy")
    extent = values.nbytes
    if strides is not None:
        ends = zip(strides, values.shape, strict=True)
        extent = sum(s * (n - 1) for s, n in ends) + values.itemsize
    memory = room(max(extent, 1), offset)
    held = cupy.cuda.UnownedMemory(memory.ctypes.data, max(extent, 1), memory, device)
    pointer = cupy.cuda.MemoryPointer(held, 0)
    array = cupy.ndarray(values.shape, values.dtype, pointer, strides)
    on_host(array)[...] = values
    return array


def on_host(array: Any) -> Array:
    """The memory of any of these arrays, as NumPy sees it."""
    if hasattr(array, "data_ptr"):
        return np.asarray(array.detach().as_subclass(type(array).__mro__[1]).numpy())
    if 0 in array.shape:
        return np.zeros(array.shape, array.dtype)
    interface = {
        "version": 3,
        "data": (array.data.ptr, False),
        "shape": array.shape,
        "strides": array.strides,
        "typestr": f"|V{array.dtype.itemsize}",
    }
    holder = type("Holder", (), {"__array_interface__": interface, "keep": array})()
    return np.asarray(holder).view(array.dtype)


class HostCupy(CupyArrays):
    """Without a driver."""

    made = 0

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        self.made += 1
        return cupy_array(np.zeros(shape, numpy_dtype(type_)), device)

    def filled(self, values: Array, device: int) -> Any:
        return cupy_array(values, device)

    def memory(self, size: int, device: int) -> Held:
        return Held(room(size))

    def stream(self, device: int) -> int:
        return STREAM + device


class HostTorch(TorchTensors):
    """Without a driver."""

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        size = math.prod(shape) * type_.bits // 8
        held = torch_tensor(np.zeros(size, np.uint8), device)
        return held.view(getattr(self._torch, type_.name)).reshape(shape)

    def maker(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Callable[[], Any]:
        return functools.partial(self.empty, shape, type_, device)

    def filled(self, values: Array, device: int) -> Any:
        return torch_tensor(values, device)

    def memory(self, size: int, device: int) -> Held:
        return Held(room(size))

    def stream(self, device: int) -> int:
        return 2 * STREAM + device


_devices: dict[int, Any] = {}


def torch_tensor(values: Array, device: int = 0) -> Any:
    """A torch tensor of these values."""
    torch = pytest.importorskip("torch")
    if device not in _devices:

        class Placed(torch.Tensor):  # type: ignore[misc, name-defined]
            is_cuda = True

            def get_device(self) -> int:
                return device

        _devices[device] = Placed
    memory = room(max(1, values.nbytes))[: values.nbytes].view(values.dtype).reshape(values.shape)
    memory[...] = values
    return torch.from_numpy(memory).as_subclass(_devices[device])


def adding(driver: FakeDriver) -> None:
    """Make the kernel ``add`` add, on contiguous float32 arrays of 1000."""

    def add(arguments: tuple[int, ...]) -> None:
        a, b, c = (at(address, math.prod((1000,)), np.float32) for address in arguments)
        c[...] = a + b

    driver.effects = {**driver.effects, "add": add}


def at(address: int, count: int, dtype: Any) -> Array:
    """The memory at an address."""
    interface = {
        "version": 3,
        "data": (address, False),
        "shape": (count,),
        "typestr": np.dtype(dtype).str,
    }
    return np.asarray(type("Holder", (), {"__array_interface__": interface})())
