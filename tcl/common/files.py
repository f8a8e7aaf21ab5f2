"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from tcl.grammar.errors import ArgumentError


def read_text(path: Path) -> str:
    """The text of a file; ``ArgumentError`` if there is none."""
    try:
        return decoded(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:  # no such file, or a name that none can have
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ArgumentError(f"{path} cannot be read: {reason}") from None


def decoded(data: bytes, name: str) -> str:
    """A text of a file of this name; ``ArgumentError`` if it is none."""
    try:
        return data.decode("utf-8-sig")  # some editors on Windows put a mark at the start
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{name} is not UTF-8 text (byte {error.start})") from None


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
    return target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")


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
