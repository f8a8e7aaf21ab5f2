"""JAX's arrays, which nobody may write to."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tcl.arrays import cupy_arrays
from tcl.arrays.foreign import FOREIGN, Adopted, Foreign
from tcl.arrays.numpy_arrays import ALIGNED
from tcl.codegen.devices.cupy_driver import cupy
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import ScalarType


@dataclass(frozen=True)
class JaxArrays(Foreign):
    """Those of one device."""

    device: Any
    noun = "a JAX array"

    @property
    def place(self) -> str:  # type: ignore[override]
        return str(self.device)

    def conversion(self, type_: ScalarType) -> str:
        return f".astype({type_.name!r})"

    def moving(self) -> str:
        return f"jax.device_put(..., {self.place})"

    def returned(self, what: str, array: Any) -> Any:
        jax = sys.modules["jax"]
        if isinstance(array, np.ndarray):  # without a copy: see ``ALIGNED``
            return jax.device_put(array, self.device, may_alias=True)
        return jax.dlpack.from_dlpack(array)

    def check_new(self, what: str, type_: ScalarType) -> None:
        if type_.bits == 64 and not sys.modules["jax"].config.jax_enable_x64:
            raise ArgumentError(
                f"{what} is {type_}, which JAX has only after "
                "jax.config.update('jax_enable_x64', True)"
            )

    def check_output(self, what: str) -> None:
        raise ArgumentError(
            f"{what} is a JAX array, which nobody may write to; leave out outputs=, "
            "and a new one is returned"
        )


def jax_array(what: str, argument: Any) -> Adopted:
    """A JAX array. Raises ``ArgumentError`` for one without values on one device."""
    jax = sys.modules["jax"]
    if isinstance(argument, jax.core.Tracer):
        raise ArgumentError(
            f"{what} stands for an array inside a transformation of JAX, such as jit, grad or "
            "vmap, and has no values yet; use tcl.jax.call there"
        )
    if argument.is_deleted():
        raise ArgumentError(f"{what} was deleted, or given away by donate_argnums")
    devices = argument.devices()
    if len(devices) > 1:
        raise ArgumentError(
            f"{what} lies on several devices ({', '.join(sorted(map(str, devices)))}); "
            "bring it to one with jax.device_put(array, device)"
        )
    (device,) = devices
    if device.platform not in ("cpu", "gpu", "cuda"):
        raise ArgumentError(
            f"{what} lies on {device}, for which there are no kernels; bring it to the host with "
            "jax.device_put(array, jax.devices('cpu')[0])"
        )
    try:
        if device.platform == "cpu":
            return Adopted(ALIGNED, np.asarray(argument), JaxArrays(device))
        array = cupy(FOREIGN).from_dlpack(argument)
    except (RuntimeError, TypeError) as error:  # it holds keys of random numbers
        raise ArgumentError(f"{what} has no memory that can be read: {error}") from error
    return Adopted(cupy_arrays.cupy_arrays(), array, JaxArrays(device))
