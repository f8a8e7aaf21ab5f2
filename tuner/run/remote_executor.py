"""An executor whose tasks run in killable processes on the machines that other executors lead to.

Any ``concurrent.futures.Executor`` will do: of ``dask.distributed``, of MPI, of the standard
library. Orders travel to a machine once. A task that gets lost with a machine is sent again; a task
that fails because of what it runs is not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tcl.common.errors import ExecutorLostError
from tcl.tuner.run import host
from tcl.tuner.run.host import TaskRole

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
    """Gives each task to the machine that has the fewest. ``orders``: pickled ``Orders``."""

    def __init__(self, machines: Sequence[RemoteMachine], role: TaskRole, orders: bytes) -> None:
        self._machines = machines
        self._role = role
        self._orders = orders
        self._name = host.token(orders)
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
                host.run, self._name, orders, self._role, task.function, task.args
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
        f"the machines that work for this search cannot be reached any more "
        f"({type(error).__name__}{': ' + text[:200] if text else ''}); "
        "what was measured is saved, and the search can be resumed"
    )
