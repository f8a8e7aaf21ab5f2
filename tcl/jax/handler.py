"""Kernels as XLA's foreign functions, which compiled programs call without Python.

XLA calls a handler, a C function, with a *call frame*: structs that are laid out as
``xla/ffi/api/c_api.h`` of jaxlib says. The handler here is LLVM IR, the same for all kernels: it is
compiled once on a machine and loaded for each kernel anew, with a variable that says what the
kernel's arguments have to be. It checks everything that it is given before it follows a pointer.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from pathlib import Path

import jax

from tcl.codegen.cpu.abi import word
from tcl.codegen.cpu.object_code.kept import load_kept
from tcl.codegen.cpu.run.native import FAILED, NativeEntry
from tcl.common.errors import CompileError
from tcl.grammar.syntax.types import ScalarType

HANDLER, _KERNEL = "tcl_xla_handler", "tcl_xla_kernel"

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

_ENTRY, _MAJOR_WORD, _MINOR_WORD, _INPUTS, _OUTPUTS, _BUFFERS, _MESSAGES = range(7)
"""Words of the variable: the kernel's native entry, the interface's version (two words), how many
inputs and outputs there are, the address of their description, and that of the addresses of the
messages of its checks, as formats of ``snprintf``.

Each argument is described by its element type, the bits that no address of an element has, its
rank, and its extents."""

_INVALID, _EXHAUSTED, _RANGE = 3, 8, 11
"""XLA's codes of errors."""

_LONGEST = 2048
"""Bytes of an error's message."""


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
        self._code = code = load_kept(_TEXT, (HANDLER, _KERNEL))
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
        words = (ctypes.c_uint64 * (_MESSAGES + 1)).from_address(code.address(_KERNEL))
        words[_ENTRY] = entry.address
        words[_MAJOR_WORD], words[_MINOR_WORD] = _version()
        words[_INPUTS], words[_OUTPUTS] = len(inputs), len(outputs)
        words[_BUFFERS] = ctypes.addressof(buffers)
        words[_MESSAGES] = ctypes.addressof(messages)
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
            f"this jaxlib's interface for foreign functions has version {major}.{minor}, and only "
            f"{_MAJOR}.x is known here; use another jaxlib"
        )
    return major, minor


_word = functools.partial(word, record=f"@{_KERNEL}")
"""LLVM IR that loads a word of the variable."""


def _field(name: str, base: str, offset: int, type_: str = "ptr") -> str:
    """LLVM IR that loads a field of the struct at ``%base``."""
    return (
        f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  %{name} = load {type_}, ptr %{name}.at\n"
    )


def _set(name: str, base: str, offset: int, value: str) -> str:
    """LLVM IR that sets a field."""
    return (
        f"  %{name} = getelementptr i8, ptr %{base}, i64 {offset}\n  store {value}, ptr %{name}\n"
    )


def _text(name: str, message: str) -> str:
    """LLVM IR of a text."""
    return f'@{name} = internal constant [{len(message) + 1} x i8] c"{message}\\00"\n'


# Bytes from the start of a struct. Those of XLA_FFI_Args, XLA_FFI_Rets: of the call frame.
_EXTENSION, _API, _STAGE, _ARGS, _RETS, _FRAME_SIZE = 8, 16, 32, 40, 80, 168
_COUNT, _KINDS, _ITEMS, _LIST_SIZE = 16, 24, 32, 40
_CREATE = 48  # in XLA_FFI_Api
_DTYPE, _DATA, _RANK, _DIMS, _BUFFER_SIZE = 16, 24, 32, 40, 48
_EXECUTE, _METADATA, _BUFFER = 3, 1, 1  # values of enums

