"""C functions over a range, ``void f(int64_t begin, int64_t end, ...)``: ctypes' and Numba's."""

from __future__ import annotations

import ctypes
import faulthandler
import hashlib
import os
import platform
import re
import resource
import signal
import warnings
from _ctypes import CFuncPtr, _Pointer
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tcl.block_tuning.candidates import Block, LaunchShape, default_chunks
from tcl.block_tuning.target import LaunchTarget
from tcl.codegen.cpu.run.chunked import ChunkedCall, Word, word_of
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import ArgumentError
from tcl.common.number_format import duration, plural
from tcl.common.shown import kind_of, shown
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.cores import Others
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.harness import Run, by_clock
from tcl.tuner.measure.machine_lock import locked
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.measure.verdict import Verdict

Function = CFuncPtr
"""Of all functions that ctypes knows."""


class HostArrays:
    """Arrays of the host's memory."""

    def is_array(self, value: object) -> bool:
        return isinstance(value, np.ndarray)

    def interface(self, array: Array) -> dict[str, Any]:
        return array.__array_interface__

    def writable(self, array: Array) -> bool:
        return bool(array.flags.writeable)

    def copy(self, array: Array) -> Array:
        return array.copy()

    def restore(self, array: Array, copy: Array) -> None:
        np.copyto(array, copy)

    def fill(self, array: Array, value: float) -> None:
        array.fill(value)

    def values(self, array: Array) -> Array:
        return array


