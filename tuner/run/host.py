"""One machine of several: does tasks in processes of its own, which may crash, hang or be killed.

The process that an executor has on a machine calls ``run`` and is safe from what it runs. Several
of them on one machine, threads or processes, measure one at a time, and compile on other cores, or
at other times.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

from tcl.tuner.measure.machine_lock import locked
from tcl.tuner.run.workplace import Here, Orders

_IDLE = 300.0
"""Seconds without a task after which a search is thought to have ended without saying so."""


class TaskRole(Enum):
    """What a task does."""

    COMPILE = "compile"
    MEASURE = "measure"


class _Site:
    """The processes for one search."""

    def __init__(self, orders: Orders) -> None:
        if orders.check is not None:
            orders.check()
        self._stages = Here(helped=False).open(orders)
        self._tasks = 0
        self._left = time.monotonic()
        self.ended = threading.Event()

    @property
    def idle(self) -> float:
        """Seconds since the last task."""
        return 0.0 if self._tasks else time.monotonic() - self._left

    def enter(self) -> None:
        """A task begins; to be called under the lock, as ``leave``."""
        self._tasks += 1

    def leave(self) -> None:
        """A task has ended."""
        self._tasks -= 1
        self._left = time.monotonic()

    def run(self, role: TaskRole, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        (compilers,) = self._stages.compilers
        if role is TaskRole.COMPILE and not compilers.in_turns:
            return compilers.executor.submit(function, *args).result()
        executor = compilers.executor if role is TaskRole.COMPILE else self._stages.evaluator
        # Alone on this machine, or beside others that need not be.
        with locked("tcl-measuring", shared=role is TaskRole.COMPILE):
            return executor.submit(function, *args).result()

    def kill(self) -> None:
        self.ended.set()
        self._stages.close()


_lock = threading.Lock()
_sites: dict[str, _Site] = {}


def token(orders: bytes) -> str:
    """The name of pickled orders."""
    return hashlib.sha256(orders).hexdigest()


def run(
    name: str,
    orders: bytes | None,
    role: TaskRole,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> tuple[bool, Any] | None:
    """(succeeded, result or exception) of a task; None if this machine has not had the orders, and
    needs the task once more with them. What is raised is the machine's own fault."""
    with _lock:
        site = _sites.get(name)
        if site is None:
            if orders is None:
                return None
            site = _sites[name] = _Site(pickle.loads(orders))
            threading.Thread(target=_expire, args=(name, site), daemon=True).start()
        site.enter()
    try:
        return True, site.run(role, function, args)
    except Exception as error:
        return False, error
    finally:
        with _lock:
            site.leave()


def forget(name: str) -> None:
    """End the processes of a search, whatever they do."""
    with _lock:
        site = _sites.pop(name, None)
    if site is not None:
        site.kill()


def _expire(name: str, site: _Site) -> None:
    """End the processes of a search that was killed, or has lost its way to here. If it should come
    back after all, it brings its orders again."""
    while not site.ended.wait(_IDLE / 4):
        with _lock:
            expired = site.idle > _IDLE and _sites.get(name) is site
            if expired:
                del _sites[name]
        if expired:
            site.kill()
