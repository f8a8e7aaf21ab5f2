"""Running loaded code on memory: all that a call does besides the kernel."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.cpu.load import Loaded

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Frame:
    """What one call writes its arguments to. Made once and used again, as making it costs more
    than a small kernel."""

    __slots__ = ("_error", "_scratch", "error", "error_at", "pointers", "pointers_at")

    def __init__(self, arguments: int, scratch: Sequence[tuple[tuple[int, ...], str]]) -> None:
        self._scratch = [np.empty(shape, dtype) for shape, dtype in scratch]
        memory = (ctypes.c_uint64 * (arguments + len(scratch)))()
        self.pointers = memory
        """The addresses of the arguments, then of the scratch memory."""
        for position, array in enumerate(self._scratch):
            memory[arguments + position] = address_of(array)
        self.error = (ctypes.c_int64 * 3)()
        """1 if a check failed, its site, the value."""
        self.pointers_at = ctypes.addressof(memory)
        self.error_at = ctypes.addressof(self.error)


class Launcher:
    """Loaded code with frames for its calls. Safe to use from several threads at once.

    Frames lie in a list, from which a call takes one for as long as it runs: ``pop`` and
    ``append`` are atomic, and a signal handler that calls the kernel again gets another one.
    """

    __slots__ = ("_arguments", "_loaded", "_message", "_scratch", "call", "frames")

    def __init__(
        self,
        loaded: Loaded,
        arguments: int,
        scratch: Sequence[tuple[tuple[int, ...], str]],
        message: Callable[[int, int], str],
    ) -> None:
        """``scratch`` holds (shape, dtype's name) of each; ``message(site, value)`` is the
        sentence for a subscript out of range."""
        self._loaded = loaded  # the code lives as long as this
        self._arguments = arguments
        self._scratch = tuple(scratch)
        self._message = message
        self.call = loaded.call
        self.frames: list[Frame] = []

    def frame(self) -> Frame:
        """A frame to fill; to be put back into ``frames`` after a call that went well."""
        try:
            return self.frames.pop()
        except IndexError:
            return Frame(self._arguments, self._scratch)

    def failed(self, frame: Frame) -> IndexError:
        """The error of a call that returned 1; its frame is not used again."""
        return IndexError(self._message(frame.error[1], frame.error[2]))

    def __call__(self, arrays: Sequence[_Array]) -> None:
        """Run on the arguments, of which nothing is checked but data-dependent subscripts
        (``IndexError``)."""
        frame = self.frame()
        for position, array in enumerate(arrays):
            frame.pointers[position] = address_of(array)
        if self.call(frame.pointers_at, frame.error_at):
            raise self.failed(frame)
        self.frames.append(frame)


def _public(array: _Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


words = ctypes.cast(ctypes.c_void_p(8), ctypes.POINTER(ctypes.c_uint64))
"""This process's memory: ``words[k]`` is the word at address ``8 * (k + 1)``; ctypes lets no
pointer start at 0."""

DATA = object.__basicsize__ // 8 - 1
"""``words[(id(array) >> 3) + DATA]`` is the address of an array's first element. It lies right
after what all objects begin with, as NumPy's C API says of ``PyArrayObject``; reading it takes a
tenth of the time that NumPy's own ways from Python take."""


def _direct(array: _Array) -> int:
    address: int = words[(id(array) >> 3) + DATA]
    return address


def _layout_is_known() -> bool:
    """Whether arrays of this Python are laid out so. Tried on arrays that are not alike."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False  # an id is not an address, or a pointer not a word
    base = np.zeros((3, 4), np.int32)
    return all(_direct(a) == _public(a) for a in (base, base[1:, 2:], base.T, np.zeros(())))


DIRECT = _layout_is_known()
"""Whether ``words[(id(array) >> 3) + DATA]`` is an array's address."""

address_of: Callable[[_Array], int] = _direct if DIRECT else _public
"""The address of an array's first element."""
