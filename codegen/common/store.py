"""Files of this user's own, by the hash of what made them: code that is run as it is.

What is kept is taken only from a folder and files that belong to this user and that nobody else
may open, and only if it is whole. Nothing that goes wrong here ever breaks a call: the worst that
happens is that something is compiled once more.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from tcl.codegen.common.envelope import seal, unseal
from tcl.common.folder import cache_folder, private, trusted
from tcl.common.interrupts import system_errors_passed_over

LIMIT = 256 << 20
"""Bytes that the folder may hold; the least recently used are removed first."""

_WHAT = "cached object code is not used"
_SUFFIX = ".tclo"
_PARTIAL = ".part"
_STALE = 3600.0
"""Seconds after which a file that is still being written belongs to a process that died."""
_MAX_FILE = 64 << 20

_T = TypeVar("_T")


def default_folder() -> Path | None:
    """``objects`` in ``TCL_CACHE_DIR``, or in the user's cache folder, if there is one."""
    folder = cache_folder()
    return None if folder is None else folder / "objects"


class FolderStore:
    """Contents by name in a folder of this user's own. Many processes may use it at once.

    Kept only where the system says whose a file is (POSIX). No method raises: a folder or file
    that others could have written is refused with a ``TclWarning``, once per process; whatever
    cannot be read or written is passed over.
    """

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self.folder = default_folder() if folder is None else folder
        self.limit = limit

    def get(self, digest: str, class_: type[_T]) -> _T | None:
        """The instance of this class that was kept under this name, or None."""
        content = None
        with system_errors_passed_over(), self._opened(create=False) as folder:
            content = None if folder is None else self._read_file(folder, digest + _SUFFIX)
        return None if content is None else unseal(class_, content, digest)

    def put(self, digest: str, value: Any) -> None:
        """Keep a dataclass under a name; what was there is replaced in one step."""
        content = seal(value, digest)
        partial = f".{digest[:16]}.{os.getpid()}.{secrets.token_hex(8)}{_PARTIAL}"
        if len(content) > min(_MAX_FILE, self.limit):
            return
        with system_errors_passed_over(), self._opened(create=True) as folder:
            if folder is None:
                return
            try:
                _write(folder, partial, content)
                os.rename(partial, digest + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with system_errors_passed_over():
                    os.unlink(partial, dir_fd=folder)
                raise
            if int(digest[:2], 16) % 16 == 0:  # looking at every file for each new one is dear
                self._prune(folder)

    def _opened(self, *, create: bool) -> AbstractContextManager[int | None]:
        return private(self.folder, _WHAT, create=create)

    def _read_file(self, folder: int, name: str) -> bytes | None:
        # Not blocking, as a pipe of that name would be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(name, flags, dir_fd=folder), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE:
                return None
            if not trusted(status, f"{self.folder}/{name}", _WHAT):
                return None
            content = file.read()
            with system_errors_passed_over():
                os.utime(file.fileno())  # for the order in which files are removed
            return content

    def _prune(self, folder: int) -> None:
        """Remove the least recently used until a quarter of the room is free, if it is short."""
        now, total = time.time(), 0
        files: list[tuple[float, int, str]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with system_errors_passed_over():
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_SUFFIX):
                        files.append((status.st_mtime, status.st_size, entry.name))
                        total += status.st_size
                    elif entry.name.endswith(_PARTIAL) and now - status.st_mtime > _STALE:
                        os.unlink(entry.name, dir_fd=folder)
        if total <= self.limit:
            return
        for _, size, name in sorted(files):
            with system_errors_passed_over():
                os.unlink(name, dir_fd=folder)
            total -= size
            if total <= self.limit * 3 // 4:
                return


def _write(folder: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # whatever the umask says
        file.write(content)
