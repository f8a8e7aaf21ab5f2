"""torch's tensors, on the host and on CUDA devices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcl.arrays.arguments import Array
from tcl.arrays.libraries import HOST, CudaLibrary, HostLibrary, Like, memory_view, shadow
from tcl.arrays.likeness import Native, Record, torch_alike
from tcl.arrays.tracing import REMEDY, check_traced, recorder, tell_torch
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cupy_driver import Memory
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Memory that a tensor holds."""

    tensor: Any

    @property
    def ptr(self) -> int:
        return int(self.tensor.data_ptr())


class TorchTensors(HostLibrary, CudaLibrary):
    noun = "a torch tensor"

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self._torch: Any = torch
        self._records = self._torch.is_grad_enabled
        self._forward = self._torch.autograd.forward_ad
        self._count: Any = self._torch._C._increment_version
        self._dtypes = {
            name: getattr(self._torch, name) for name in SCALAR_TYPES if hasattr(self._torch, name)
        }
        self._devices: dict[int, Any] = {}
        tell_torch()

    def device(self, what: str, array: Any) -> int:
        kind = array.device.type
        if array.is_cuda:
            return int(array.get_device())
        if kind != "cpu":
            raise ArgumentError(
                f"{what} is a tensor on the device {kind!r}, for which there are no kernels; "
                "move it with .to('cpu') or .to('cuda')"
                if kind != "meta"
                else (
                    f"{what} is a tensor on the device 'meta', which has no values; create it "
                    "on a device that has values"
                )
            )
        return HOST

    def view(self, what: str, array: Any) -> Array:
        name = str(array.dtype).removeprefix("torch.")
        if name not in SCALAR_TYPES:
            remedy = (
                ".dequantize() gives one that is"
                if array.is_quantized
                else f"convert to one of {', '.join(SCALAR_TYPES)}"
            )
            raise ArgumentError(
                f"{what} is a tensor of {array.dtype}, which is not supported; {remedy}"
            )
        if array.layout is not self._torch.strided or array.is_nested:
            raise ArgumentError(
                f"{what} is sparse, nested or has another special layout, which is not "
                "supported; convert it with .to_dense(), or .to_padded_tensor(0.0)"
            )
        if array.is_neg():
            raise ArgumentError(
                f"{what} is negated lazily, which is not supported; convert it with .resolve_neg()"
            )
        if self._wrapped(array):
            raise ArgumentError(
                f"{what} is a placeholder inside a transformation of torch, such as vmap, grad, "
                f"compile or export, and has no memory; {REMEDY}"
            )
        check_traced(what, array)
        self._check_tangent(what, array)
        if array.requires_grad and self._records():
            raise ArgumentError(
                f"{what} requires grad, but this call records no gradients; pass .detach(), or "
                "call under torch.no_grad()"
            )
        if array.numel() and not array.data_ptr():
            raise ArgumentError(f"{what} has no memory: its storage was resized to nothing")
        dtype = numpy_dtype(SCALAR_TYPES[name])
        strides = tuple(dtype.itemsize * step for step in array.stride())
        make = shadow if array.is_cuda else functools.partial(memory_view, keep=array)
        return make(array.data_ptr(), tuple(array.shape), strides, dtype)

    def _check_tangent(self, what: str, array: Any) -> None:
        """Raises ``ArgumentError`` for one of forward-mode differentiation."""
        forward = self._forward
        if forward._current_level >= 0 and forward.unpack_dual(array).tangent is not None:
            raise ArgumentError(
                f"{what} has a tangent, but this call records no gradients; pass its primal, "
                "torch.autograd.forward_ad.unpack_dual(...).primal"
            )

    def _wrapped(self, array: Any) -> bool:
        """Whether it stands for others: values are theirs, if there are any yet."""
        keys = self._torch._C._dispatch_keys(array)
        kinds = self._torch._C.DispatchKey
        return bool(
            self._torch._C._functorch.is_functorch_wrapped_tensor(array)
            or keys.has(kinds.Python)
            or keys.has(kinds.Functionalize)
        )

    def like(self, array: Any, unaligned: int) -> Like:
        return (
            *(type(array), array.dtype, array.shape, array.stride(), array.get_device()),
            *(unaligned, array.is_contiguous()),
        )

    def addresses(self, arrays: tuple[Any, ...], likes: tuple[Like, ...]) -> list[int] | None:
        if recorder() is not None:
            return None
        found: list[int] = []
        try:
            for array, (kind, dtype, shape, strides, device, unaligned, plain) in zip(  # noqa: B905
                arrays, likes
            ):
                if (
                    type(array) is not kind
                    or array.dtype is not dtype
                    or array.shape != shape
                    or not (array.is_contiguous() if plain else array.stride() == strides)
                    or array.get_device() != device
                    or array.is_neg()
                ):
                    return None
                address = array.data_ptr()
                if address & unaligned or (not address and 0 not in shape):
                    return None  # nothing lies at 0: it has no memory
                found.append(address)
        except RuntimeError:  # it has no shape, no strides or no memory
            return None
        return found

    def empty(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Any:
        return self._torch.empty(shape, dtype=self._dtypes[type_.name], device=self._on(device))

    def maker(self, shape: tuple[int, ...], type_: ScalarType, device: int) -> Callable[[], Any]:
        torch = self._torch
        with torch.inference_mode(False):  # like one element: nothing is kept but that
            one = torch.empty((), dtype=self._dtypes[type_.name], device=self._on(device))
        return functools.partial(
            torch.empty_like, one.expand(shape), memory_format=torch.contiguous_format
        )

    def filled(self, values: Array, device: int) -> Any:
        there = self._on(device)  # said at once: a caller may have another default device
        if values.dtype.name == "bfloat16":  # NumPy's is none that torch knows
            bits = self._torch.as_tensor(values.view(np.int16), device=there)
            return bits.view(self._torch.bfloat16)
        return self._torch.as_tensor(values, device=there)

    def permits(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> bool:
        try:
            if self._forward._current_level >= 0:
                return False
            if self._records():
                for tensor in inputs:
                    if tensor.requires_grad:
                        return False
                for tensor in outputs or ():
                    if tensor.requires_grad:
                        return False
            if outputs is not None:
                self._count(outputs)  # what saved them for a backward pass finds them changed
        except (AttributeError, TypeError, ValueError):  # one is no tensor
            return False
        return True

    def native(self) -> Native | None:
        found = torch_alike()
        return None if found is None else found.native

    def record(self, array: Any, unaligned: int, place: int, *, output: bool) -> Record:
        found = torch_alike()
        assert found is not None
        return (
            *(id(type(array)), found.type_of(array), unaligned, found.keys_of(array)),
            *(int(array.numel() > 0), tuple(array.shape), array.stride(), place),
        )

    def memory(self, size: int, device: int) -> Memory:
        return _Bytes(self._torch.empty(size, dtype=self._torch.uint8, device=self._on(device)))

    def stream(self, device: int) -> int:
        found: int = self._torch._C._cuda_getCurrentRawStream(device)  # current_stream() makes one
        return found

    def numbers(self, array: Any) -> Array:
        plain = array.detach().to("cpu").resolve_conj().resolve_neg()
        # NumPy has no bfloat16, and 64 bits hold each value of the narrower types.
        found: Array = (plain.double() if plain.is_floating_point() else plain).numpy()
        return found

    def conversion(self, type_: ScalarType) -> str:
        return f".to(torch.{type_.name})"

    def moving(self, device: int) -> str:
        return ".to('cpu')" if device == HOST else f".to('cuda:{device}')"

    def _on(self, device: int) -> Any:
        found = self._devices.get(device)
        if found is None:
            found = self._torch.device("cpu" if device == HOST else f"cuda:{device}")
            self._devices[device] = found
        return found


@functools.cache
def torch_tensors() -> TorchTensors:
    """The library, which is imported already."""
    return TorchTensors()
