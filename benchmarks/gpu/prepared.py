"""Inputs and right results of the rows, made by other processes while earlier rows are timed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tcl.bench.expected import Prepared, prepare
from tcl.bench.rows import Row

_AHEAD = 2
"""Rows that are prepared beside the one at work: their files take space."""
_ROOM = 16 << 30
"""Bytes that a folder in memory has to have free to be used."""


class Preparation:
    """Rows that are being prepared, the next few at a time."""

    def __init__(self, rows: Sequence[Row], folder: Path, seed: int, processes: int = 2) -> None:
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
                folder.mkdir(parents=True)
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
