"""Whose arrays the arguments of a call are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.arrays import cupy_arrays, torch_tensors
from tcl.arrays.foreign import FOREIGN, Adopted, by_dlpack
from tcl.arrays.numpy_arrays import NUMPY
from tcl.arrays.tracing import check_traced
from tcl.codegen.devices.cupy_driver import cupy
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl.arrays import jax_arrays
else:
    jax_arrays = Lazy("tcl.arrays.jax_arrays")


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
        return jax_arrays.jax_array(what, argument)
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
