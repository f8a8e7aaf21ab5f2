"""A temporary folder that does not outlive its process by more than one tuning run.

The folder is locked while its process lives. What a killed process left behind is not locked, and
is removed when the next folder is made.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: a killed process's folder stays until the system clears it
    fcntl = None  # type: ignore[assignment]

_PREFIX = "tcl-"
_LOCK = "lock"
_NEW = "lock.new"


@contextlib.contextmanager
def workspace() -> Iterator[str]:
    """The path of a new folder, removed at the end."""
    for lock_file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), open(lock_file) as left:  # another's, or gone by now
            if _locked(left):
                shutil.rmtree(lock_file.parent, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder,
        open(Path(folder) / _NEW, "w") as lock,
    ):
        _locked(lock)
        (Path(folder) / _NEW).rename(Path(folder) / _LOCK)  # from here on others may look at it
        yield folder


def _locked(file: IO[str]) -> bool:
    """Lock a file for this process; False if another process holds it, or none can."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
