"""A temporary folder that does not outlive its process by more than one tuning run.

The folder is locked while its process lives. What a killed process left behind is not locked, and
is removed when the next folder is made.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_PREFIX = "tcl-"
_LOCK = "lock"
_NEW = "lock.new"


@contextlib.contextmanager
def workspace() -> Iterator[str]:
    """The path of a new folder, removed at the end."""
    for lock_file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), open(lock_file, opener=_own) as left:
            if _locked(left):
                shutil.rmtree(lock_file.parent, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder,
        open(Path(folder) / _NEW, "w") as lock,
    ):
        _locked(lock)
        (Path(folder) / _NEW).rename(Path(folder) / _LOCK)  # from here on others may look at it
        yield folder


def _own(path: str, flags: int) -> int:
    """Opened as ``open`` asks; ``OSError`` for what is not a file of this user's, or is gone."""
    # Without O_NONBLOCK, a pipe would be waited for.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is not this user's file", path)
    return descriptor


def _locked(file: IO[str]) -> bool:
    """Lock a file for this process; False if another process holds it, or none can."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
