"""Arrays that give no contender an advantage: aligned, filled, handed over as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ALIGNMENT = 64


def aligned(shape: Sequence[int], dtype: npt.DTypeLike) -> Array:
    """Uninitialised memory at a multiple of 64 bytes, a cache line."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    array: Array = raw[start : start + size].view(kind).reshape(tuple(shape))
    return array


def save(folder: Path, name: str, array: Array) -> None:
    """Write an array for another process."""
    np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load(folder: Path, name: str) -> Array:
    """Read an array that ``save`` wrote, into aligned memory."""
    stored = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    array = aligned(stored.shape, stored.dtype)
    array[...] = stored
    return array
