"""Turns that all processes of a machine take, whoever they belong to."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: one process per machine has to do
    fcntl = None  # type: ignore[assignment]

_threads: dict[str, threading.Lock] = defaultdict(threading.Lock)


@contextlib.contextmanager
def locked(name: str, *, shared: bool = False) -> Iterator[None]:
    """A block in which nobody else is who locks by this name; ``shared``: but for those who share
    it, too."""
    if fcntl is None:
        with _threads[name]:
            yield
        return
    with _lock_file(name) as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def _lock_file(name: str) -> IO[bytes]:
    """A file that all users of this machine share. Once it is there it is not opened as if it were
    to be made: Linux refuses that for files of others in a folder like ``/tmp``."""
    path = Path(tempfile.gettempdir()) / f"{name}.lock"
    with contextlib.suppress(FileNotFoundError):
        return open(path, "r+b")
    file = open(path, "ab")  # noqa: SIM115 - for the caller to close
    with contextlib.suppress(OSError):
        path.chmod(0o666)
    return file
