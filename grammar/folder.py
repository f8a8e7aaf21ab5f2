"""Where this user's caches are: decided here, for all of them.

A cache that has no place is done without. No call fails for want of one; a ``TclWarning`` says so
once in a process, and what to do.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tcl.grammar.errors import TclError
from tcl.grammar.interrupts import of_system
from tcl.grammar.warn import warn_once


class NoPlaceError(TclError):
    """There is no folder that could be this user's cache."""


def place() -> Path:
    """``TCL_CACHE_DIR``, or the user's cache folder; it need not exist. Raises ``NoPlaceError``."""
    given = os.environ.get("TCL_CACHE_DIR")
    if given:
        return Path(given)
    import platformdirs  # only here, so that nobody needs it who says where

    try:
        found = Path(platformdirs.user_cache_dir("tcl", appauthor=False))
    except (RuntimeError, KeyError, OSError):  # no HOME, and nobody whom the system knows
        found = Path()
    if not found.is_absolute():
        raise NoPlaceError("this user has no home directory")
    return found


def cache_folder() -> Path | None:
    """``place``; None, with a warning, if there is none."""
    try:
        return place()
    except NoPlaceError as error:
        _without(str(error))
        return None


def made(folder: Path) -> bool:
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


def _without(reason: str) -> None:
    warn_once(
        ("no place", reason),
        f"nothing is kept between processes: {reason}; set TCL_CACHE_DIR to a folder that can be "
        "written",
    )
