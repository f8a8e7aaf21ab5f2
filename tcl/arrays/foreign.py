"""Whose arrays the arguments of a call are. Of libraries that hand their memory over, kernels see
NumPy's or CuPy's arrays on it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tcl.arrays import cupy_arrays, torch_tensors
from tcl.arrays.libraries import ALIGNED, NUMPY, Library
from tcl.arrays.tracing import check_traced
from tcl.codegen.devices.cupy_driver import cupy
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import ScalarType


class Handed:
    """A library that hands its memory over: a ``Library`` like the one whose arrays kernels see on
    that memory, with names and rules of its own. Equal ones may meet in one call, if their arrays
    lie on the same device."""

    foreign = True

    def __init__(self, seen: Library, own: Any) -> None:
        """``own``: the library's own device or namespace."""
        self._seen, self._own = seen, own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._own == self._own

    def __hash__(self) -> int:
        return hash(self.noun)  # what is its own may have no hash

    def returned(self, what: str, array: Any) -> Any:
        """The library's own array on the memory of one that was made for it. Raises
        ``ArgumentError``, about ``what``, if it takes none."""
        raise NotImplementedError

    def check_new(self, what: str, type_: ScalarType) -> None:
        """Raise ``ArgumentError`` if there are no arrays of this type, as far as that is known
        before one is returned."""

    def check_output(self, what: str) -> None:
        """Raise ``ArgumentError`` if arrays cannot be written to."""


class Namespace(Handed):
    """With a namespace of the array API standard, in which there is ``from_dlpack``, and a place as
    DLPack calls it."""

    @property
    def noun(self) -> str:
        return f"an array of {self._own[0].__name__}"

    def place(self, device: int) -> str:
        return str(self._own[1])

    def conversion(self, type_: ScalarType) -> str:
        return f"astype(..., {type_.name})"

    def moving(self, device: int) -> str:
        return ".to_device(...)"

    def returned(self, what: str, array: Any) -> Any:
        module = self._own[0]
        try:
            return module.from_dlpack(array)
        except Exception as error:  # the standard names none: each library raises its own
            raise ArgumentError(
                f"{what}: {module.__name__}.from_dlpack does not take it: {error}; pass outputs="
            ) from error


class JaxArrays(Handed):
    """JAX's, of one device."""

    noun = "a JAX array"

    def place(self, device: int) -> str:
        return str(self._own)

    def moving(self, device: int) -> str:
        return f"jax.device_put(..., {self._own})"

    def returned(self, what: str, array: Any) -> Any:
        jax = sys.modules["jax"]
        if isinstance(array, np.ndarray):  # without a copy: see ``ALIGNED``
            return jax.device_put(array, self._own, may_alias=True)
        return jax.dlpack.from_dlpack(array)

    def check_new(self, what: str, type_: ScalarType) -> None:
        if type_.bits == 64 and not sys.modules["jax"].config.jax_enable_x64:
            raise ArgumentError(
                f"{what} is {type_}, which JAX supports only after "
                "jax.config.update('jax_enable_x64', True)"
            )

    def check_output(self, what: str) -> None:
        raise ArgumentError(
            f"{what} is a JAX array, which cannot be written; leave out outputs=, and a new "
            "array is returned"
        )


@dataclass(frozen=True, slots=True)
class Adopted:
    """An array, as kernels see it, with its library: a ``Library`` or ``Handed``."""

    library: Any
    array: Any


FOREIGN = "an array on a CUDA device that is neither CuPy's nor torch's"
HOST_MEMORY = (1, 3, 11)
"""DLPack's numbers for memory that NumPy reads: the host's, and what CUDA and ROCm pinned."""
CUDA_MEMORY = (2, 13)
"""DLPack's numbers for memory of a CUDA device, and for memory that it shares with the host."""


def by_dlpack(what: str, argument: Any) -> Adopted:
    """What hands its memory over by DLPack. Raises ``ArgumentError`` if it does not."""
    try:
        kind, number = map(int, argument.__dlpack_device__())
        if kind in CUDA_MEMORY:
            library: Any = cupy_arrays.cupy_arrays()
            array = cupy(FOREIGN).from_dlpack(argument)
        elif kind in HOST_MEMORY:
            library, array = NUMPY, np.from_dlpack(argument)
        else:
            raise ArgumentError(
                f"{what} lies on a device of a kind (DLPack's {kind}) for which there are no "
                "kernels; move it to the host, or to a CUDA device"
            )
    except ArgumentError:
        raise
    except Exception as error:  # the producer's code ran, and it may raise what it likes
        raise ArgumentError(f"{what} does not provide its memory by DLPack: {error}") from error
    namespace = getattr(argument, "__array_namespace__", None)
    module = None if namespace is None else namespace()
    if module is None or not hasattr(module, "from_dlpack"):
        return Adopted(library, array)
    return Adopted(Namespace(library, (module, f"{kind}:{number}")), array)


def jax_array(what: str, argument: Any) -> Adopted:
    """A JAX array. Raises ``ArgumentError`` for one without values on one device."""
    jax = sys.modules["jax"]
    if isinstance(argument, jax.core.Tracer):
        raise ArgumentError(
            f"{what} is a placeholder inside a transformation of JAX, such as jit, grad or "
            "vmap, and has no values yet; use tcl.jax.call there"
        )
    if argument.is_deleted():
        raise ArgumentError(f"{what} was deleted, or donated by donate_argnums")
    devices = argument.devices()
    if len(devices) > 1:
        raise ArgumentError(
            f"{what} is on several devices ({', '.join(sorted(map(str, devices)))}); move it to "
            "one device with jax.device_put(array, device)"
        )
    (device,) = devices
    if device.platform not in ("cpu", "gpu", "cuda"):
        raise ArgumentError(
            f"{what} lies on {device}, for which there are no kernels; move it to the host with "
            "jax.device_put(array, jax.devices('cpu')[0])"
        )
    try:
        if device.platform == "cpu":
            return Adopted(JaxArrays(ALIGNED, device), np.asarray(argument))
        array = cupy(FOREIGN).from_dlpack(argument)
    except (RuntimeError, TypeError) as error:  # it holds keys of random numbers
        raise ArgumentError(f"{what} has no memory that can be read: {error}") from error
    return Adopted(JaxArrays(cupy_arrays.cupy_arrays(), device), array)


def adopted(what: str, argument: Any) -> Adopted | None:
    """An array with its library; None for what is no array that is known. No library is imported
    for it: an array of one that is not cannot have come in. Raises ``ArgumentError``, about
    ``what``, for an array whose memory cannot be had."""
    if isinstance(argument, np.ndarray):
        return Adopted(NUMPY, argument)
    if isinstance(argument, np.generic | bool | int | float | list | tuple):
        return None
    if _is(argument, "torch", "Tensor"):
        return Adopted(torch_tensors.torch_tensors(), argument)
    if _is(argument, "cupy", "ndarray"):
        return Adopted(cupy_arrays.cupy_arrays(), argument)
    if _is(argument, "jax", "Array"):
        return jax_array(what, argument)
    check_traced(what, argument)
    if hasattr(argument, "__dlpack__") and hasattr(argument, "__dlpack_device__"):
        return by_dlpack(what, argument)
    if hasattr(argument, "__cuda_array_interface__"):
        return Adopted(cupy_arrays.cupy_arrays(), cupy(FOREIGN).asarray(argument))
    return None


def _is(argument: object, package: str, name: str) -> bool:
    """Whether it is an instance of a class of a package, which need not be imported."""
    kind = getattr(sys.modules.get(package), name, None)
    return kind is not None and isinstance(argument, kind)
