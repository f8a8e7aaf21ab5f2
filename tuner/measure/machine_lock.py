"""Turns that all processes of one user take on a machine. Users do not wait for each other: what
one may lock, another could hold for ever."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tcl.common.folder import cache_folder, private
from tcl.common.interrupts import of_system
from tcl.common.warn import warn_once

PATIENCE = 600.0
"""Seconds that somebody else's turn is waited for."""
_GLANCE = 0.02
"""Seconds between two tries."""
_WITHOUT = "processes cannot take turns when they measure"


@contextlib.contextmanager
def locked(name: str, *, shared: bool = False, patience: float = PATIENCE) -> Iterator[None]:
    """A block in which no other process of this user is that locks by this name; ``shared``: but
    for those that share it, too. What cannot be locked, or is locked for longer than ``patience``
    seconds, is gone on without, with a warning."""
    held = None
    try:
        held = _lock_file(name, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, patience)
    except OSError as error:
        if not of_system(error):
            raise
        _tell(f"{name}.lock cannot be locked: {error.strerror}")
    try:
        yield
    finally:
        if held is not None:
            _release(name, held)


def _folder() -> Path | None:
    found = cache_folder()
    return None if found is None else found / "locks"


def _lock_file(name: str, how: int, patience: float) -> int | None:
    """The descriptor of a file that is locked; None, with a warning, if it is not."""
    until = time.monotonic() + patience
    with private(_folder(), _WITHOUT, create=True) as folder:
        while folder is not None:
            # Not blocking, as a pipe of that name would be waited for.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(f"{name}.lock", flags, 0o600, dir_fd=folder)
            try:
                while not _locks(file, how):
                    if time.monotonic() > until:
                        _tell(f"another process has held {name}.lock for {patience:.0f} s")
                        os.close(file)
                        return None
                    time.sleep(_GLANCE)
                # Whoever had it before has removed it: others lock the one that took its place.
                if _is_there(name, folder, file):
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)
    return None


def _locks(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(name: str, folder: int, file: int) -> bool:
    try:
        there, own = os.stat(f"{name}.lock", dir_fd=folder, follow_symlinks=False), os.fstat(file)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


def _release(name: str, file: int) -> None:
    """Remove a file that nobody else holds, and let go of it."""
    try:
        with contextlib.suppress(OSError), private(_folder(), _WITHOUT, create=False) as folder:
            if folder is not None and _locks(file, fcntl.LOCK_EX) and _is_there(name, folder, file):
                os.unlink(f"{name}.lock", dir_fd=folder)
    finally:
        os.close(file)


def _tell(why: str) -> None:
    warn_once(("lock", why), f"{_WITHOUT}: {why}")
