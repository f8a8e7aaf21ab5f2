"""Inputs and right results of the rows, made by other processes while earlier rows are timed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from benchmarks.gpu.rows import GpuRow
from tcl.arrays.random_inputs import random_inputs
from tcl.bench.arrays import save
from tcl.bench.expected import ExpectedResults, expected
from tcl.bench.task import Task

_AHEAD = 2
"""Rows that are prepared beside the one at work: their files take space."""
_LENIENCE = 64
"""What explains eight times the error: it grows with the square root of the depth."""
_ROOM = 16 << 30
"""Bytes that a folder in memory has to have free to be used."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that contenders need to do a row, and what they should find."""

    task: Task
    folder: Path
    """Of the inputs."""
    expected: ExpectedResults

    @property
    def lenient(self) -> ExpectedResults:
        """What is asked of peers, who may multiply less exactly than term by term (Winograd's
        convolutions): eight times the rounding. With tf32 they would still be found out."""
        depths = tuple(_LENIENCE * depth for depth in self.expected.depths)
        return replace(self.expected, depths=depths)


def prepare(row: GpuRow, folder: Path, seed: int) -> Prepared:
    """Make the inputs and what they lead to."""
    folder.mkdir(parents=True)
    checked, sizes = row.checked, row.values
    arrays = random_inputs(checked, sizes, seed)
    names = tuple(t.name for t in checked.inputs)
    for name, array in zip(names, arrays, strict=True):
        save(folder, f"input-{name}", array)
    wanted = expected(row, sizes, arrays)
    return Prepared(Task(row.text, row.entry, sizes, names, row.results), folder, wanted)


class Preparation:
    """Rows that are being prepared, the next few at a time."""

    def __init__(self, rows: Sequence[GpuRow], folder: Path, seed: int, processes: int = 2) -> None:
        self._rows = list(rows)
        self._folder = folder
        self._seed = seed
        self._started: dict[int, Future[Prepared]] = {}
        # Not forked: a copy of a process with a CUDA context or threads is of no use.
        self._pool = ProcessPoolExecutor(processes, get_context("spawn"))

    def take(self, position: int) -> Prepared:
        """A row, when it is ready; raises what went wrong. The next ones are started."""
        for later in range(position, min(position + 1 + _AHEAD, len(self._rows))):
            if later not in self._started:
                folder = self._folder / f"row-{later}"
                self._started[later] = self._pool.submit(
                    prepare, self._rows[later], folder, self._seed
                )
        return self._started[position].result()

    def done(self, position: int) -> None:
        """Remove a row's files."""
        shutil.rmtree(self._folder / f"row-{position}", ignore_errors=True)

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for arrays: in memory, if there is room for it."""
    memory = Path("/dev/shm")
    try:
        status = os.statvfs(memory)
        roomy = status.f_bavail * status.f_frsize >= _ROOM and os.access(memory, os.W_OK)
    except OSError:
        roomy = False
    return tempfile.TemporaryDirectory(prefix="tcl-gpu-", dir=memory if roomy else None)
