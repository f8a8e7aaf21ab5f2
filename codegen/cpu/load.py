"""Object code → a function of this process."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

from tcl.codegen.cpu.emit import ENTRY
from tcl.codegen.errors import CompileError

Function = Callable[[Any, Any], int]
"""Takes the addresses of the array of addresses and of the error record. Without the GIL."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_numbers = itertools.count()
_lock = threading.Lock()


class Loaded:
    """A kernel's code. It stays in memory as long as this object, and no longer."""

    def __init__(self, object_code: bytes) -> None:
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(object_code)
        builder.export_symbol(ENTRY).add_current_process()
        with _lock:  # LLVM's session is one for the process
            try:
                self._library = builder.link(_session(), f"tcl_{next(_numbers)}")
            except RuntimeError as error:
                raise CompileError(f"the kernel could not be loaded: {error}") from None
        self.call: Function = _PROTOTYPE(self._library[ENTRY])


@functools.lru_cache(maxsize=1)
def _session() -> Any:
    import llvmlite.binding as llvm

    from tcl.codegen.cpu.compile import target_machine
    from tcl.codegen.device import host_cpu

    # The session takes its machine over, so it cannot have the one that compiles.
    machine = target_machine.__wrapped__(host_cpu())
    return llvm.create_lljit_compiler(machine, use_jit_link=False)
