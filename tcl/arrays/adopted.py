"""Whose arrays a call's arguments are: a library's, or those of one that hands its memory over."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.arrays import cupy_arrays as on_cupy
from tcl.arrays import torch_tensors as on_torch
from tcl.arrays.libraries import Library
from tcl.arrays.numpy_arrays import NUMPY
from tcl.codegen.devices.cupy_driver import cupy

ON_CUDA = (2, 13)
"""DLPack's numbers for memory of a CUDA device, and for memory that it shares with the host."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """An array of a library."""

    library: Library
    array: Any


def adopted(argument: Any) -> Adopted | None:
    """An array with its library; None for what is none. Arrays of other libraries on a CUDA device
    become CuPy's, on the same memory."""
    if isinstance(argument, np.ndarray):
        return Adopted(NUMPY, argument)
    if isinstance(argument, np.generic | bool | int | float):
        return None
    torch, package = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(argument, torch.Tensor):
        return Adopted(on_torch.torch_tensors(), argument)
    if package is not None and isinstance(argument, package.ndarray):
        return Adopted(on_cupy.cupy_arrays(), argument)
    placed = getattr(argument, "__dlpack_device__", None)
    if placed is not None and int(placed()[0]) in ON_CUDA:
        return Adopted(on_cupy.cupy_arrays(), cupy(_FOREIGN).from_dlpack(argument))
    if placed is None and hasattr(argument, "__cuda_array_interface__"):
        return Adopted(on_cupy.cupy_arrays(), cupy(_FOREIGN).asarray(argument))
    return None


_FOREIGN = "an array on a CUDA device that is neither CuPy's nor torch's"
