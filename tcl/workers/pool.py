"""Worker processes behind the ``Executor`` interface, each of which may crash, hang or be killed.

The standard library's process pool breaks as a whole when one worker dies, cannot end a task
that hangs, and imports the caller's script once more in each worker. Here each worker is a
process of its own: when it dies, the task it ran fails, and the next task starts a new one, which
is forked from a template (``tcl.workers.template``).
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import select
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import IO, Any, ParamSpec, TypeVar

from tcl.workers import template
from tcl.workers import worker as protocol
from tcl.workers.process_memory import in_words, resident

_P = ParamSpec("_P")
_T = TypeVar("_T")

_GLANCE = 0.05
"""Seconds between two looks at the memory of a process."""
_CRASHES = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGBUS, signal.SIGTRAP)
)
"""Signals that end a process for what it does itself."""
_LONG = 3600.0
"""Seconds that a thread sleeps at most: some systems refuse years."""


class WorkerDiedError(Exception):
    """The process that ran a task ended: it crashed, or was killed."""


class WorkerStartError(WorkerDiedError):
    """No process could be started, or its initializer failed: that is no task's fault."""


class WorkerCrashedError(WorkerDiedError):
    """What ran in the process ended it by a fault of its own."""


class WorkerMemoryError(WorkerDiedError):
    """A task took more memory than its pool allows; its process was killed."""


class WorkerTimeoutError(Exception):
    """A task took longer than its pool allows; its process was killed."""


@dataclass(frozen=True, slots=True)
class _Task:
    future: Future[Any]
    message: bytes


class WorkerPool(Executor):
    """At most ``workers`` processes, started when there is work for them.

    ``initializer(*initargs)`` runs in each process before its first task; if it fails, so does
    that task. ``timeout``: seconds for one task, initializer not included; None: no limit.
    ``memory``: bytes that one task may take beyond what its process had when it began, where the
    system tells (Linux); None: no limit.
    ``cpus``: the cores that the processes may run on; empty: all.
    Functions and arguments are pickled, so functions have to be importable by name.
    """

    def __init__(
        self,
        workers: int,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: Sequence[object] = (),
        timeout: float | None = None,
        memory: int | None = None,
        cpus: Sequence[int] = (),
    ) -> None:
        self._setup = pickle.dumps((initializer, tuple(initargs), {})) if initializer else None
        self._timeout = timeout
        self._memory = memory
        self._cpus = tuple(cpus)
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closed = False
        self._killed = False
        self._idle = 0
        self.workers = workers
        self._threads: list[threading.Thread] = []
        self._processes: set[_WorkerProcess] = set()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """See ``Executor``. ``RuntimeError`` after ``shutdown`` or ``kill``."""
        task = _Task(Future(), pickle.dumps((fn, args, kwargs), protocol=5))
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker pool is shut down")
            self._tasks.put(task)
            if len(self._threads) < self.workers and self._idle < self._tasks.qsize():
                # Daemons: a worker that hangs must not keep the interpreter from ending.
                thread = threading.Thread(target=self._serve, daemon=True)
                self._threads.append(thread)
                thread.start()
        return task.future

    def initialise(self, initializer: Callable[..., object], initargs: Sequence[object]) -> None:
        """Take another initializer, for processes that start from now on."""
        self._setup = pickle.dumps((initializer, tuple(initargs), {}))

    def limit(self, workers: int, timeout: float | None, memory: int | None) -> None:
        """Take others of these, for tasks that start from now on; no fewer ``workers``."""
        self.workers, self._timeout, self._memory = workers, timeout, memory

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See ``Executor``."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._cancel_waiting()
            for _ in self._threads:
                self._tasks.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """End all processes at once. Running tasks fail with ``WorkerDiedError``, waiting ones are
        cancelled."""
        with self._lock:
            self._closed = self._killed = True
            self._cancel_waiting()
            for process in self._processes:
                process.kill()
            for _ in self._threads:
                self._tasks.put(None)

    def _cancel_waiting(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    task.future.cancel()

    def _serve(self) -> None:
        """Run tasks, one at a time, in one process after the other."""
        process: _WorkerProcess | None = None
        while True:
            with self._lock:
                self._idle += 1
            task = self._tasks.get()
            with self._lock:
                self._idle -= 1
            if task is None:
                break
            if not task.future.set_running_or_notify_cancel():
                continue
            try:
                if process is None:
                    process = self._start_process()
                succeeded, result = process.call(task.message, self._timeout, self._memory)
            except BaseException as error:  # it belongs to the task
                if process is not None:
                    self._end(process)
                process = None
                succeeded, result = False, error
            if succeeded:
                task.future.set_result(result)
            else:
                task.future.set_exception(result)
        if process is not None:
            self._end(process)

    def _start_process(self, *, again: bool = True) -> _WorkerProcess:
        """A process that is ready for tasks; ``WorkerStartError`` if there is none. ``again``:
        whether another one is started if somebody ends this one before, as a system does that is
        short of memory: else a search that has found something would end without a result."""
        try:
            process = _WorkerProcess(self._cpus)
        except OSError as error:
            raise WorkerStartError(f"no process can be started: {error}") from error
        with self._lock:
            self._processes.add(process)
            if self._killed:
                process.kill()
        try:
            process.started()
            if self._setup is not None:
                succeeded, raised = process.call(self._setup)
                if not succeeded:
                    raise raised
        except Exception as error:
            self._end(process)
            ended = isinstance(error, WorkerDiedError)
            if again and ended and not isinstance(error, WorkerCrashedError) and not self._killed:
                return self._start_process(again=False)
            said = f"{error}" if ended else repr(error)
            raise WorkerStartError(f"no process can be started: {said}") from error
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: _WorkerProcess) -> None:
        process.kill()
        with self._lock:
            self._processes.discard(process)
        process.close()


