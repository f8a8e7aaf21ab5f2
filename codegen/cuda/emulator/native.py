"""The emulator's library as Python sees it: the structures of ``state.h``."""

from __future__ import annotations

import _ctypes
import ctypes
import shutil
import weakref
from pathlib import Path
from typing import Any

MOST_FINDINGS = 16


class Finding(ctypes.Structure):
    """What is wrong; see ``findings``."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("problem", "thread", "block", "other_thread")),
        *((name, ctypes.c_uint) for name in ("other_block", "size", "shared", "place")),
        *((name, ctypes.c_uint) for name in ("other_place", "line", "other_line")),
        ("offset", ctypes.c_int64),
    )


class KindTraffic(ctypes.Structure):
    """The requests of one kind."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("requests", "units", "bytes"))


class Origin(ctypes.Structure):
    """Where a tensor's bytes begin, and its first element."""

    _fields_ = (("begin", ctypes.c_int64), ("first", ctypes.c_int64))


class LaunchRequest(ctypes.Structure):
    """A launch, and the room for what is found."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("kernel", "arguments", "arena", "inside")),
        *((name, ctypes.c_void_p) for name in ("shared", "findings", "traffic", "origins")),
        *((name, ctypes.c_size_t) for name in ("number_of_origins", "arena_size")),
        *((name, ctypes.c_uint) for name in ("blocks", "threads", "shared_size", "shared_room")),
        *((name, ctypes.c_uint) for name in ("order", "seed", "checked")),
        *((name, ctypes.c_uint) for name in ("most_findings", "number_of_findings")),
    )


class NativeLibrary:
    """A loaded library, removed with its folder when nothing uses it any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        weakref.finalize(self, _unload, self._library._handle, path.parent)
        self._run = self._library.emulator_run
        self._run.argtypes = [ctypes.POINTER(LaunchRequest)]

    def run(self, request: LaunchRequest) -> list[Any]:
        """Runs a launch; what was found."""
        room = (Finding * MOST_FINDINGS)()
        request.findings = ctypes.cast(room, ctypes.c_void_p)
        request.most_findings = MOST_FINDINGS
        if self._run(ctypes.byref(request)):
            raise MemoryError("no memory for the stacks of the emulated threads")
        return list(room[: request.number_of_findings])

    def function(self, name: str) -> int:
        """The address of a function."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def pointer(self, name: str) -> int:
        """The value of a pointer."""
        return ctypes.c_void_p.in_dll(self._library, name).value or 0


def _unload(handle: int, folder: Path) -> None:
    _ctypes.dlclose(handle)
    shutil.rmtree(folder, ignore_errors=True)
