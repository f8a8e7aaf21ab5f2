"""Some workers of a Dask cluster as an executor whose tasks wait for none that is gone.

A task that Dask was told to keep to some workers, with leave to run on others, still waits for ever
if it was sent while all of them were gone and new ones come: of new workers it looks only at those
it was told. So nothing is kept to workers that are gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaskWorkers(Executor):
    """The workers at ``addresses``; once none of them is left, whichever there are."""

    def __init__(self, client: Any, addresses: Sequence[str]) -> None:
        self._client = client
        self._addresses = tuple(addresses)
        self._present: Set[str] = frozenset(addresses)
        self._lock = threading.Lock()
        self._bound: set[Future[Any]] = set()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """See ``Executor``. The future is cancelled if the workers are lost."""
        left = [address for address in self._addresses if address in self._present]
        bounds = {"workers": left, "allow_other_workers": True} if left else {}
        executor = self._client.get_executor(pure=False, **bounds)
        future: Future[_T] = executor.submit(fn, *args, **kwargs)
        if left:
            with self._lock:
                self._bound.add(future)
            future.add_done_callback(self._unbind)
        return future

    def see(self, present: Set[str]) -> None:
        """Take note of the workers that the cluster has now. To be called again and again."""
        self._present = present
        if present.isdisjoint(self._addresses):
            with self._lock:
                lost = list(self._bound)
            for future in lost:
                future.cancel()

    def _unbind(self, future: Future[Any]) -> None:
        with self._lock:
            self._bound.discard(future)
