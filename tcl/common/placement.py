"""Arrays that begin where they are asked to, as what a kernel takes depends on it.

A load or a store of a whole vector that crosses a cache line takes two accesses, and stores past
the caches have to be aligned. NumPy's own large arrays begin 16 bytes past a page: glibc maps
memory for them, and keeps what it has to know in front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 64
"""Bytes of a cache line."""
PLACEMENTS = {"aligned": 0, "numpy": 16}
"""Name → bytes past the beginning of a line at which arrays begin: at one, and as NumPy's do."""


def aligned(shape: Sequence[int], dtype: npt.DTypeLike, past: int = 0) -> npt.NDArray[Any]:
    """Uninitialised row-major memory that begins ``past`` bytes after a multiple of ``LINE``.

    ``past`` is a multiple of the size of an element where elements have to be aligned.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + LINE + past, np.uint8)
    start = -memory.ctypes.data % LINE + past
    return memory[start : start + size].view(kind).reshape(tuple(shape))
