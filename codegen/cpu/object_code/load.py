"""Object code → functions of this process; and code that is the same for all kernels, which is
compiled once on a machine, and kept."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from tcl.codegen.common.store import FolderStore
from tcl.codegen.cpu.abi import ALONE, ENTRY
from tcl.codegen.cpu.object_code.compile import new_session
from tcl.codegen.cpu.object_code.ingredients import versions
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.dataclass import dataclass
from tcl.common.errors import CompileError
from tcl.common.forks import whole

Function = Callable[[Any], int]
"""Takes the address of a call's record; 1 if a check failed. Without the GIL."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_PER_SESSION = 64
"""LLVM never frees what it notes about a library until its session ends (9 KB each), so sessions
are changed; one ends when the last of its kernels is gone."""


class LoadedCode:
    """Code in this process. It stays in memory as long as this object, and no longer."""

    def __init__(self, object_code: bytes, symbols: Sequence[str] = (ENTRY, ALONE)) -> None:
        with whole():  # as in compile_object; it takes about a millisecond
            self._load(object_code, symbols)

    def _load(self, object_code: bytes, symbols: Sequence[str]) -> None:
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        with _sessions.lock:
            self._session, name = _sessions.next()
            try:
                self._library = builder.link(self._session, name)
            except RuntimeError as error:
                raise CompileError(f"the kernel could not be loaded: {error}") from None

    def address(self, symbol: str) -> int:
        """Where a function lies."""
        found: int = self._library[symbol]
        return found

    @property
    def alone(self) -> Function:
        """A kernel on the calling thread."""
        found: Function = _PROTOTYPE(self.address(ALONE))
        return found


@dataclass(slots=True)
class _Sessions:
    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    session: Any = None

    def next(self) -> tuple[Any, str]:
        """The session for one more library, and a name for it."""
        if self.count % _PER_SESSION == 0:
            self.session = new_session(host_cpu())
        self.count += 1
        return self.session, f"tcl_{self.count}"


_sessions = _Sessions()


def _after_fork() -> None:
    """In the child: another thread may have been loading when it was forked."""
    _sessions.lock = threading.Lock()
    _sessions.count += -_sessions.count % _PER_SESSION  # so that the next load begins a session


os.register_at_fork(after_in_child=_after_fork)


def load_kept(text: str, symbols: Sequence[str]) -> LoadedCode:
    """A module of LLVM IR in this process, with variables of its own; compiled if that was not
    kept. Raises ``CompileError`` if that, or loading it, fails."""
    device = host_cpu()
    made_of = repr((text, device.name, device.features, versions()))
    digest = hashlib.sha256(made_of.encode()).hexdigest()
    store = FolderStore()
    kept = store.get(digest, KernelCode)
    if kept is not None:
        try:
            return LoadedCode(kept.object_code, symbols)
        except CompileError:
            pass
    from tcl.codegen.cpu.object_code.compile import compile_object

    code = compile_object(text, device)
    loaded = LoadedCode(code, symbols)
    store.put(digest, KernelCode(code))
    return loaded
