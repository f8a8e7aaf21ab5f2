"""Running loaded code on memory: all that a call does besides the kernel."""

from __future__ import annotations

import _thread
import ctypes
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcl.codegen.cpu import abi
from tcl.codegen.cpu.object_code.kernel_code import AtSizes, KernelCode, Scratch
from tcl.codegen.cpu.object_code.load import Function, LoadedCode
from tcl.codegen.cpu.run.memory import empty
from tcl.common.forks import whole
from tcl.common.interrupts import deferred, interruptible

if TYPE_CHECKING:
    from tcl.grammar.ranges.sized import SizedDef

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_NOTHING: _Array = np.empty(0, np.uint8)

_RECORD = abi.LINE // 8
"""Words from one thread's error record to the next one's."""


class Frame:
    """What one call writes its arguments to. Made once and used again, as making it costs more
    than a small kernel."""

    __slots__ = ("_call", "_errors", "_free", "_own", "_scratch", "_team", "at", "held", "pointers")

    def __init__(self, kernel: Launcher) -> None:
        threads = kernel.threads
        words = kernel.arguments + len(kernel.scratch) + len(kernel.sizes)
        self.pointers = memory = (ctypes.c_uint64 * words)()
        """The addresses of the arguments, then of the scratch memory; then the sizes that vary."""
        self.held: object = None
        """Memory that has to live as long, of arguments that are the same in all its calls."""
        self._free = kernel.arguments
        """The place behind the arguments."""
        self._own = [threads if private else 0 for _, _, private in kernel.scratch]
        """How many threads have copies of their own of each scratch array; 0 if they share it."""
        self._scratch = [_NOTHING] * len(kernel.scratch)
        self._errors = (ctypes.c_int64 * (_RECORD * threads))()
        size = abi.team_bytes(kernel.regions)
        team = (ctypes.c_char * (size + abi.LINE))()
        self._team = team
        record = (ctypes.c_uint64 * abi.WORDS)()
        record[abi.KERNEL], record[abi.POOL] = kernel.entry, kernel.pool
        record[abi.TENSORS] = ctypes.addressof(memory)
        record[abi.ERROR] = ctypes.addressof(self._errors)
        record[abi.TEAM] = -(-ctypes.addressof(team) // abi.LINE) * abi.LINE
        record[abi.THREADS], record[abi.CLEAR] = threads, size
        record[abi.VARIES] = bool(kernel.sizes)
        self._call = record
        self.at = ctypes.addressof(record)
        """The address of the call's record."""
        self.fit(kernel.sizes, lengths(kernel.scratch))

    def fit(self, sizes: Sequence[int], scratch: Sequence[int]) -> None:
        """Make it one for calls of the same code with these sizes and scratch arrays of so many
        bytes. Nothing is written to new scratch memory here: pages are taken where the thread runs
        that first writes to them."""
        place = self._free
        for position, size in enumerate(scratch):
            own = self._own[position]
            needed = abi.movable(own * abi.apart(size) if own else size)
            if needed > self._scratch[position].nbytes:
                self._scratch[position] = array = empty((needed,), np.uint8)
                self.pointers[place] = -(-address_of(array) // abi.LINE) * abi.LINE
            place += 1
        for size in sizes:
            self.pointers[place] = size
            place += 1

    def error(self) -> tuple[int, int]:
        """Site and value of the failed check that comes first in the program: threads that need not
        wait for each other may fail in different statements."""
        errors = self._errors
        failed = [k for k in range(0, len(errors), _RECORD) if errors[k]]
        first = min(failed, key=lambda k: errors[k + 1])
        return errors[first + 1], errors[first + 2]


def lengths(scratch: Sequence[Scratch]) -> list[int]:
    """The bytes of each scratch array, of one thread's copy where they have their own."""
    return [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype, _ in scratch]


class Launcher:
    """Loaded code with frames for its calls. Safe to use from several threads at once.

    Frames lie in a list, from which a call takes one for as long as it runs: ``pop`` and
    ``append`` are atomic, and a signal handler that calls the kernel again gets another one.
    """

    __slots__ = (
        *("_loaded", "_names", "_shared", "_sized", "arguments", "call", "entry", "frames", "long"),
        *("pool", "regions", "scratch", "sites", "sizes", "threads"),
    )

    def __init__(
        self,
        code: KernelCode,
        names: Sequence[str],
        loaded: LoadedCode | None = None,
        sized: SizedDef | None = None,
    ) -> None:
        """``names`` are those of the arguments; ``sized`` is the def, which errors show. Calls
        run on as many threads as ``code`` says, if there are regions that they can share, and a
        pool. Raises ``CompileError`` for code that cannot be loaded."""
        self._loaded = loaded = loaded or LoadedCode(code.object_code)  # lives as long as this
        self.sites = code.sites
        """The checks, as errors number them."""
        self._names = tuple(names)
        self._sized = sized
        self.arguments = len(names)
        self.scratch = code.scratch
        self.sizes: tuple[int, ...] = ()
        """Those that vary, in the order of their names."""
        self.regions = code.regions
        self.threads = 1
        """That a call runs on, unless another call has the pool."""
        self.entry = loaded.address(abi.ENTRY)
        self.pool = 0
        self.call = loaded.alone
        self.long: bool | None = None
        """Whether a call takes so long that it has to hear of Ctrl+C; None before the first."""
        self.frames: list[Frame] = []
        self._shared = self.frames
        """Those of calls that may be the only ones with their sizes."""
        if code.threads > 1 and code.regions:
            with whole():
                from tcl.codegen.cpu.runtime.thread_pool import team

            found = team()
            if found is not None:
                self.call, self.pool, self.threads = found.run, found.pool, code.threads

    def at(self, found: AtSizes) -> Launcher:
        """The same code at one of the sizes that it is for; nothing is loaded again. Single calls
        share frames with those at other sizes."""
        made = Launcher.__new__(Launcher)
        for name in Launcher.__slots__:
            setattr(made, name, getattr(self, name))
        made.sizes, made.scratch, made.sites = found
        made.frames = []
        return made

    def frame(self) -> Frame:
        """A frame to fill; to be put back into ``frames`` after a call that went well."""
        try:
            return self.frames.pop()
        except IndexError:
            return Frame(self)

    def failed(self, frame: Frame) -> IndexError:
        """The error of a call that returned 1; its frame is not used again."""
        return self.failure(*frame.error())

    def failure(self, number: int, value: int) -> IndexError:
        """The error of a failed check, by the number of its site and the value."""
        from tcl.codegen.common.sites import Site

        s = self.sites[number]
        site = Site(self._names[s.tensor], s.axis, s.first, s.extent, s.unsigned)
        return site.error(value, self._sized)

    def __call__(self, arrays: Sequence[_Array]) -> None:
        """Run on the arguments, of which nothing is checked but data-dependent subscripts
        (``IndexError``)."""
        addresses = [address_of(array) for array in arrays]
        failed = self.run(addresses, self.sizes, lengths(self.scratch) if self.sizes else ())
        if failed is not None:
            raise self.failed(failed)

    def run(
        self, addresses: Sequence[int], sizes: Sequence[int], scratch: Sequence[int]
    ) -> Frame | None:
        """Run on arrays that lie there, at any of the sizes that the code is for, with scratch
        arrays of so many bytes. None, or the frame of a call that failed: the launcher at these
        sizes tells its error."""
        try:
            frame = self._shared.pop()
        except IndexError:
            frame = Frame(self)
        if sizes:
            frame.fit(sizes, scratch)
        for position, address in enumerate(addresses):
            frame.pointers[position] = address
        begun = time.perf_counter()
        failed = self.call(frame.at) if self.long is False else self.attentive(frame.at)
        self.long = time.perf_counter() - begun > LONG
        if failed:
            return frame
        self._shared.append(frame)
        return None

    @property
    def best_call(self) -> Function:
        """What runs a record: ``call``, or ``attentive`` where calls are long."""
        return self.attentive if self.long else self.call

    def attentive(self, at: int) -> int:
        """``call``, which a signal handler's exception ends soon; outputs are then undefined.

        Python calls handlers in the main thread alone, and not while that runs a kernel: so another
        thread runs it, and this one waits, which handlers can interrupt. Then it asks the kernel
        to end, whose threads look for that between pieces of their work.
        """
        if not interruptible():
            return self.call(at)
        results: list[int] = []
        done = _thread.allocate_lock()
        done.acquire()
        begun = False

        def run() -> None:
            try:
                results.append(self.call(at))
            finally:
                done.release()

        try:
            with deferred():
                _thread.start_new_thread(run, ())
                begun = True
            while not done.acquire(True, _LOOK):  # handlers run between two of them
                pass
        except BaseException as error:
            with deferred():  # until the kernel has ended, its memory has to be there
                if begun and not results:  # else it has ended, and ``done`` may be ours already
                    _stop(at)
                    done.acquire()
            if not begun and isinstance(error, RuntimeError):  # no more threads, says the system
                return self.call(at)
            raise
        return results[0]


_LOOK = 0.1
"""Seconds after which a thread that waits looks for signals: the system may have given them to a
thread that they do not wake, as it does when a process that was stopped goes on."""
LONG = 0.05
"""Seconds after which one would want Ctrl+C to be heard: a thread for each such call costs less
than a thousandth of it."""


def _stop(at: int) -> None:
    """Ask the call of this record to end."""
    record = (ctypes.c_uint64 * abi.WORDS).from_address(at)
    ctypes.c_uint64.from_address(record[abi.ERROR] + 8 * abi.STOP).value = 1


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
