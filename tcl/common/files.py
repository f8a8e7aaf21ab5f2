"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from tcl.common.errors import ArgumentError

MOST_TEXT = 1 << 20
"""Bytes of the longest text that people write: any TC of ``MAX_TEXT`` characters fits in."""
MOST_DATA = 1 << 28
"""Of the longest one that commands write."""
_KINDS = {
    stat.S_IFIFO: "it is a pipe, not a regular file",
    stat.S_IFSOCK: "it is a socket, not a regular file",
    stat.S_IFCHR: "it is a device, not a regular file",
    stat.S_IFBLK: "it is a device, not a regular file",
}


def open_plain(path: Path) -> BufferedReader:
    """A plain file, to be read. ``OSError`` for anything else, such as a device that never ends, or
    a pipe that nobody writes to."""
    # Without waiting for a pipe's writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind in _KINDS:
            raise OSError(errno.EINVAL, _KINDS[kind], str(path))
        return open(descriptor, "rb")
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise


def read_most(file: BinaryIO, most: int) -> bytes:
    """All of a file; ``OSError`` if that is more than so many bytes, of which no more are read."""
    data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB")
    return data


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a file of so many bytes at most; ``ArgumentError`` if there is none."""
    try:
        with open_plain(path) as file:
            return decoded(read_most(file, most), str(path))
    except (OSError, ValueError) as error:  # no such file, or a name that none can have
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ArgumentError(f"{path} cannot be read: {reason}") from None


def decoded(data: bytes, name: str) -> str:
    """A text of a file of this name; ``ArgumentError`` if it is none."""
    try:
        text = data.decode("utf-8-sig")  # some editors on Windows put a mark at the start
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{name} is not UTF-8 text (byte {error.start}); save it as such"
        ) from None
    return with_newlines(text)


def with_newlines(text: str) -> str:
    """A text whose lines end with ``\\n``, whatever they ended with: with ``\\r`` alone, a comment
    would take in all that follows."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_whole(path: Path) -> None:
    """Raise the ``OSError`` of ``write_whole``, as far as it is known before there is a text: by
    making a file where that would make one."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    partial = _partial(target)
    with open(partial, "x", encoding="utf-8"):
        partial.unlink()


def _partial(target: Path) -> Path:
    return target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")


def write_whole(path: Path, text: str) -> None:
    """Write a text file such that readers, and a crash, see the old contents or the new ones.

    What a link leads to is written, and what is no plain file (a pipe, a terminal) is written to
    as it is. Raises ``OSError``.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, "utf-8")
        return
    partial = _partial(target)
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
