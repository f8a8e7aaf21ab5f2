"""Arrays in files, bfloat16 included, of which NumPy's format knows nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tcl.bench.arrays import Array
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.types import SCALAR_TYPES


def save_input(folder: Path, name: str, array: Array) -> None:
    """Write an array."""
    plain = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    np.save(folder / f"input-{name}.npy", plain, allow_pickle=False)


def load_input(folder: Path, name: str, type_: str) -> Array:
    """Read an array of this element type, as a copy: the file may go."""
    array: Array = np.load(folder / f"input-{name}.npy", allow_pickle=False)
    return array.view(numpy_dtype(SCALAR_TYPES[type_])) if type_ == "bfloat16" else array


def widened(array: Array) -> Array:
    """As float32, which holds every 16-bit float, if it is one."""
    short = array.dtype.itemsize == 2 and array.dtype.kind not in "iu"
    return array.astype(np.float32) if short else array
