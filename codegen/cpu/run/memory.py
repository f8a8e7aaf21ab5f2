"""Memory of our own: on lines of the cache, on huge pages where it is large, and used again.

A page that no process had before is cleared by the system when it is first touched, which takes
longer than most kernels take to fill it. So large pieces, which the C library would give back to
the system at once, come from a pool: when an array is garbage, with all views of it, its memory
waits for the next array of about the same size. Pieces have few lengths, so that arrays of sizes
that vary find some that wait; what an array leaves over of its piece is never touched. Kept is what
``VARIABLE`` allows of each length, the latest pieces first, and of all together whenever there is
need of a new piece; ``release_memory`` gives all of it back.

Nothing is shared with processes that are forked: theirs are copies. Nothing is locked: pieces
come and go by single operations on queues, which Python does whole, as a piece may come back in the
middle of anything. No code of Python runs then: what a handler of a signal raises there, as Ctrl+C
does, would be lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import math
import mmap
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.common.errors import VariableError
from tcl.common.number_format import is_whole_number

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

POOLED = 1 << 18
"""Bytes from which on memory comes from the pool: shorter pieces the C library keeps itself."""
HUGE = 1 << 21
"""Bytes of a huge page."""
VARIABLE = "TCL_KEPT_MEMORY"
"""The environment variable with the most bytes that wait to be used again."""
_MOST = 1 << 30
_SHARE = 8
"""Kept is no more than so many bytes, and this part of the memory that the process may have, unless
the variable says something else."""
_GROUP = Path("/sys/fs/cgroup")
"""Where Linux says what a container may have: the root of its control group as it sees it."""
_SIZES = 256
"""Sizes of pieces for which what makes arrays of them is kept."""

_PRIVATE: int = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


class _Piece:
    """A mapping of whole pages; of whole huge pages where it is large."""

    __slots__ = ("_memory", "address")

    def __init__(self, size: int) -> None:
        """``MemoryError`` where the system has no more."""
        try:
            self._memory = mmap.mmap(-1, size + (HUGE if size >= HUGE else 0), flags=_PRIVATE)
        except OSError as error:
            if error.errno not in (errno.ENOMEM, errno.EAGAIN):  # a signal's handler raised it
                raise
            raise MemoryError(f"the system has less than {size} bytes of free memory") from None
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        begin = -at % HUGE if size >= HUGE else 0
        self.address = at + begin
        if size >= HUGE and _HUGE_PAGES is not None:
            try:
                self._memory.madvise(_HUGE_PAGES, begin, size)
            except OSError as error:
                if error.errno != errno.EINVAL:  # of a system that was built without it
                    raise


class _Pool:
    """Pieces that nobody has, by size, those that came back last at the end of a queue."""

    __slots__ = ("most", "waiting")

    def __init__(self) -> None:
        self.most = _limit()
        self.waiting: dict[int, deque[_Piece]] = {}

    def queue(self, size: int) -> deque[_Piece]:
        """The pieces of a size. It drops the oldest one where it has as many as are allowed."""
        return self.waiting.setdefault(size, deque(maxlen=self.most // size))

    def new(self, size: int) -> _Piece:
        """A piece that was not in the pool. ``MemoryError`` where the system has no more."""
        self.trim()
        try:
            return _Piece(size)
        except MemoryError:
            if not self.release():
                raise
        return _Piece(size)

    def held(self) -> int:
        """The bytes that wait."""
        return sum(size * len(pieces) for size, pieces in list(self.waiting.items()))

    def trim(self) -> None:
        """Give up pieces, the oldest of a size first, until no more wait than are allowed."""
        excess = self.held() - self.most
        for size, pieces in list(self.waiting.items()):
            while excess > 0 and _dropped(pieces):
                excess -= size

    def release(self) -> int:
        """Give up all pieces; their bytes."""
        given = 0
        for size, pieces in list(self.waiting.items()):
            while _dropped(pieces):
                given += size
        return given


def _dropped(pieces: deque[_Piece]) -> bool:
    """Whether there was a piece to be given up."""
    try:
        pieces.popleft()
    except IndexError:
        return False
    return True


def _limit() -> int:
    """The most bytes that wait to be used again."""
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        if not (is_whole_number(text) and len(text) <= 18):
            raise VariableError(f"{VARIABLE} must be a whole number of bytes, not {text[:40]!r}")
        return int(text)
    found = [_MOST]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE // _SHARE)
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of version 2, and of version 1
        with contextlib.suppress(OSError, ValueError):  # none, or "max"
            found.append(int((_GROUP / name).read_text("ascii")) // _SHARE)
    return min(bytes_ for bytes_ in found if bytes_ > 0)


def check_variable() -> None:
    """Raise ``VariableError`` if the variable is no number: for what would otherwise hear of that
    kernel by kernel."""
    _limit()


@functools.cache
def _pool() -> _Pool:
    """This process's. ``VariableError`` if the variable is no number."""
    return _Pool()


@functools.lru_cache(_SIZES)
def _makers(whole: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """What makes arrays of the pool's memory, in pieces of so many bytes."""
    pool = _pool()
    waiting = pool.queue(whole)
    # The finalizer of each is an attribute of its own: a function of C with all of its arguments.
    lease: Any = type("Memory", (ctypes.c_char * whole,), {"__slots__": ("__del__",)})

    def make(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        try:
            piece = waiting.pop()
        except IndexError:
            try:
                piece = pool.new(whole)
            except MemoryError:
                with contextlib.suppress(MemoryError):  # pieces are longer than arrays
                    return np.empty(shape, dtype)
                raise
        held = lease.from_address(piece.address)
        held.__del__ = functools.partial(waiting.append, piece)
        return np.ndarray(shape, dtype, held)

    return make


def large(size: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """What makes arrays of so many bytes, at least ``POOLED``, of these shapes and types, as
    ``empty`` does."""
    if not _PRIVATE:
        return np.empty
    unit = HUGE if size >= HUGE else POOLED
    step = max(unit, 1 << ((size - 1).bit_length() - 2))  # two lengths for each power of two
    whole = -(-size // step) * step
    if whole > _pool().most:  # it may wait if it is no longer than it has to be
        whole = -(-size // unit) * unit
    return _makers(whole)


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """As ``numpy.empty``. The memory of a large array begins on a page, and is used again when the
    array is garbage. ``MemoryError`` where there is not enough."""
    return maker(shape, dtype)()


def maker(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Callable[[], Array]:
    """What makes arrays as ``empty`` does, time and again."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    return functools.partial(np.empty if size < POOLED else large(size), shape, kind)


def release_memory() -> int:
    """Gives the memory of outputs that are no longer there back to the system, which waits to be
    used again; returns its bytes."""
    return _pool().release()
