"""What it costs where arrays begin: default kernels on arrays so many bytes past a cache line.

    python -m benchmarks.placement                               # all rows, one and two threads
    python -m benchmarks.placement --rows softmax,layernorm --threads 1 --out FILE

All arrays of a call, inputs and outputs, begin equally far past a multiple of 64 bytes; NumPy's own
begin 16 past one. Placements of a row take turns in one process, so that what else runs on the
machine falls on all of them. With ``--out``, rows that the file holds and that are not measured
again stay there: a run can be made in parts.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.arrays import Array
from tcl.bench.rows import Row, select
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.executors.call_kernels import size
from tcl.executors.executor import Executor
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.placement import aligned

PLACES = (0, 16, 32, 48)
"""Bytes past a cache line."""
SAMPLE = 2e-3
"""Seconds of a sample: shorter calls are repeated."""


def calls(
    row: Row,
    threads: int,
    places: Sequence[int] = PLACES,
    options: MappingOptions = DEFAULT,
) -> dict[int, Callable[[], object]]:
    """What runs a row's kernel, by how many bytes past a cache line its arrays begin."""
    inputs = random_inputs(row.checked, row.values)
    sized = size(row.checked, inputs)
    executor = Executor(sized, options, threads)
    of_inputs = [_memory(a.shape, a.dtype, a, max(places)) for a in inputs]
    shapes = [(sized.shapes[t.name], numpy_dtype(t.type)) for t in sized.checked.outputs]
    of_outputs = [_memory(*each, None, max(places)) for each in shapes]
    found: dict[int, Callable[[], object]] = {}
    for past in places:
        arrays = [_at(m, past, a.shape, a.dtype) for m, a in zip(of_inputs, inputs, strict=True)]
        outputs = [_at(m, past, *each) for m, each in zip(of_outputs, shapes, strict=True)]
        found[past] = _call(executor, arrays, tuple(outputs))
    return found


def _memory(shape: tuple[int, ...], dtype: np.dtype[Any], values: Array | None, room: int) -> Array:
    """Bytes for an array that begins up to ``room`` bytes past a line. All placements share it, as
    what pages a system gives a process makes more of a difference than they do. What lies beyond
    the values, and becomes part of an array when that is moved, is values as well."""
    size = math.prod(shape) * dtype.itemsize
    memory = aligned((size + room,), np.uint8)
    memory.fill(0)
    if values is not None and size:
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        memory[:size] = content
        memory[size:] = np.resize(content, room)
    return memory


def _at(memory: Array, past: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    size = math.prod(shape) * dtype.itemsize
    return memory[past : past + size].view(dtype).reshape(shape)


def _call(
    executor: Executor, inputs: Sequence[object], outputs: tuple[object, ...]
) -> Callable[[], object]:
    return lambda: executor(*inputs, outputs=outputs)


def measured(runs: dict[int, Callable[[], object]], seconds: float) -> dict[int, float]:
    """Median seconds of a call of each, in turns for about so many seconds."""
    repeat: dict[int, int] = {}
    for past, run in runs.items():
        run()
        run()
        start = time.perf_counter()
        run()
        repeat[past] = max(1, math.ceil(SAMPLE / (time.perf_counter() - start)))
    times: dict[int, list[float]] = {past: [] for past in runs}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(runs))]) < 5:
        for past, run in runs.items():
            run()  # caches hold what the placement before used
            start = time.perf_counter()
            for _ in range(repeat[past]):
                run()
            times[past].append((time.perf_counter() - start) / repeat[past])
    return {past: statistics.median(each) for past, each in times.items()}


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", help="names of rows, as of tcl bench")
    parser.add_argument("--threads", type=int, nargs="*", default=(1, 2))
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    gc.disable()
    known: dict[str, dict[str, dict[str, float]]] = {}
    if given.out and given.out.exists():
        known = json.loads(given.out.read_text())["microseconds"]
    for threads in given.threads:
        table = known.setdefault(str(threads), {})
        print(f"{threads} threads: time at +0, then times as long at {PLACES[1:]}")
        for row in select(given.rows):
            times = measured(calls(row, threads), given.seconds)
            table[row.name] = {str(p): round(t * 1e6, 2) for p, t in times.items()}
            _show(row.name, table[row.name])
        _show_mean(list(table.values()))
    if given.out:
        given.out.write_text(json.dumps({"microseconds": known}, indent=1) + "\n")


def _ratios(times: dict[str, float]) -> list[float]:
    return [times[str(past)] / times["0"] for past in PLACES[1:]]


def _show(name: str, times: dict[str, float]) -> None:
    parts = "".join(f"{ratio:8.3f}" for ratio in _ratios(times))
    print(f"{name:32}{times['0']:12.1f} us{parts}", flush=True)


def _show_mean(rows: Sequence[dict[str, float]]) -> None:
    columns = zip(*map(_ratios, rows), strict=True)
    parts = "".join(f"{statistics.geometric_mean(column):8.3f}" for column in columns)
    print(f"{'geometric mean':47}{parts}")


if __name__ == "__main__":
    main()
