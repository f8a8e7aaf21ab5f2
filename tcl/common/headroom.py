"""Whether there is room in memory for what compiles."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from tcl.common.errors import CompileError

MEGABYTE = 1 << 20


def need_room(what: str, size: int) -> None:
    """Raise ``CompileError`` if the process may not have that many more bytes of addresses.

    Libraries bear it badly if such a limit stops them while they are loaded: some wait for ever,
    some end the process.
    """
    left = _left()
    if left is not None and left < size:
        raise CompileError(
            f"{what} needs {size // MEGABYTE} MB of address space, but the limit on it leaves "
            f"{max(0, left) // MEGABYTE} MB; raise it with `ulimit -v`"
        )


def need_room_for_numba() -> None:
    """``need_room`` before Numba is imported: it brings SciPy, whose BLAS has memory for each
    core."""
    need_room("Numba", (192 + 32 * (os.cpu_count() or 1)) * MEGABYTE)


def _left() -> int | None:
    """The bytes that the limit on this process's addresses leaves; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):  # not Linux
        return limit
    return limit - pages * resource.getpagesize()
