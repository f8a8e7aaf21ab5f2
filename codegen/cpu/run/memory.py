"""Memory of our own: on lines of the cache, on huge pages where it is large, and used again.

A page that no process had before is cleared by the system when it is first touched, which takes
longer than most kernels take to fill it. So large pieces, which the C library would give back to
the system at once, come from a pool: when an array is garbage, with all views of it, its memory
waits for the next array of about the same size. Kept is what ``VARIABLE`` allows, the latest pieces
first; the system may take the pages of waiting memory whenever it needs them (``MADV_FREE``), and
``release_memory`` gives all of it back.

Nothing is shared with processes that are forked: theirs are copies. Nothing is locked: pieces
come and go by single operations on lists, which Python does whole, as a piece may come back in the
middle of anything, when the garbage collector runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import mmap
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tcl.codegen.common.errors import ArgumentError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

POOLED = 1 << 18
"""Bytes from which on memory comes from the pool: shorter pieces the C library keeps itself."""
HUGE = 1 << 21
"""Bytes of a huge page."""
VARIABLE = "TCL_KEPT_MEMORY"
"""The environment variable with the most bytes that wait to be used again."""
_MOST = 1 << 30
_SHARE = 8
"""Kept is no more than so many bytes, and this part of the machine's memory, unless the variable
says something else."""

_PRIVATE: int = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
_FREE: int | None = getattr(mmap, "MADV_FREE", None)


class _Piece:
    """A mapping of whole pages; of whole huge pages where it is large."""

    __slots__ = ("_begin", "_memory", "address", "size")

    def __init__(self, size: int) -> None:
        """``MemoryError`` where the system has no more."""
        self.size = size
        try:
            self._memory = mmap.mmap(-1, size + (HUGE if size >= HUGE else 0), flags=_PRIVATE)
        except OSError:
            raise MemoryError(f"the system has no {size} bytes of memory left") from None
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._begin = -at % HUGE if size >= HUGE else 0
        self.address = at + self._begin
        if size >= HUGE:
            self._advise(_HUGE_PAGES)

    def nobody_needs(self) -> None:
        """The system may take its pages, until somebody writes to them. Of small pages, telling it
        takes as long as clearing them would."""
        self._advise(_FREE)

    def _advise(self, advice: int | None) -> None:
        if advice is not None:
            with contextlib.suppress(OSError):  # a system that was built without it
                self._memory.madvise(advice, self._begin, self.size)


class _Pool:
    """Pieces that nobody has, by size, those that came back last at the end of a list."""

    __slots__ = ("held", "most", "waiting")

    def __init__(self) -> None:
        self.most = _limit()
        self.held = 0
        """Bytes. Threads that change it at once may get it wrong, until it is counted again."""
        self.waiting: dict[int, list[_Piece]] = {}

    def new(self, size: int) -> _Piece:
        """A piece that was not in the pool. ``MemoryError`` where the system has no more."""
        self.count()
        try:
            return _Piece(size)
        except MemoryError:
            if not self.release():
                raise
        return _Piece(size)

    def take_back(self, piece: _Piece) -> None:
        """Nobody has it any longer."""
        if self.held + piece.size > self.most and not self.make_room(piece.size):
            return
        if piece.size >= HUGE:
            piece.nobody_needs()
        self.waiting[piece.size].append(piece)
        self.held += piece.size

    def make_room(self, wanted: int) -> bool:
        """Give up pieces, the oldest of a size first, until there is room for so many bytes."""
        self.count()
        for size, pieces in list(self.waiting.items()):
            while wanted <= self.most < self.held + wanted and _popped(pieces, 0) is not None:
                self.held -= size
        return self.held + wanted <= self.most

    def count(self) -> None:
        """Count the bytes that are held."""
        self.held = sum(size * len(pieces) for size, pieces in list(self.waiting.items()))

    def release(self) -> int:
        """Give up all pieces; their bytes."""
        given = 0
        for size, pieces in list(self.waiting.items()):
            while _popped(pieces) is not None:
                given += size
        self.count()
        return given


def _popped(pieces: list[_Piece], position: int = -1) -> _Piece | None:
    try:
        return pieces.pop(position)
    except IndexError:
        return None


def _limit() -> int:
    """The most bytes that wait to be used again."""
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise ArgumentError(f"{VARIABLE} must be a whole number of bytes, not {text[:40]!r}")
        return int(text)
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    except (AttributeError, OSError, ValueError):
        memory = 0
    return min(_MOST, memory // _SHARE) if memory > 0 else _MOST


def check_variable() -> None:
    """Raise ``ArgumentError`` if the variable is no number: for what would otherwise hear of that
    kernel by kernel."""
    _limit()


@functools.cache
def _pool() -> _Pool:
    """This process's. ``ArgumentError`` if the variable is no number."""
    return _Pool()


@functools.cache
def _makers(size: int) -> Callable[[tuple[int, ...], np.dtype[Any]], Array]:
    """What makes arrays of so many bytes of the pool's memory."""
    unit = HUGE if size >= HUGE else POOLED
    whole = -(-size // unit) * unit
    pool = _pool()
    waiting = pool.waiting.setdefault(whole, [])

    def returned(lease: Any) -> None:
        """An array is garbage, with all of its views."""
        pool.take_back(lease.piece)

    members = {"__slots__": ("piece",), "__del__": returned}
    lease: Any = type("Memory", (ctypes.c_char * size,), members)

    def make(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        try:
            piece = waiting.pop()
            pool.held -= whole
        except IndexError:
            piece = pool.new(whole)
        held = lease.from_address(piece.address)
        held.piece = piece
        return np.ndarray(shape, dtype, held)

    return make


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """As ``numpy.empty``. The memory of a large array begins on a page, and is used again when the
    array is garbage. ``MemoryError`` where there is not enough."""
    return maker(shape, dtype)()


def maker(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Callable[[], Array]:
    """What makes arrays as ``empty`` does, time and again."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < POOLED or not _PRIVATE:
        return functools.partial(np.empty, shape, kind)
    return functools.partial(_makers(size), shape, kind)


def release_memory() -> int:
    """Gives the memory of outputs that are no longer there back to the system, which waits to be
    used again; returns its bytes."""
    return _pool().release()
