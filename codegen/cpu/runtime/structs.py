"""Variables of the runtime's C that Python fills. A test compares them with the C."""

from __future__ import annotations

import ctypes
from typing import Any

from tcl.codegen.cpu.object_code.load import LoadedCode


def _words(*names: str) -> tuple[tuple[str, type[ctypes.c_int64]], ...]:
    """Fields of 64 bits: numbers, and addresses."""
    return tuple((name, ctypes.c_int64) for name in names)


class EntryStruct(ctypes.Structure):
    """``struct entry`` of ``entry.c``."""

    _fields_ = _words(
        *("call", "passed", "places", "bytes", "head", "head_bytes", "moved", "moved_count"),
        *("errors", "tensors", "threads"),
    )


class PythonStruct(ctypes.Structure):
    """``struct python`` of ``arrays.c``."""

    _fields_ = _words("save_thread", "restore_thread", "as_pointer", "integer", "items")


class TorchStruct(ctypes.Structure):
    """``struct torch`` of ``arrays.c``."""

    _fields_ = _words(
        *("dim", "dtype", "sizes", "strides", "data"),
        *("any_modes", "key_included", "tracing_state", "key", "keys"),
    )


class OperatorStruct(ctypes.Structure):
    """``struct operator`` of ``torch.c``."""

    _fields_ = _words(
        *("dim", "dtype", "sizes", "strides", "data", "empty_strided", "delete", "check"),
        *("inputs", "outputs", "input_count", "output_count", "key", "words", "varying", "size"),
        *("largest", "multiple", "missed", "table", "kinds"),
    )


class HandlerStruct(ctypes.Structure):
    """``struct handler`` of ``xla.c``."""

    _fields_ = _words("entry", "major", "minor", "arguments", "results", "buffers", "messages")


def address(function: Any) -> int:
    """Where a function of ctypes lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def fill(code: LoadedCode, symbol: str, value: ctypes.Structure) -> None:
    """Set the variable of loaded code with this name."""
    ctypes.memmove(code.address(symbol), ctypes.byref(value), ctypes.sizeof(value))
