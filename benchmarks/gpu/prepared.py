"""Inputs and right results of the rows, made by other processes while earlier rows are timed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from tcl.bench.lanes import Prepared, prepare
from tcl.bench.rows import Row

_AHEAD = 2
"""Rows that are prepared beside the one at work: their arrays take space."""


class Preparation:
    """Rows that are being prepared, the next few at a time."""

    def __init__(self, rows: Sequence[Row], seed: int, processes: int = 2) -> None:
        self._rows = list(rows)
        self._seed = seed
        self._started: dict[int, Future[Prepared]] = {}
        # Not forked: a copy of a process with a CUDA context or threads is of no use.
        self._pool = ProcessPoolExecutor(processes, get_context("spawn"))

    def take(self, position: int) -> Prepared:
        """A row, once, when it is ready; raises what went wrong. The next ones are started."""
        for later in range(position, min(position + 1 + _AHEAD, len(self._rows))):
            if later not in self._started:
                self._started[later] = self._pool.submit(prepare, self._rows[later], self._seed)
        return self._started.pop(position).result()

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)
