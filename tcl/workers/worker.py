"""A worker process: runs the tasks that ``tcl.workers.pool`` sends to it, one after the other. And
the template that it is forked from: see ``tcl.workers.template``.

It is the first that a new process loads, and imports little for that reason.

Tasks and results travel over a pair of pipes as length-prefixed pickles; both ends are the same
program, started by the same user, and nothing is ever unpickled from a file.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import pickle
import queue
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any, NoReturn

_LENGTH = struct.Struct("<Q")
_IMPORTED = frozenset(("llvmlite", "numba", "numpy", "tcl"))
"""Packages of which no module starts threads, or a device, when it is imported."""
LONGEST_REQUEST = 1 << 16
"""Bytes of a request."""


def surroundings(cpus: Sequence[int]) -> bytes:
    """What a worker is to have of this process: the first message to it. ``cpus``: it runs on these
    only; empty: where this process may."""
    if not cpus and hasattr(os, "sched_getaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
    folder = os.getcwd()
    return pickle.dumps(([str(p) or folder for p in sys.path], folder, dict(os.environ), cpus))


def _take(message: bytes) -> None:
    """Have what ``surroundings`` says."""
    sys.path[:], folder, environment, cpus = pickle.loads(message)
    with contextlib.suppress(OSError):  # it was removed
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read one message; ``EOFError`` when the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def serve(stdin: int, stdout: int, stderr: int) -> NoReturn:
    """Serve tasks until ``stdin`` ends, in a process that was forked for it."""
    try:
        os.setpgid(0, 0)
        # What a kernel prints must not end up among the replies.
        with open(os.devnull, "r+b") as null:
            for number, file in enumerate((null.fileno(), null.fileno(), stderr)):
                os.dup2(file, number)
        requests, replies = os.fdopen(stdin, "rb"), os.fdopen(stdout, "wb")
        tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        _take(receive(requests))
        _scatter()
        threading.Thread(target=_listen, args=(requests, tasks), daemon=True).start()
        known = frozenset(sys.modules)
        send(replies, b"")  # it has started
        while True:
            send(replies, _run(tasks.get(), known))
            known = frozenset(sys.modules)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


_held: list[object] = []


def _scatter() -> None:
    """Have what is allocated from now on lie elsewhere than in other copies of the same process, as
    in processes that were started one by one: where a kernel and its arrays lie is part of what
    makes one session of measurements differ from the next."""
    pages, *small = (int.from_bytes(os.urandom(4)) for _ in range(3))
    _held.append(mmap.mmap(-1, mmap.PAGESIZE * (pages % (1 << 14) + 1), mmap.MAP_PRIVATE))
    _held.extend(bytearray(16 * (each % (1 << 12) + 1)) for each in small)


def _listen(requests: IO[bytes], tasks: queue.SimpleQueue[bytes]) -> None:
    """Pass on requests, and end the process, whatever it is doing, when the parent is gone."""
    while True:
        try:
            tasks.put(receive(requests))
        except (EOFError, OSError):
            os._exit(0)


def _run(task: bytes, known: frozenset[str]) -> bytes:
    """The pickled (succeeded, result or exception, modules imported besides ``known``) of a pickled
    (function, arguments)."""
    reply: tuple[bool, Any]
    try:
        function, args, kwargs = pickle.loads(task)
        reply = (True, function(*args, **kwargs))
    except BaseException as error:  # it belongs to the one who waits for the result
        reply = (False, error)
    new = [name for name in sys.modules if name not in known]
    try:
        message = pickle.dumps((*reply, new), protocol=5)
        if not reply[0]:
            pickle.loads(message)  # many exceptions can be pickled but not unpickled
        return message
    except Exception:
        text = f"{type(reply[1]).__name__}: {reply[1]}"
        return pickle.dumps((False, RuntimeError(text), new))


def make_copies(number: int) -> None:
    """Make copies of this process until nobody is left who could ask for them. A request without
    files is for its modules alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    control = socket.socket(fileno=number)
    while True:
        ready, _, _ = select.select([control.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, LONGEST_REQUEST)
            _report(reports)
        if control.fileno() in ready:
            # Programs that workers start have none of these files.
            request, files, _, _ = socket.recv_fds(
                control, LONGEST_REQUEST, 4, socket.MSG_CMSG_CLOEXEC
            )
            if not request:
                return
            for name in json.loads(request):
                if name.partition(".")[0] in _IMPORTED:
                    with contextlib.suppress(Exception):  # the worker will say what is wrong
                        importlib.import_module(name)
            if not files:  # that was all
                continue
            gc.freeze()
            try:
                child = os.fork()
            except OSError as error:  # no memory, or too many processes
                child = -(error.errno or 1)
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                for other in (ended, wake, *reports.values()):
                    os.close(other)
                # It keeps the last of its files open: where nothing is written to that, because
                # the template has ended, it closes with the process.
                serve(*files[:3])
            if child > 0:
                reports[child] = files.pop()
            for file in files:
                os.close(file)
            control.send(str(child).encode())


def _report(reports: dict[int, int]) -> None:
    """Tell of the copies that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            file = reports.pop(found[0])
            with contextlib.suppress(OSError):  # nobody wants to know
                os.write(file, str(os.waitstatus_to_exitcode(found[1])).encode())
            os.close(file)
