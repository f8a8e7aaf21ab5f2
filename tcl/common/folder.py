"""Where this user's caches are: decided here, for all of them.

A cache that has no place is done without. No call fails for want of one; a ``TclWarning`` says so
once in a process, and what to do.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcl.common.errors import TclError
from tcl.common.files import write_whole
from tcl.common.interrupts import of_system
from tcl.common.lazy import Lazy
from tcl.common.warn import warn_once

if TYPE_CHECKING:
    import platformdirs
else:
    platformdirs = Lazy("platformdirs")  # which nobody needs who says where


class NoPlaceError(TclError):
    """There is no folder that could be this user's cache."""


def cache_place() -> Path:
    """``TCL_CACHE_DIR``, or the user's cache folder; it need not exist. Raises ``NoPlaceError``."""
    given = os.environ.get("TCL_CACHE_DIR")
    if given:
        return Path(given)
    try:
        found = Path(platformdirs.user_cache_dir("tcl", appauthor=False))
    except (RuntimeError, KeyError, OSError):  # no HOME, and nobody whom the system knows
        found = Path()
    if not found.is_absolute():
        raise NoPlaceError("this user has no home directory")
    return found


def cache_folder() -> Path | None:
    """``place``; None, with a warning, if there is none, or this user may not look into it."""
    try:
        found = cache_place()
        os.stat(found / ".")  # nobody may who may not search it, or a folder above it
    except NoPlaceError as error:
        _without(str(error))
        return None
    except OSError as error:
        if not of_system(error):
            raise
        if error.errno in (errno.EACCES, errno.EPERM):
            _without(f"{found} cannot be read: {error.strerror}")
            return None
    return found


def ensure_folder(folder: Path) -> bool:
    """Whether this folder of a cache can be written; it is made, for this user alone, if it does
    not exist. If not, a warning says why."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        if not of_system(error):
            raise
        _without(f"{folder} cannot be written: {error.strerror}")
        return False
    return True


def read_kept(folder: Path | None, name: str) -> dict[str, Any]:
    """What a file of JSON in a cache holds; nothing if there is none, or it is not ours."""
    if folder is None:
        return {}
    try:
        data = json.loads((folder / name).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def keep(folder: Path | None, name: str, found: Mapping[str, object]) -> None:
    """Add this to what such a file holds, and take out what is None, where that can be written."""
    if folder is not None:
        kept = {k: v for k, v in {**read_kept(folder, name), **found}.items() if v is not None}
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, json.dumps(kept, indent=1))


@contextlib.contextmanager
def private(folder: Path | None, without: str, *, create: bool) -> Iterator[int | None]:
    """A folder in a cache, opened, so that what is checked is what is used; None where the system
    does not say whose it is (it is not POSIX), or, with a warning, if it is not this user's alone.
    ``create``: it is made if it does not exist, else that is an ``OSError``. ``without``: what a
    refusal means, as a sentence."""
    if os.name != "posix" or folder is None or (create and not ensure_folder(folder.parent)):
        yield None
        return
    if create:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor if trusted(os.fstat(descriptor), str(folder), without) else None
    finally:
        os.close(descriptor)


def trusted(status: os.stat_result, path: str, without: str) -> bool:
    """Whether nobody but this user can have written it. Warns if not, once for each path."""
    if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
        return True
    why = (
        f"its mode is {stat.S_IMODE(status.st_mode):o}"
        if status.st_uid == os.geteuid()
        else "it belongs to another user"
    )
    warn_once(("access", path), f"{without}: {why}, but {path} must be accessible only to you")
    return False


def _without(reason: str) -> None:
    warn_once(
        ("no place", reason),
        f"nothing is saved between processes: {reason}; set TCL_CACHE_DIR to a writable folder",
    )