class CFunction(LaunchTarget):
    """A C function that is called on a range in chunks, by so many threads."""

    settings = MeasureSettings(samples=5, budget=0.05)
    """The race of the fastest decides."""

    def __init__(self, kernel: Any, total: Block, threads: int, source: str | None) -> None:
        function = kernel if isinstance(kernel, Function) else kernel.ctypes
        self.arrays = HostArrays()
        self._kernel = kernel  # lives as long as it is called
        self._total = total[0]
        self._threads = threads
        self._address = ctypes.cast(function, ctypes.c_void_p).value or 0
        self._types: Sequence[Any] | None = function.argtypes
        self._given = source
        self.name = str(
            getattr(kernel, "__name__", None) or getattr(function, "__name__", None) or "function"
        )
        if len(total) > 1:
            raise ArgumentError(
                f"a C function runs over one range, and global_size has {len(total)} sizes; "
                "pass their product, and split its numbers in the function"
            )
        result = function.restype
        if isinstance(result, type) and issubclass(result, ctypes.Structure | ctypes.Union):
            raise ArgumentError(f"{self.name} returns {result.__name__}, but must return nothing")
        if self._types is not None and len(self._types) < 2:
            raise ArgumentError(
                f"{self.name} takes {plural(len(self._types), 'argument')}, but must begin with "
                "two whole numbers: the begin and the end of its part of the range"
            )
        self._bound = _c_integer(self._types[0]) if self._types else Word("i64")
        if self._bound is None or (self._types and _c_integer(self._types[1]) != self._bound):
            raise ArgumentError(
                f"{self.name} must begin with two whole numbers of one type, the begin and the "
                f"end of its part of the range, not {_name(self._types, 0)} and "
                f"{_name(self._types, 1)}"
            )
        if self._total >= 1 << (int(self._bound.llvm[1:]) - (not self._bound.unsigned)):
            raise ArgumentError(
                f"global_size {self._total} does not fit in {_name(self._types, 0)}"
            )

    @property
    def source(self) -> str | None:
        """What the user says, else the text that Numba compiled, else the file that holds the
        function: its bytes, and where in it the function lies. None for others, such as code that
        another compiler made in memory."""
        if self._given is not None:
            return self._given
        if hasattr(self._kernel, "inspect_llvm"):
            # Numba counts the functions of a process in their names.
            return re.sub(r"(?<=B)\d*v\d+(?=B)", "v", str(self._kernel.inspect_llvm()))
        return _in_file(self._address)

    @property
    def device(self) -> str:
        return device_identity(replace(host_cpu(), threads=self._threads))

    def blocks(self) -> tuple[Block, ...]:
        return default_chunks(self._total, self._threads)

    def why_not_asked(self, candidate: LaunchShape) -> str | None:
        if candidate.block[0] > self._total:
            return f"a chunk of {candidate.block[0]} is longer than the range of {self._total}"
        return None

    def launched(self, candidate: LaunchShape) -> tuple[Block, int]:
        return (-(-self._total // candidate.block[0]),), 0

    def check(self, arguments: Sequence[Any]) -> None:
        self._as_words(arguments)

    def bound(self, candidate: LaunchShape, arguments: Sequence[Any]) -> Run:
        words, call = self._as_words(arguments)
        return partial(call, self._total, candidate.block[0], words)

    def empty_launch(self) -> Callable[[], object]:
        return partial(ChunkedCall(self._address, Word("i64"), (), self._threads), 0, 1, ())

    def trial(self, run: Run, limit: float) -> tuple[Verdict, str] | None:
        return trial(run, limit)

    def seconds(self, run: Run, calls: int) -> float:
        return by_clock()(run, calls)

    def alone(self) -> AbstractContextManager[None]:
        return locked("tcl-measuring")

    def others(self) -> Others:
        return Others()

    def _as_words(self, arguments: Sequence[Any]) -> tuple[tuple[int, ...], ChunkedCall]:
        """The arguments as words, and a call that takes such."""
        types = None if self._types is None else self._types[2:]
        if types is not None and len(types) != len(arguments):
            raise ArgumentError(
                f"{self.name} takes {plural(len(types), 'argument')} after its range, not "
                f"{len(arguments)}"
            )
        found = []
        for k, value in enumerate(arguments):
            one = (Word("ptr"), value.ctypes.data) if isinstance(value, np.ndarray) else None
            if types is None:
                one = one or _undeclared(value)
            elif _is_pointer(types[k]):
                one = one if _points_to(types[k], value) else None
            else:
                one = None if one else _declared(types[k], value)
            if one is None:
                declared = f", which is declared as {_name(types, k)}" if types else ""
                hint = "" if types else "; declare the function's argtypes"
                raise ArgumentError(
                    f"argument {k} of {self.name} cannot be {_described(value)}{declared}{hint}"
                )
            found.append(one)
        assert self._bound is not None
        call = ChunkedCall(self._address, self._bound, [t for t, _ in found], self._threads)
        return tuple(word for _, word in found), call


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return shown(value) if isinstance(value, int | float | str | None) else kind_of(value)


def _undeclared(value: object) -> tuple[Word, int] | None:
    """A number whose type says by itself what C gets: a Python float may be two things."""
    if isinstance(value, np.generic):
        type_: Any = value.dtype
        return _declared(np.ctypeslib.as_ctypes_type(type_), value.item())
    if isinstance(value, int) and not isinstance(value, bool):
        return _declared(ctypes.c_int64, value)
    return None


def _declared(type_: Any, value: object) -> tuple[Word, int] | None:
    """A number as C's type; None if it cannot be that."""
    if isinstance(value, np.generic):
        value = value.item()
    if type_ is ctypes.c_void_p:
        return (Word("ptr"), value) if isinstance(value, int) and value >= 0 else None
    if type_ in (ctypes.c_float, ctypes.c_double):
        if not isinstance(value, int | float):
            return None
        return Word("float" if type_ is ctypes.c_float else "double"), word_of(type_(value))
    word = _c_integer(type_)
    if word is None or not isinstance(value, int) or type_(value).value != value:
        return None
    return word, word_of(type_(value))


def _c_integer(type_: Any) -> Word | None:
    """A whole number of C's; None for other types."""
    code = getattr(type_, "_type_", None)
    if not isinstance(code, str) or code not in "bBhHiIlLqQ?":
        return None
    return Word(f"i{8 * ctypes.sizeof(type_)}", code.isupper() or code == "?")


def _is_pointer(type_: Any) -> bool:
    return isinstance(type_, type) and (
        issubclass(type_, _Pointer | ctypes.c_void_p) or hasattr(type_, "_ndim_")
    )


def _points_to(type_: Any, value: object) -> bool:
    """Whether an array is what a parameter declares: any for ``void*``."""
    if not isinstance(value, np.ndarray):
        return False
    if hasattr(type_, "_ndim_"):  # numpy.ctypeslib.ndpointer
        try:
            type_.from_param(value)
        except TypeError:
            return False
        return True
    if issubclass(type_, ctypes.c_void_p):
        return True
    try:
        return bool(np.dtype(type_._type_) == value.dtype)
    except TypeError:  # a pointer to what NumPy does not know
        return True


def _name(types: Sequence[Any] | None, position: int) -> str:
    return "int64" if types is None else getattr(types[position], "__name__", "?")


class _DlInfo(ctypes.Structure):
    """``Dl_info`` of the C library."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _in_file(address: int) -> str | None:
    """What tells the function at an address from others: the bytes of its shared library, and where
    it lies in there. None if it is in none."""
    try:
        look = ctypes.CDLL(None).dladdr
    except (OSError, AttributeError, TypeError):  # not on this system
        return None
    look.argtypes = (ctypes.c_void_p, ctypes.POINTER(_DlInfo))
    place = _DlInfo()
    if not look(address, ctypes.byref(place)) or not place.file:
        return None
    try:
        content = Path(place.file.decode()).read_bytes()
    except (OSError, UnicodeDecodeError):
        return None
    digest = hashlib.sha256(content).hexdigest()
    return f"{digest} at {address - (place.base or 0)} on {platform.machine()}"


_DONE = 91
"""The exit code of a copy whose run has ended: a function may end its process with another one."""


def trial(run: Run, limit: float) -> tuple[Verdict, str] | None:
    """Run once in a copy of this process: how that failed, and what happened, in a sentence; None
    if nothing did within ``limit`` seconds, or if no copy can be made.

    What the copy writes stays in it, but for memory that processes share.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        with warnings.catch_warnings():
            # The copy runs the function and ends; it waits for no thread that it does not have.
            warnings.simplefilter("ignore")
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_CORE, (0, most))
                _run_and_exit(run, limit)
    except OSError:  # no memory for one
        return None
    status = None
    try:
        status = os.waitpid(child, 0)[1]
    except ChildProcessError:  # somebody here waits for all children
        return None
    finally:
        if status is None:
            _interrupted(child)
    code = os.waitstatus_to_exitcode(status)
    if code == _DONE:
        return None
    if code == -signal.SIGALRM:
        return Verdict.TIMEOUT, f"it did not end within {duration(limit)}"
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return Verdict.RUNTIME, f"it crashed its process {how}"


def _run_and_exit(run: Run, limit: float) -> None:
    """In the copy. An alarm ends it in time, even if nobody is left who waits for it."""
    try:
        faulthandler.disable()
        for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, limit)
        run()
    finally:  # an exception is raised again by the run that is measured
        os._exit(_DONE)


def _interrupted(child: int) -> None:
    """After Ctrl+C."""
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except OSError:  # it has ended, and somebody else was told
        pass
