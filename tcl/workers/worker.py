"""A worker process: runs the tasks that ``tcl.workers.pool`` sends to it, one after the other.

Tasks and results travel over a pair of pipes as length-prefixed pickles; both ends are the same
program, started by the same user, and nothing is ever unpickled from a file.
"""

from __future__ import annotations

import mmap
import os
import pickle
import queue
import random
import struct
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker has of the process that it works for: the first message to it."""

    path: list[str]
    folder: str
    environment: dict[str, str]
    cpus: Sequence[int]

    @classmethod
    def here(cls, cpus: Sequence[int]) -> Surroundings:
        """Of this process; ``cpus``: the worker runs on these only; empty: where this one may."""
        if not cpus and hasattr(os, "sched_getaffinity"):
            cpus = sorted(os.sched_getaffinity(0))
        folder = os.getcwd()
        return cls([str(p) or folder for p in sys.path], folder, dict(os.environ), cpus)

    def take(self) -> None:
        """Have them."""
        sys.path[:] = self.path
        with suppress(OSError):  # it was removed
            os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        if self.cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cpus)


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one message."""
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
        pickle.loads(receive(requests)).take()
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
    rng = random.SystemRandom()
    _held.append(mmap.mmap(-1, mmap.PAGESIZE * rng.randrange(1, 1 << 14), mmap.MAP_PRIVATE))
    _held.extend(bytearray(16 * rng.randrange(64, 4096)) for _ in range(2))


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
