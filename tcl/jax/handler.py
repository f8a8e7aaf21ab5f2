"""Kernels as XLA's foreign functions, which compiled programs call without Python.

The function that XLA calls is ``xla.c`` of the CPU's runtime, the same for all kernels: it is
loaded for each kernel anew, with a variable that says what the kernel's arguments have to be.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

import jax

from tcl.codegen.cpu.run.native import FAILED, NativeEntry
from tcl.codegen.cpu.runtime import structs
from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.runtime.structs import fill
from tcl.common.errors import CompileError
from tcl.grammar.syntax.types import ScalarType

HANDLER, _KERNEL = "tcl_handler_call", "tcl_handler"

_MAJOR = 0
"""Of the interface's versions whose structs are laid out as here."""

_TYPES = {
    "bool": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
    "uint16": 7,
    "uint32": 8,
    "uint64": 9,
    "float16": 10,
    "float32": 11,
    "float64": 12,
    "bfloat16": 16,
}
"""XLA's numbers of element types."""


class Handler:
    """A kernel as a foreign function of XLA. It stays in memory as long as this object."""

    def __init__(
        self,
        entry: NativeEntry,
        inputs: Sequence[tuple[ScalarType, tuple[int, ...]]],
        outputs: Sequence[tuple[ScalarType, tuple[int, ...]]],
    ) -> None:
        """``inputs`` and ``outputs``: element types and shapes of arrays in row-major order.
        Raises ``CompileError`` where jaxlib's interface is not known."""
        self._code = code = load("xla", (HANDLER, _KERNEL))
        self.address = code.address(HANDLER)
        """Of the function."""
        described: list[int] = []
        for type_, shape in (*inputs, *outputs):
            described += _TYPES[type_.name], type_.itemsize - 1, len(shape), *shape
        buffers = (ctypes.c_int64 * max(1, len(described)))(*described)
        texts = [
            _as_format(str(entry.error(FAILED, k, -1))) for k in range(len(entry.launcher.sites))
        ]
        messages = (ctypes.c_char_p * max(1, len(texts)))(*texts)
        major, minor = _version()
        fill(
            code,
            _KERNEL,
            structs.HandlerStruct(
                entry=entry.address,
                major=major,
                minor=minor,
                arguments=len(inputs),
                results=len(outputs),
                buffers=ctypes.addressof(buffers),
                messages=ctypes.addressof(messages),
            ),
        )
        self._used = (entry, buffers, messages)


def _as_format(message: str) -> bytes:
    """A failed check's message as a format whose one argument is the value; ``message`` is the one
    for -1, which is another number where values are unsigned."""
    value, kind = ("-1", "%lld") if message.startswith("index -1 ") else (str(2**64 - 1), "%llu")
    before, _, after = message.partition(value)
    return f"{before}{kind}{after}".encode()


def _version() -> tuple[int, int]:
    """Of jaxlib's interface, which takes no handler that does not name exactly it. A minor version
    changes nothing that is used here; structs of another size are refused by the handler."""
    text = Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text("utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    major, minor = (int(each[1]) if each else -1 for each in found)
    if major != _MAJOR:
        raise CompileError(
            f"this jaxlib's interface for foreign functions has version {major}.{minor}, but "
            f"only {_MAJOR}.x is supported; use another jaxlib"
        )
    return major, minor
