"""The threads that kernels run on, beside the one that calls: ``pool.c`` in this process.

One pool per process, of native threads that never touch Python. A process that was forked has a
pool without threads in the same place, whatever its parent was doing. Where there is no pool, every
call runs on its own thread alone.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tcl.codegen.cpu.abi import LINE
from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.thread_count import MOST
from tcl.common.errors import CompileError


@dataclass(frozen=True, slots=True)
class Team:
    """The pool of this process."""

    run: Callable[[int], int]
    """Takes the address of a call's record; 1 if a thread's check failed. Without the GIL. On one
    thread if another call has the pool, so that nothing is waited for and no core has two of our
    threads to run, for a while after workers had too little of their cores, and as long as a short
    call with this record is faster so."""
    pool: int
    """Its address."""
    together: Callable[[bool], object]
    """Whether calls run on all of their threads however little of their cores these have, and
    however long they take: for tests."""


@dataclass(slots=True)
class _Process:
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: bool = False
    team: Team | None = None
    reset: Callable[[], object] = lambda: None


_process = _Process()


def team() -> Team | None:
    """The pool, made when first asked for; None where there can be none."""
    if not _process.made:
        with _process.lock:
            if not _process.made:
                _process.team = _make()
                _process.made = True
    return _process.team


def _make() -> Team | None:
    try:
        loaded = load("pool", (_RUN, _RESET, _BYTES, _TOGETHER))
    except CompileError:  # no such machine, or its C library lacks something
        return None
    word, address = ctypes.c_int64, ctypes.c_void_p
    size = ctypes.CFUNCTYPE(word, word)(loaded.address(_BYTES))(MOST)
    memory = (ctypes.c_char * (size + LINE))()
    pool = -(-ctypes.addressof(memory) // LINE) * LINE
    reset = ctypes.CFUNCTYPE(None, address, word)(loaded.address(_RESET))
    run = ctypes.CFUNCTYPE(ctypes.c_int32, address)(loaded.address(_RUN))
    together = ctypes.CFUNCTYPE(None, address, word)(loaded.address(_TOGETHER))
    _process.reset = functools.partial(reset, pool, MOST)
    _process.reset()
    for thing in (loaded, memory):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return Team(run, pool, functools.partial(together, pool))


_RUN, _RESET = "tcl_pool_run", "tcl_pool_reset"
_BYTES, _TOGETHER = "tcl_pool_bytes", "tcl_pool_together"


def _after_fork() -> None:
    """In the child: the threads are not there, and nobody will let go of a lock."""
    _process.lock = threading.Lock()
    _process.reset()


os.register_at_fork(after_in_child=_after_fork)
