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

from tcl.codegen.devices.cpu import LINE
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Where arrays begin."""

    name: str
    """As JSON and caches have it."""
    past: int
    """Bytes past the beginning of a cache line."""

    @property
    def heading(self) -> str:
        """What the heading of a column says of it: nothing where arrays begin at a line."""
        return f" +{self.past}" if self.past else ""


ALIGNED = Placement("at_64_bytes", 0)
"""As ``tcl`` allocates outputs, and torch and JAX their tensors."""
NUMPY = Placement("as_numpy", 16)
"""As NumPy's arrays lie: 16 bytes past a multiple of 64, or of a page if they are large."""
PLACEMENTS = {"aligned": ALIGNED, "numpy": NUMPY}
"""By the names that commands and reports have for them."""


def shown(name: str) -> str:
    """A placement's name as users read it, after a time."""
    return "as NumPy's" if name == NUMPY.name else name.replace("_", " ")


def aligned(shape: Sequence[int], dtype: npt.DTypeLike, past: int = 0) -> npt.NDArray[Any]:
    """Uninitialised row-major memory that begins ``past`` bytes after a multiple of ``LINE``.

    ``past`` is a multiple of the size of an element where elements have to be aligned.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = np.empty(size + LINE + past, np.uint8)
    start = -memory.ctypes.data % LINE + past
    return memory[start : start + size].view(kind).reshape(tuple(shape))
