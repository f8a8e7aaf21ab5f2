"""Where tuning comes in: from a row, options for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.gpu.rows import GpuRow
from tcl.arrays.random_inputs import input_shape
from tcl.bench.tuning import tune, tuned_options
from tcl.codegen.common.dtypes import numpy_dtype


def options_for(row: GpuRow, seconds: float, cache: Path, seed: int, device: str) -> str:
    """The best options that a cache file has for a row, as JSON, or nothing; before, a search of
    about so many ``seconds`` adds to it. ``device``: ``cuda`` or ``cpu``."""
    where = "cpu" if device == "cpu" else "cuda:0"  # the only one that is to be seen
    if seconds:
        tune([row], seconds, cache, seed, lambda text: None, device=where)
    # Nobody looks at their values.
    inputs = [np.empty(input_shape(t, row.values), numpy_dtype(t.type)) for t in row.checked.inputs]
    return tuned_options(row, inputs, cache, device=where)
