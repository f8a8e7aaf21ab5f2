"""Worker processes behind the ``Executor`` interface, each of which may crash, hang or be killed.

The standard library's process pool breaks as a whole when one worker dies, cannot end a task
that hangs, and imports the caller's script once more in each worker. Here each worker is a
process of its own: when it dies, the task it ran fails, and the next task starts a new one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import IO, Any, ParamSpec, TypeVar

from tcl.workers import worker as protocol
from tcl.workers.process_memory import in_words, resident

_P = ParamSpec("_P")
_T = TypeVar("_T")

_BOOT = (
    "import json, sys; path, cpus = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from tcl.workers.worker import main; main(cpus)"
)
_GLANCE = 0.05
"""Seconds between two looks at the memory of a process."""
_CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
    | {getattr(signal, name) for name in ("SIGBUS", "SIGTRAP") if hasattr(signal, name)}
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
        self._processes: set[_Process] = set()

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
        process: _Process | None = None
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
                    process = self._start()
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

    def _start(self, *, again: bool = True) -> _Process:
        """A process that is ready for tasks; ``WorkerStartError`` if there is none. ``again``:
        whether another one is started if somebody ends this one before, as a system does that is
        short of memory: else a search that has found something would end without a result."""
        try:
            process = _Process(self._cpus)
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
                return self._start(again=False)
            said = f"{error}" if ended else repr(error)
            raise WorkerStartError(f"no process can be started: {said}") from error
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: _Process) -> None:
        process.kill()
        with self._lock:
            self._processes.discard(process)
        process.close()


class _Process:
    """One worker process, used by one thread at a time; ``kill`` from any."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        argument = json.dumps([[str(p) or os.getcwd() for p in sys.path], list(cpus)])
        try:
            self._process = subprocess.Popen(
                # Not the folder that this runs in: files there may have the names of modules.
                [sys.executable, "-P", "-c", _BOOT, argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                process_group=0,  # a Ctrl+C at the terminal is for the parent alone
            )
        except BaseException:
            self._stderr.close()
            raise

    def started(self) -> None:
        """Wait until it is ready; ``WorkerDiedError`` if it has ended before."""
        assert self._process.stdout is not None
        try:
            protocol.receive(self._process.stdout)
        except (EOFError, OSError):
            raise self._died() from None

    def call(
        self, message: bytes, timeout: float | None = None, memory: int | None = None
    ) -> tuple[bool, Any]:
        """Send a task and wait for (succeeded, result or exception).

        ``WorkerDiedError``, ``WorkerTimeoutError`` after ``timeout`` seconds, or
        ``WorkerMemoryError`` beyond ``memory`` bytes more than it has now.
        """
        with _Watch(self._process, timeout, memory) as watch:
            try:
                assert self._process.stdin is not None
                assert self._process.stdout is not None
                protocol.send(self._process.stdin, message)
                reply: tuple[bool, Any] = pickle.loads(protocol.receive(self._process.stdout))
            except (EOFError, OSError):
                raise watch.stop() or self._died() from None
            if (reason := watch.stop()) is not None:  # at the same moment: the process is dead
                raise reason
            return reply

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Reap the killed process and close its pipes."""
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _died(self) -> WorkerDiedError:
        """How the process ended, as a sentence."""
        code = self._process.wait()
        if code < 0:
            kind = WorkerCrashedError if -code in _CRASHES else WorkerDiedError
            try:
                return kind(f"its process was ended by {signal.Signals(-code).name}")
            except ValueError:
                return kind(f"its process was ended by signal {-code}")
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return WorkerDiedError(f"its process ended with status {code}{last}")


class _Watch:
    """A context in which a process is killed for taking too long, or too much memory."""

    def __init__(
        self, process: subprocess.Popen[bytes], timeout: float | None, memory: int | None
    ) -> None:
        self._process = process
        self._timeout = timeout
        self._memory = memory
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._reason: WorkerTimeoutError | WorkerMemoryError | None = None

    def __enter__(self) -> _Watch:
        had = resident(self._process.pid) if self._memory is not None else None
        if self._timeout is not None or had is not None:
            threading.Thread(target=self._look, args=(had,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> WorkerTimeoutError | WorkerMemoryError | None:
        """The process is not killed from now on. Why it was, if it was."""
        with self._lock:
            self._over.set()
            return self._reason

    def _look(self, had: int | None) -> None:
        end = math.inf if self._timeout is None else time.monotonic() + self._timeout
        pause = _LONG if had is None else _GLANCE
        while not self._over.wait(max(0.0, min(pause, end - time.monotonic()))):
            reason = self._exceeded(had, time.monotonic() >= end)
            with self._lock:
                if self._over.is_set() or reason is None:
                    continue
                self._reason = reason
                self._process.kill()
                return

    def _exceeded(
        self, had: int | None, late: bool
    ) -> WorkerTimeoutError | WorkerMemoryError | None:
        if late:
            return WorkerTimeoutError(f"it took more than {self._timeout:g} s")
        if had is None or self._memory is None:
            return None
        has = resident(self._process.pid)
        if has is None or has - had <= self._memory:
            return None
        taken = in_words(self._memory)
        return WorkerMemoryError(f"it took more than {taken} of memory beyond what it began with")
