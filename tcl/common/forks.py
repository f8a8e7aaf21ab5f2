"""What a forked child can use, whatever other threads of its parent were doing."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from tcl.common.interrupts import deferred

_locks: WeakSet[Any] = WeakSet()
_llvm: list[Any] = []


_whole = threading.RLock()


@contextmanager
def whole() -> Iterator[None]:
    """A piece of work that neither a signal's handler nor a fork of another thread comes into: the
    import of modules, which would stay half made in the child, and work in LLVM. Keep it short."""
    with _whole, deferred():
        yield


def free_lock() -> threading.Lock:
    """A lock that is free in a forked child: what holds it is a thread of the parent. It must
    protect nothing that is left half done between two steps of Python."""
    made = threading.Lock()
    _locks.add(made)
    return made


def reentrant_lock() -> Any:
    """Likewise, of the kind that its thread may take again."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _before() -> None:
    """Wait until no thread is in what has to be whole, or in LLVM for somebody else (Numba): its
    lock, once taken by a thread that the child does not have, would never be free there."""
    _whole.acquire()
    ffi = sys.modules.get("llvmlite.binding.ffi")
    held = getattr(getattr(ffi, "lib", None), "_lock", None)
    if held is not None:
        held.__enter__()
        _llvm.append(held)


def _after() -> None:
    if _llvm:
        _llvm.pop().__exit__(None, None, None)
    _whole.release()


def _in_child() -> None:
    for each in list(_locks):
        each._at_fork_reinit()
    _after()


# Handlers run in the reverse order of their registration. Modules whose own handlers take locks are
# imported above, before ours are registered: a fork that waits for what is whole holds none of
# their locks, which that may need.
os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
