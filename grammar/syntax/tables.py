"""The parser's tables, kept between processes: making them takes longer than all else in a def.

They are kept as JSON in the user's cache folder, under a name that says what they were made from.
A file that is missing, damaged, or not this user's own is made anew; one that cannot be written
is done without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from tcl.common.folder import cache_folder, made
from tcl.common.interrupts import deferred

_LARGEST = 1 << 24
_FORMAT = "1"
"""Changes when files are to be written in another way."""


def parser(grammar: str, **options: Any) -> lark.Lark:
    """``lark.Lark(grammar, **options)``, from kept tables if there are any."""
    folder = cache_folder()
    made_from = repr((_FORMAT, lark.__version__, grammar, sorted(options.items())))
    digest = hashlib.sha256(made_from.encode()).hexdigest()[:32]
    path = folder and folder / f"grammar-{digest}.json"
    with deferred():  # Lark is not made to be interrupted while it makes tables, see _loaded
        # Whatever is wrong with a file, or with how this version of Lark reads it: no call fails.
        if path is not None:
            with contextlib.suppress(Exception):
                return _read(path)
        found = lark.Lark(grammar, **options)
        content = json.dumps(found.memo_serialize([TerminalDef, Rule])).encode()
        if path is not None and made(path.parent):
            with contextlib.suppress(Exception):
                _write(path, content)
        return _loaded(content)


def _read(path: Path) -> lark.Lark:
    """The parser of a file. Raises whatever is wrong with it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise PermissionError(path)
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise PermissionError(path)  # somebody else could have written it
        checksum, _, content = file.read().partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ValueError("the file is damaged")
    return _loaded(content)


def _loaded(content: bytes) -> lark.Lark:
    """The parser of tables, those just made as well: names in them are plain strings. In Lark's own
    they are its tokens, which compare by a function in Python; while Python looks up the method of
    that name, it drops what is raised there, as Ctrl+C may be, and finds no method."""
    # Keys of dicts were numbers before JSON made them strings.
    data, memo = json.loads(
        content, object_hook=lambda d: {int(k) if k.isdigit() else k: v for k, v in d.items()}
    )
    kept: lark.Lark = lark.Lark._load_from_dict(data, memo)  # type: ignore[no-untyped-call]
    return kept


def _write(path: Path, content: bytes) -> None:
    """Put a parser's tables into a file, in one step."""
    checksum = hashlib.sha256(content).hexdigest().encode()
    partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(checksum + b"\n" + content)
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