_TEXT = f"""
@{_KERNEL} = global [{_MESSAGES + 1} x i64] zeroinitializer, align 64
{_text("wrong.call", "tcl: called in a way that is not known")}\
{_text("wrong.buffers", "tcl: a buffer is not what was compiled for")}\
{_text("no.memory", "tcl: there is no memory for what a call needs on the way")}

define ptr @{HANDLER}(ptr %frame) nounwind {{
entry:
{_field("extension", "frame", _EXTENSION)}\
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %ask
ask:
{_field("kind", "extension", 8, "i32")}\
  %asked = icmp eq i32 %kind, {_METADATA}
  br i1 %asked, label %answer, label %call
answer:
{_field("metadata", "extension", 24)}\
{_word("major", _MAJOR_WORD, "i64")}{_word("minor", _MINOR_WORD, "i64")}\
  %major.word = trunc i64 %major to i32
  %minor.word = trunc i64 %minor to i32
{_set("version.size", "metadata", 8, "i64 24")}\
{_set("version.extension", "metadata", 16, "ptr null")}\
{_set("version.major", "metadata", 24, "i32 %major.word")}\
{_set("version.minor", "metadata", 28, "i32 %minor.word")}\
{_set("traits", "metadata", 32, "i32 0")}\
  ret ptr null

call:
{_field("size", "frame", 0, "i64")}{_field("stage", "frame", _STAGE, "i32")}\
{_field("args.size", "frame", _ARGS, "i64")}{_field("rets.size", "frame", _RETS, "i64")}\
  %small = icmp ult i64 %size, {_FRAME_SIZE}
  %early = icmp ne i32 %stage, {_EXECUTE}
  %args.other = icmp ne i64 %args.size, {_LIST_SIZE}
  %rets.other = icmp ne i64 %rets.size, {_LIST_SIZE}
  %a = or i1 %small, %early
  %b = or i1 %args.other, %rets.other
  %unknown = or i1 %a, %b
  br i1 %unknown, label %refuse, label %count
refuse:
  %refused = call ptr @fail(ptr %frame, ptr @wrong.call, i32 {_INVALID})
  ret ptr %refused
count:
{_field("inputs", "frame", _ARGS + _COUNT, "i64")}\
{_field("outputs", "frame", _RETS + _COUNT, "i64")}\
{_word("inputs.wanted", _INPUTS, "i64")}{_word("outputs.wanted", _OUTPUTS, "i64")}\
  %c = icmp eq i64 %inputs, %inputs.wanted
  %d = icmp eq i64 %outputs, %outputs.wanted
  %counted = and i1 %c, %d
  br i1 %counted, label %look, label %unfit
look:
  %all = add i64 %inputs, %outputs
  %addresses = alloca i64, i64 %all, align 16
  %error = alloca [2 x i64], align 16
{_word("buffers", _BUFFERS)}\
{_field("args.kinds", "frame", _ARGS + _KINDS)}{_field("args", "frame", _ARGS + _ITEMS)}\
{_field("rets.kinds", "frame", _RETS + _KINDS)}{_field("rets", "frame", _RETS + _ITEMS)}\
  %second = getelementptr i64, ptr %addresses, i64 %inputs
  %middle = call ptr @fit(ptr %args.kinds, ptr %args, i64 %inputs, ptr %buffers, ptr %addresses)
  %e = icmp eq ptr %middle, null
  br i1 %e, label %unfit, label %results
results:
  %end = call ptr @fit(ptr %rets.kinds, ptr %rets, i64 %outputs, ptr %middle, ptr %second)
  %f = icmp eq ptr %end, null
  br i1 %f, label %unfit, label %run
unfit:
  %unfitting = call ptr @fail(ptr %frame, ptr @wrong.buffers, i32 {_INVALID})
  ret ptr %unfitting
run:
{_word("kernel", _ENTRY)}\
  %status = call i32 %kernel(ptr %addresses, ptr %error)
  switch i32 %status, label %poor [ i32 0, label %done i32 {FAILED}, label %failed ]
done:
  ret ptr null
poor:
  %exhausted = call ptr @fail(ptr %frame, ptr @no.memory, i32 {_EXHAUSTED})
  ret ptr %exhausted
failed:
  %text = alloca [{_LONGEST} x i8], align 16
{_word("messages", _MESSAGES)}\
  %site = load i64, ptr %error, align 8
  %value.at = getelementptr i64, ptr %error, i64 1
  %value = load i64, ptr %value.at, align 8
  %message.at = getelementptr ptr, ptr %messages, i64 %site
  %message = load ptr, ptr %message.at, align 8
  %written = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 {_LONGEST}, ptr %message, \
i64 %value)
  %range = call ptr @fail(ptr %frame, ptr %text, i32 {_RANGE})
  ret ptr %range
}}

; Where the description goes on behind these buffers, whose addresses are written; null if one of
; them is not as described.
define internal ptr @fit(ptr %kinds, ptr %items, i64 %count, ptr %described, ptr %addresses) \
nounwind {{
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %good ]
  %wanted = phi ptr [ %described, %entry ], [ %behind, %good ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %kind, label %all
all:
  ret ptr %wanted
wrong:
  ret ptr null
kind:
  %kind.at = getelementptr i32, ptr %kinds, i64 %k
  %kind.is = load i32, ptr %kind.at
  %array = icmp eq i32 %kind.is, {_BUFFER}
  br i1 %array, label %buffer, label %wrong
buffer:
  %item.at = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.at
{_field("size", "item", 0, "i64")}{_field("type", "item", _DTYPE, "i32")}\
{_field("address", "item", _DATA, "i64")}{_field("rank", "item", _RANK, "i64")}\
{_field("dims", "item", _DIMS)}\
{_field("type.wanted", "wanted", 0, "i64")}{_field("bits", "wanted", 8, "i64")}\
{_field("rank.wanted", "wanted", 16, "i64")}\
  %extents = getelementptr i64, ptr %wanted, i64 3
  %behind = getelementptr i64, ptr %extents, i64 %rank.wanted
  %type.word = zext i32 %type to i64
  %across = and i64 %address, %bits
  %a = icmp ult i64 %size, {_BUFFER_SIZE}
  %b = icmp ne i64 %type.word, %type.wanted
  %c = icmp ne i64 %rank, %rank.wanted
  %d = icmp ne i64 %across, 0
  %e = or i1 %a, %b
  %f = or i1 %c, %d
  %other = or i1 %e, %f
  br i1 %other, label %wrong, label %axes
axes:
  %axis = phi i64 [ 0, %buffer ], [ %axis.next, %axis.good ]
  %axis.more = icmp ult i64 %axis, %rank
  br i1 %axis.more, label %extent, label %good
extent:
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %dim.wanted.at = getelementptr i64, ptr %extents, i64 %axis
  %dim.wanted = load i64, ptr %dim.wanted.at, align 8
  %same = icmp eq i64 %dim, %dim.wanted
  br i1 %same, label %axis.good, label %wrong
axis.good:
  %axis.next = add i64 %axis, 1
  br label %axes
good:
  %place = getelementptr i64, ptr %addresses, i64 %k
  store i64 %address, ptr %place, align 8
  %next = add i64 %k, 1
  br label %each
}}

define internal ptr @fail(ptr %frame, ptr %message, i32 %code) nounwind {{
entry:
  %arguments = alloca [4 x i64], align 8
{_field("api", "frame", _API)}{_field("create", "api", _CREATE)}\
{_set("size", "arguments", 0, "i64 28")}{_set("extension", "arguments", 8, "ptr null")}\
{_set("text", "arguments", 16, "ptr %message")}{_set("errc", "arguments", 24, "i32 %code")}\
  %error = call ptr %create(ptr %arguments)
  ret ptr %error
}}

declare i32 @snprintf(ptr, i64, ptr, ...)
"""
