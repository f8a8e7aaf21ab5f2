"""A worker process: runs the tasks that ``tcl.workers.pool`` sends to it, one after the other.

Tasks and results travel over a pair of pipes as length-prefixed pickles; both ends are the same
program, started by the same user, and nothing is ever unpickled from a file.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import threading
from collections.abc import Sequence
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


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


def main(cpus: Sequence[int]) -> None:
    """Serve tasks until standard input ends. ``cpus``: run on these only; empty: on any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    # What a kernel prints must not end up among the replies.
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    threading.Thread(target=_listen, args=(requests, tasks), daemon=True).start()
    send(replies, b"")  # it has started
    while True:
        send(replies, _run(tasks.get()))


def _listen(requests: IO[bytes], tasks: queue.SimpleQueue[bytes]) -> None:
    """Pass on requests, and end the process, whatever it is doing, when the parent is gone."""
    while True:
        try:
            tasks.put(receive(requests))
        except (EOFError, OSError):
            os._exit(0)


def _run(task: bytes) -> bytes:
    """The pickled (succeeded, result or exception) of a pickled (function, arguments)."""
    reply: tuple[bool, Any]
    try:
        function, args, kwargs = pickle.loads(task)
        reply = (True, function(*args, **kwargs))
    except BaseException as error:  # it belongs to the one who waits for the result
        reply = (False, error)
    try:
        message = pickle.dumps(reply, protocol=5)
        if not reply[0]:
            pickle.loads(message)  # many exceptions can be pickled but not unpickled
        return message
    except Exception:
        error_or_result = reply[1]
        text = f"{type(error_or_result).__name__}: {error_or_result}"
        return pickle.dumps((False, RuntimeError(text)))
