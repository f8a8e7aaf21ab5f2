"""Machines of several: each does tasks in processes of its own, which may crash, hang or be killed.

The process that an executor has on a machine calls ``run`` and is safe from what it runs. Several
of them on one machine, threads or processes, measure one at a time, and compile on other cores, or
at other times.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tcl.common.errors import ExecutorLostError
from tcl.tuner.measure.machine_lock import locked
from tcl.tuner.run.workplace import Here, Orders

_IDLE = 300.0
"""Seconds without a task after which a search is thought to have ended without saying so."""


class TaskRole(Enum):
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


_P = ParamSpec("_P")
_T = TypeVar("_T")
_TRIES = 4


@dataclass(slots=True)
class _RemoteTask:
    future: Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    tries: int = 0


@dataclass(slots=True)
class RemoteMachine:
    """An executor, whose tasks may run anywhere that it chooses."""

    executor: Executor
    at_work: int = field(default=0)


class SpreadExecutor(Executor):
    """Gives each task to the machine that has the fewest. ``orders``: pickled ``Orders``, which
    travel to a machine once. Any ``concurrent.futures.Executor`` may lead to machines: of
    ``dask.distributed``, of MPI, of the standard library. A task that gets lost with a machine is
    sent again; a task that fails because of what it runs is not."""

    def __init__(self, machines: Sequence[RemoteMachine], role: TaskRole, orders: bytes) -> None:
        self._machines = machines
        self._role = role
        self._orders = orders
        self._name = token(orders)
        self._lock = threading.Lock()
        self._closed = False
        self._gone: BaseException | None = None
        """Why all tasks were given up."""
        self._open: set[Future[Any]] = set()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """See ``Executor``. The future's exceptions are the task's own, or ``ExecutorLostError``
        when no machine can be reached. ``RuntimeError`` after ``shutdown``."""
        function = partial(fn, **kwargs) if kwargs else fn
        task = _RemoteTask(Future(), function, args)
        task.future.set_running_or_notify_cancel()
        with self._lock:  # what ``abandon`` does not find is not sent
            if self._closed:
                raise RuntimeError("the executor is shut down")
            gone = self._gone
            if gone is None:
                self._open.add(task.future)
        if gone is None:
            self._send(task, None)
        else:
            task.future.set_exception(_lost(gone))
        return task.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See ``Executor``. The executors that lead to the machines stay open."""
        with self._lock:
            self._closed = True

    def abandon(self, error: BaseException) -> None:
        """Give up all tasks, these and later ones: nothing more will come."""
        with self._lock:
            self._gone = error
            left, self._open = self._open, set()
        for future in left:
            future.set_exception(_lost(error))

    def _end(self, task: _RemoteTask) -> bool:
        """Whether the task was still waited for."""
        with self._lock:
            if task.future not in self._open:
                return False
            self._open.remove(task.future)
            return True

    def _fail(self, task: _RemoteTask, error: BaseException) -> None:
        if self._end(task):
            task.future.set_exception(error)

    def _send(self, task: _RemoteTask, orders: bytes | None) -> None:
        with self._lock:
            machine = min(self._machines, key=lambda m: m.at_work)
            machine.at_work += 1
        try:
            sent = machine.executor.submit(
                run, self._name, orders, self._role, task.function, task.args
            )
        except Exception as error:
            self._left(machine)
            self._fail(task, _lost(error))
            return
        sent.add_done_callback(lambda done: self._take(task, machine, done))

    def _left(self, machine: RemoteMachine) -> None:
        with self._lock:
            machine.at_work -= 1

    @property
    def _over(self) -> bool:
        """Whether nothing may be sent any more: orders would start processes that nobody ends."""
        with self._lock:
            return self._closed or self._gone is not None

    def _take(self, task: _RemoteTask, machine: RemoteMachine, done: Future[Any]) -> None:
        self._left(machine)
        try:
            found: tuple[bool, Any] | None = done.result()
        except BaseException as error:  # a machine went away, or the way to it
            task.tries += 1
            if self._over or task.tries >= _TRIES:
                self._fail(task, _lost(error))
            else:
                self._send(task, self._orders)
            return
        if found is None and self._over:
            self._fail(task, CancelledError())
        elif found is None:
            self._send(task, self._orders)
        elif not found[0]:
            self._fail(task, found[1])
        elif self._end(task):
            task.future.set_result(found[1])


def _lost(error: BaseException) -> ExecutorLostError:
    text = " ".join(str(error).split())
    return ExecutorLostError(
        "the machines of this search can no longer be reached "
        f"({type(error).__name__}{': ' + text[:200] if text else ''}); what was measured is "
        "saved, and the search can be resumed"
    )