class _WorkerProcess:
    """One worker process, used by one thread at a time; ``kill`` from any."""

    def __init__(self, cpus: Sequence[int]) -> None:
        with contextlib.ExitStack() as own, contextlib.ExitStack() as theirs:
            self._stderr = own.enter_context(tempfile.TemporaryFile())
            stdin, requests = os.pipe()
            theirs.callback(os.close, stdin)
            self._requests: IO[bytes] = own.enter_context(os.fdopen(requests, "wb"))
            replies, stdout = os.pipe()
            theirs.callback(os.close, stdout)
            self._replies: IO[bytes] = own.enter_context(os.fdopen(replies, "rb"))
            end, ending = os.pipe()
            theirs.callback(os.close, ending)
            self._end: IO[bytes] = own.enter_context(os.fdopen(end, "rb"))
            self._number = template.fork([stdin, stdout, self._stderr.fileno(), ending])
            self._files = own.pop_all()
        self._surroundings = protocol.surroundings(cpus)
        self._code: int | None = None

    def started(self) -> None:
        """Wait until it is ready; ``WorkerDiedError`` if it has ended before."""
        try:
            protocol.send(self._requests, self._surroundings)
            protocol.receive(self._replies)
        except (EOFError, OSError):
            raise self._died() from None

    def call(
        self, message: bytes, timeout: float | None = None, memory: int | None = None
    ) -> tuple[bool, Any]:
        """Send a task and wait for (succeeded, result or exception).

        ``WorkerDiedError``, ``WorkerTimeoutError`` after ``timeout`` seconds, or
        ``WorkerMemoryError`` beyond ``memory`` bytes more than it has now.
        """
        had = None if memory is None else resident(self._number)
        end = math.inf if timeout is None else time.monotonic() + timeout
        pause = _LONG if had is None else _GLANCE
        try:
            protocol.send(self._requests, message)
            while not _readable(self._replies, min(pause, end - time.monotonic())):
                if timeout is not None and time.monotonic() >= end:
                    raise WorkerTimeoutError(f"it took more than {timeout:g} s")
                if memory is None or had is None:
                    continue
                if (resident(self._number) or 0) - had > memory:
                    raise WorkerMemoryError(
                        f"it took more than {in_words(memory)} of memory in addition to its start"
                    )
            succeeded, result, modules = pickle.loads(protocol.receive(self._replies))
        except (EOFError, OSError):
            raise self._died() from None
        template.learn(modules)
        return succeeded, result

    def kill(self) -> None:
        # Once it is known how it ended, another process may have its number.
        if not _readable(self._end, 0.0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._number, signal.SIGKILL)

    def close(self) -> None:
        """Wait for the end of the killed process."""
        self._ended()
        with contextlib.suppress(OSError):
            self._files.close()

    def _ended(self) -> int:
        """How the process ended: as ``subprocess.Popen.wait``."""
        if self._code is None:
            self._code = int(os.read(self._end.fileno(), 32) or -signal.SIGKILL)
        return self._code

    def _died(self) -> WorkerDiedError:
        """How the process ended, as a sentence."""
        code = self._ended()
        if code < 0:
            kind = WorkerCrashedError if -code in _CRASHES else WorkerDiedError
            try:
                return kind(f"its process was killed by {signal.Signals(-code).name}")
            except ValueError:
                return kind(f"its process was killed by signal {-code}")
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return WorkerDiedError(f"its process ended with status {code}{last}")


def _readable(stream: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read, or the end of it, within so many seconds."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
