"""What the results should be: computed by the reference backend, on large rows for a sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.rows import Row
from tcl.bench.task import Array, Task
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.executors.call_kernels import size
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

_POINTS = 100_000_000
"""Points of iteration that the reference computes at most, if the row can be sampled."""


@dataclass(frozen=True, slots=True)
class ExpectedResults:
    """Names, right values and depths of accumulation of a row's results."""

    names: tuple[str, ...]
    arrays: tuple[Array, ...]
    depths: tuple[int, ...]
    picked: tuple[int, ...] | None
    """Positions along dimension 0 that were computed; None for all."""
    full: int
    """Extent of dimension 0 when only some positions were picked."""

    def why_wrong(self, results: Sequence[Array]) -> str | None:
        """What is wrong with a contender's results; None if nothing is."""
        if len(results) != len(self.names):
            return f"there are {len(results)} results, not {len(self.names)}"
        checks = zip(self.names, self.arrays, self.depths, results, strict=True)
        for name, wanted, depth, actual in checks:
            shape = wanted.shape if self.picked is None else (self.full, *wanted.shape[1:])
            if actual.shape != shape:
                return f"result {name} has shape {actual.shape}, not {shape}"
            if self.picked is not None:
                if actual.dtype.kind == "f" and not np.isfinite(actual).all():
                    return f"result {name} is not finite everywhere"
                actual = actual[list(self.picked)]
            if actual.dtype != wanted.dtype and wanted.dtype.kind in "iu":
                actual = actual.astype(wanted.dtype)  # peers count in other integers
            found = mismatch(name, actual, wanted, depth)
            if found is not None:
                return found
        return None


def expected(row: Row, sizes: Mapping[str, int], arrays: Sequence[Array]) -> ExpectedResults:
    """The right results of a row for these inputs."""
    from tcl.codegen.reference import compile_reference

    checked = row.checked
    sized = size(checked, tuple(arrays))
    points = sum(math.prod(s.extent(i) for i in s.ranges) for s in sized.statements)
    picked: tuple[int, ...] | None = None
    full = sizes[row.batch] if row.batch else 0
    if row.batch and points > _POINTS:
        count = max(2, full * _POINTS // points)
        picked = tuple(sorted({round(i) for i in np.linspace(0, full - 1, count)}))
        arrays = [
            np.take(array, picked, axis=tensor.dims.index(row.batch))
            if tensor.dims and row.batch in tensor.dims
            else array
            for tensor, array in zip(checked.inputs, arrays, strict=True)
        ]
        sized = size(checked, tuple(arrays))
    outputs = {t.name: np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in checked.outputs}
    compile_reference(sized)(arrays, tuple(outputs.values()))
    depths = accumulation_depths(sized)
    for tensor in checked.outputs:
        if tensor.type.is_float and tensor.type.bits == 16:
            # Sums are in float32 and rounded once: their depth explains no error.
            depths[tensor.name] = 1
    return ExpectedResults(
        row.results,
        tuple(outputs[name] for name in row.results),
        tuple(depths[name] for name in row.results),
        picked,
        full,
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that contenders need to do a row, and what they should find."""

    task: Task
    inputs: Mapping[str, Array]
    expected: ExpectedResults


def prepare(row: Row, seed: int) -> Prepared:
    """Make the inputs of a row, and what they lead to."""
    sizes, names = row.values, tuple(t.name for t in row.checked.inputs)
    arrays = random_inputs(row.checked, sizes, seed)
    wanted = expected(row, sizes, arrays)
    task = Task(row.text, row.entry, sizes, names, row.results)
    return Prepared(task, dict(zip(names, arrays, strict=True)), wanted)
