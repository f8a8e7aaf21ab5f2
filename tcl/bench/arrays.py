"""Arrays on their way to other processes, which give no contender an advantage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.syntax.types import BFLOAT16
from tcl.tuner.measure.placement import aligned

Array = npt.NDArray[Any]


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    """Where an array is; and where the bits of one of bfloat16 numbers are, of which NumPy's format
    knows nothing."""
    return folder / f"{name}.npy", folder / f"{name}.{BFLOAT16.name}.npy"


def save(folder: Path, name: str, array: Array) -> None:
    """Write an array for another process."""
    plain, bits = _files(folder, name)
    if array.dtype.name == BFLOAT16.name:
        np.save(bits, array.view(np.uint16), allow_pickle=False)
    else:
        np.save(plain, array, allow_pickle=False)


def load(folder: Path, name: str, past: int = 0) -> Array:
    """Read an array that ``save`` wrote, into memory that begins ``past`` bytes after a cache line.

    Raises ``FileNotFoundError``.
    """
    plain, bits = _files(folder, name)
    short = bits.exists()
    stored = np.load(bits if short else plain, mmap_mode="r", allow_pickle=False)
    array = aligned(stored.shape, stored.dtype, past)
    array[...] = stored
    return array.view(numpy_dtype(BFLOAT16)) if short else array


def remove(folder: Path, name: str) -> None:
    """Remove what ``save`` wrote, if it did."""
    for path in _files(folder, name):
        path.unlink(missing_ok=True)
