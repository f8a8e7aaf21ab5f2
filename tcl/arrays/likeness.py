"""A call whose arrays are like those of an earlier one: compared at every call, so natively.

What Python has to be asked for, array by array, takes longer than a small kernel. A function of a
few instructions reads the same from where Python's, NumPy's and torch's objects keep it: NumPy's by
its C API's ``PyArrayObject_fields``, torch's by the functions that libtorch exports for compiled
code. Whether things lie where these say is tried on objects of this process first; where they do
not, Python is asked.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.common.errors import CompileError
from tcl.codegen.cpu.abi import TENSORS
from tcl.codegen.cpu.object_code.kept import load_kept

Alike: TypeAlias = Callable[[tuple[Any, ...], tuple[Any, ...], int], int]
"""Takes inputs, outputs and the address of a call's record. Runs the kernel on them and returns
``RAN`` or ``FAILED``, as the kernel says; returns ``UNLIKE``, and nothing has run, if one is not
like those that it compares with, or an output overlaps another array."""

RAN, FAILED, UNLIKE = 0, 1, 2

Record: TypeAlias = tuple[int, int, int, int, int, Sequence[int], Sequence[int], int]
"""Of an array: the addresses of its type and its element type (of torch's, a number), bits that
no address has, flags that it has (torch's: that it has exactly), whether there are elements, sizes,
strides, and its place among the arguments."""


class Comparison:
    """Memory that ``Alike`` compares arrays with; it lives as long as this."""

    __slots__ = ("_keep", "at")

    def __init__(
        self,
        records: Sequence[Record],
        inputs: int,
        pairs: Sequence[tuple[int, int, int, int]],
        kernel: int,
        keep: object,
    ) -> None:
        """``pairs``: two places among the arguments, and two numbers between which the distance of
        these two may not be; ``kernel``: the address of the function that runs a record; ``keep``:
        what has to live as long as this."""
        layouts = [(ctypes.c_int64 * (2 * len(r[5]) or 1))(*r[5], *r[6]) for r in records]
        words = [inputs, len(records) - inputs, len(pairs), kernel]
        for record, layout in zip(records, layouts, strict=True):
            kind, type_, unaligned, flags, filled, sizes, _, place = record
            words += [kind, type_, len(sizes), unaligned, flags, filled]
            words += [ctypes.addressof(layout), place]
        words += [number for pair in pairs for number in pair]
        memory = (ctypes.c_int64 * len(words))(*words)
        self._keep = (memory, layouts, keep)
        self.at = ctypes.addressof(memory)
        """The memory's address."""


class Native:
    """A function that compares, with what it compares with still to be said."""

    __slots__ = ("_method", "code")

    def __init__(self, text: str, *variables: str) -> None:
        """``variables``: what of the code is filled by who makes this. Raises ``CompileError``."""
        self.code = load_kept(text, (_NAME, _PYTHON, *variables))
        needed = [getattr(ctypes.pythonapi, name) for name in _NEEDED]
        table = (ctypes.c_uint64 * len(needed)).from_address(self.code.address(_PYTHON))
        table[:] = [_address(function) for function in needed]
        name = ctypes.create_string_buffer(b"alike")
        method = (ctypes.c_uint64 * 4)()  # a PyMethodDef: name, function, flags, documentation
        method[0], method[1] = ctypes.addressof(name), self.code.address(_NAME)
        method[2] = _FASTCALL
        self._method = method
        for thing in (self.code, method, name):  # for as long as the process runs
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))

    def comparing(self, comparison: Comparison) -> Alike:
        """A function that compares with this, which has to live as long."""
        make = ctypes.pythonapi.PyCFunction_NewEx
        thing = ctypes.py_object
        make.argtypes, make.restype = (ctypes.c_void_p, thing, ctypes.c_void_p), thing
        made: Alike = make(ctypes.addressof(self._method), comparison.at, None)
        return made


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_FASTCALL = 0x80
"""Of Python's flags of a method: its arguments come in an array."""
_NEEDED = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsVoidPtr", "PyLong_FromLong")
"""Of Python's C API, in the order of the table."""


@functools.cache
def numpy_alike() -> Native | None:
    """For NumPy's arrays; None where they cannot be read so."""
    items = _items_of_tuples()
    if items is None:
        return None
    base = np.zeros((3, 4), np.int32)
    for array in (base, base[1:, 2:], base.T, np.zeros(()), np.zeros(5, np.bool_)[::-2]):
        words = _words(id(array), 9)
        if words[2] != array.__array_interface__["data"][0] or words[7] != id(array.dtype):
            return None
        n = array.ndim
        if words[3] & 0xFFFFFFFF != n or _words(words[4], n) != list(array.shape):
            return None
        if [ctypes.c_int64(s).value for s in _words(words[5], n)] != list(array.strides):
            return None
        frozen = array[...]
        frozen.flags.writeable = False
        if not words[8] & WRITEABLE or _words(id(frozen), 9)[8] & WRITEABLE:
            return None
    try:
        return Native(_TEXT.format(items=8 * items, address=_NUMPY, **_PLACES))
    except CompileError:
        return None


WRITEABLE = 0x400
"""Of NumPy's flags of an array."""


@dataclass(frozen=True, slots=True)
class TorchReader:
    """What reads torch's tensors on the host."""

    native: Native
    keys: int
    """The word of a tensor that says of what kind it is: its device, whether it is negated lazily,
    whether it stands for others."""
    dtype: Any

    def keys_of(self, tensor: Any) -> int:
        """That word."""
        return ctypes.c_int64(_words(tensor._cdata, self.keys + 1)[self.keys]).value

    def type_of(self, tensor: Any) -> int:
        """The number of its element type."""
        found = ctypes.c_int32()
        self.dtype(ctypes.c_void_p(id(tensor) + 16), ctypes.byref(found))
        return found.value


@functools.cache
def torch_alike() -> TorchReader | None:
    """For torch's tensors on the host; None where they cannot be read so."""
    torch: Any = sys.modules["torch"]
    items = _items_of_tuples()
    if items is None:
        return None
    plain = torch.zeros(2, 3)
    tensors = [plain, plain.T, torch._neg_view(plain), torch.empty(4, device="meta")]
    tensors.append(torch.zeros(1, dtype=torch.uint8)[:0])
    with torch.inference_mode():
        tensors.append(torch.zeros(()))
    places = set(range(_SPAN))
    for tensor in tensors:
        if _words(id(tensor), 3)[2] != tensor._cdata:
            return None
        keys = torch._C._dispatch_keys(tensor).raw_repr()
        places &= {k for k, word in enumerate(_words(tensor._cdata, _SPAN)) if word == keys}
    if len(places) != 1:
        return None
    (keys,) = places
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        functions = [getattr(library, f"aoti_torch_get_{name}") for name in _ASKED]
        address = _TORCH.format(keys=8 * keys, table=_TABLE)
        text = _TEXT.format(items=8 * items, address=address, **_PLACES)
        native = Native(text, _TABLE)
    except (OSError, AttributeError, CompileError):
        return None
    table = (ctypes.c_uint64 * len(_ASKED)).from_address(native.code.address(_TABLE))
    table[:] = [_address(function) for function in functions]
    return TorchReader(native, keys, library.aoti_torch_get_dtype)


_SPAN = 24
"""Words of a tensor that are looked at: fewer than the smallest has."""
_ASKED = ("dim", "dtype", "sizes", "strides", "data_ptr")
"""In the order of the table."""


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address)) if count else []


def _items_of_tuples() -> int | None:
    """The word at which a tuple's items begin; None if it cannot be told."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    one, other = object(), object()
    pair = (one, other)
    words = _words(id(pair), 5)
    found = [k for k in (3, 4) if words[k] == id(one)]
    if words[1] != id(tuple) or words[2] != 2 or not found:
        return None
    return found[0]


_NAME, _TABLE, _PYTHON = "tcl_alike", "tcl_alike_torch", "tcl_alike_python"

_PLACES = {"python": _PYTHON, "tensors": TENSORS, "needed": len(_NEEDED)}

_TEXT = """
{address}

@{python} = global [{needed} x ptr] zeroinitializer

define ptr @tcl_alike(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %number.at = getelementptr ptr, ptr @{python}, i64 2
  %number = load ptr, ptr %number.at
  %inputs = load ptr, ptr %given
  %given.1 = getelementptr ptr, ptr %given, i64 1
  %outputs = load ptr, ptr %given.1
  %given.2 = getelementptr ptr, ptr %given, i64 2
  %record = load ptr, ptr %given.2
  %like = call ptr %number(ptr %self)
  %call = call ptr %number(ptr %record)
  %status = call i64 @alike(ptr %inputs, ptr %outputs, ptr %like, ptr %call)
  %object.at = getelementptr ptr, ptr @{python}, i64 3
  %object = load ptr, ptr %object.at
  %made = call ptr %object(i64 %status)
  ret ptr %made
}}

define internal i64 @alike(ptr %inputs, ptr %outputs, ptr %like, ptr %call) nounwind {{
entry:
  %arguments.at = getelementptr i64, ptr %call, i64 {tensors}
  %arguments = load ptr, ptr %arguments.at
  %inputs.size = getelementptr i8, ptr %inputs, i64 16
  %given.in = load i64, ptr %inputs.size
  %outputs.size = getelementptr i8, ptr %outputs, i64 16
  %given.out = load i64, ptr %outputs.size
  %in = load i64, ptr %like
  %like.1 = getelementptr i64, ptr %like, i64 1
  %out = load i64, ptr %like.1
  %like.2 = getelementptr i64, ptr %like, i64 2
  %pairs = load i64, ptr %like.2
  %like.3 = getelementptr i64, ptr %like, i64 3
  %kernel = load ptr, ptr %like.3
  %records = getelementptr i64, ptr %like, i64 4
  %same.in = icmp eq i64 %given.in, %in
  %same.out = icmp eq i64 %given.out, %out
  %same = and i1 %same.in, %same.out
  %all = add i64 %in, %out
  br i1 %same, label %arrays, label %unlike
arrays:
  %k = phi i64 [ 0, %entry ], [ %k.next, %fits ]
  %more = icmp ult i64 %k, %all
  br i1 %more, label %array, label %overlaps
array:
  %is.in = icmp ult i64 %k, %in
  %tuple = select i1 %is.in, ptr %inputs, ptr %outputs
  %before = select i1 %is.in, i64 0, i64 %in
  %position = sub i64 %k, %before
  %items = getelementptr i8, ptr %tuple, i64 {items}
  %item = getelementptr ptr, ptr %items, i64 %position
  %object = load ptr, ptr %item
  %offset = mul i64 %k, 8
  %record = getelementptr i64, ptr %records, i64 %offset
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load i64, ptr %type.at
  %type.like = load i64, ptr %record
  %type.same = icmp eq i64 %type, %type.like
  br i1 %type.same, label %typed, label %unlike
typed:
  %address = call i64 @address(ptr %object, ptr %record)
  %known = icmp ne i64 %address, -1
  %bits.at = getelementptr i64, ptr %record, i64 3
  %bits = load i64, ptr %bits.at
  %low.bits = and i64 %address, %bits
  %aligned = icmp eq i64 %low.bits, 0
  %good = and i1 %known, %aligned
  br i1 %good, label %fits, label %unlike
fits:
  %place.at = getelementptr i64, ptr %record, i64 7
  %place = load i64, ptr %place.at
  %argument = getelementptr i64, ptr %arguments, i64 %place
  store i64 %address, ptr %argument
  %k.next = add i64 %k, 1
  br label %arrays
overlaps:
  %words = mul i64 %all, 8
  %first = getelementptr i64, ptr %records, i64 %words
  br label %distances
distances:
  %p = phi i64 [ 0, %overlaps ], [ %p.next, %distance ]
  %another = icmp ult i64 %p, %pairs
  br i1 %another, label %distance, label %like.those
distance:
  %p.words = mul i64 %p, 4
  %pair = getelementptr i64, ptr %first, i64 %p.words
  %one = load i64, ptr %pair
  %pair.1 = getelementptr i64, ptr %pair, i64 1
  %other = load i64, ptr %pair.1
  %pair.2 = getelementptr i64, ptr %pair, i64 2
  %low = load i64, ptr %pair.2
  %pair.3 = getelementptr i64, ptr %pair, i64 3
  %high = load i64, ptr %pair.3
  %one.at = getelementptr i64, ptr %arguments, i64 %one
  %from = load i64, ptr %one.at
  %other.at = getelementptr i64, ptr %arguments, i64 %other
  %to = load i64, ptr %other.at
  %apart = sub i64 %from, %to
  %above = icmp slt i64 %low, %apart
  %below = icmp slt i64 %apart, %high
  %overlap = and i1 %above, %below
  %p.next = add i64 %p, 1
  br i1 %overlap, label %unlike, label %distances
like.those:
  %leave = load ptr, ptr @{python}
  %thread.1 = getelementptr ptr, ptr @{python}, i64 1
  %enter = load ptr, ptr %thread.1
  %thread = call ptr %leave()
  %result = call i32 %kernel(ptr %call)
  call void %enter(ptr %thread)
  %result.64 = sext i32 %result to i64
  ret i64 %result.64
unlike:
  ret i64 2
}}

define internal i1 @same(ptr %one, ptr %other, i64 %count) alwaysinline nounwind {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %compare ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %compare, label %yes
compare:
  %one.at = getelementptr i64, ptr %one, i64 %k
  %a = load i64, ptr %one.at
  %other.at = getelementptr i64, ptr %other, i64 %k
  %b = load i64, ptr %other.at
  %equal = icmp eq i64 %a, %b
  %next = add i64 %k, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_LAYOUT = """
layout:
  %like.sizes.at = getelementptr i64, ptr %record, i64 6
  %like.sizes = load ptr, ptr %like.sizes.at
  %like.strides = getelementptr i64, ptr %like.sizes, i64 %dims
  %same.sizes = call i1 @same(ptr %sizes, ptr %like.sizes, i64 %dims)
  br i1 %same.sizes, label %steps, label %unlike
steps:
  %same.strides = call i1 @same(ptr %strides, ptr %like.strides, i64 %dims)
  br i1 %same.strides, label %found, label %unlike
unlike:
  ret i64 -1
"""

_NUMPY = (
    """
define internal i64 @address(ptr %array, ptr %record) alwaysinline nounwind {
entry:
  %descr.at = getelementptr i8, ptr %array, i64 56
  %descr = load i64, ptr %descr.at
  %like.descr.at = getelementptr i64, ptr %record, i64 1
  %like.descr = load i64, ptr %like.descr.at
  %same.descr = icmp eq i64 %descr, %like.descr
  %dims.at = getelementptr i8, ptr %array, i64 24
  %dims.32 = load i32, ptr %dims.at
  %dims = sext i32 %dims.32 to i64
  %like.dims.at = getelementptr i64, ptr %record, i64 2
  %like.dims = load i64, ptr %like.dims.at
  %same.dims = icmp eq i64 %dims, %like.dims
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags.32 = load i32, ptr %flags.at
  %flags = zext i32 %flags.32 to i64
  %like.flags.at = getelementptr i64, ptr %record, i64 4
  %like.flags = load i64, ptr %like.flags.at
  %common = and i64 %flags, %like.flags
  %same.flags = icmp eq i64 %common, %like.flags
  %sizes.at = getelementptr i8, ptr %array, i64 32
  %sizes = load ptr, ptr %sizes.at
  %strides.at = getelementptr i8, ptr %array, i64 40
  %strides = load ptr, ptr %strides.at
  %same.1 = and i1 %same.descr, %same.dims
  %same.all = and i1 %same.1, %same.flags
  br i1 %same.all, label %layout, label %unlike
"""
    + _LAYOUT
    + """
found:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load i64, ptr %data.at
  ret i64 %data
}
"""
)


def _asked(name: str, type_: str) -> str:
    """LLVM IR that asks libtorch for something of a tensor."""
    k = _ASKED.index(name)
    return f"""
  %{name}.to = getelementptr ptr, ptr @{{table}}, i64 {k}
  %{name}.ask = load ptr, ptr %{name}.to
  %{name}.wrong = call i32 %{name}.ask(ptr %handle, ptr %{name}.memory)
  %{name} = load {type_}, ptr %{name}.memory
"""


_TORCH = (
    """
@{table} = global [5 x ptr] zeroinitializer

define internal i64 @address(ptr %tensor, ptr %record) alwaysinline nounwind {{
entry:
  %dim.memory = alloca i64
  %dtype.memory = alloca i32
  %sizes.memory = alloca ptr
  %strides.memory = alloca ptr
  %data_ptr.memory = alloca i64
  %handle = getelementptr i8, ptr %tensor, i64 16
  %implementation = load ptr, ptr %handle
  %keys.at = getelementptr i8, ptr %implementation, i64 {keys}
  %keys = load i64, ptr %keys.at
  %like.keys.at = getelementptr i64, ptr %record, i64 4
  %like.keys = load i64, ptr %like.keys.at
  %same.keys = icmp eq i64 %keys, %like.keys
  br i1 %same.keys, label %ask, label %unlike
ask:
"""
    + _asked("dtype", "i32")
    + _asked("dim", "i64")
    + """
  %dtype.64 = sext i32 %dtype to i64
  %like.dtype.at = getelementptr i64, ptr %record, i64 1
  %like.dtype = load i64, ptr %like.dtype.at
  %same.dtype = icmp eq i64 %dtype.64, %like.dtype
  %like.dims.at = getelementptr i64, ptr %record, i64 2
  %dims = load i64, ptr %like.dims.at
  %same.dims = icmp eq i64 %dim, %dims
  %same.both = and i1 %same.dtype, %same.dims
  br i1 %same.both, label %ask.layout, label %unlike
ask.layout:
"""
    + _asked("sizes", "ptr")
    + _asked("strides", "ptr")
    + """
  br label %layout
"""
    + _LAYOUT
    + """
found:
"""
    + _asked("data_ptr", "i64")
    + """
  %filled.at = getelementptr i64, ptr %record, i64 5
  %filled = load i64, ptr %filled.at
  %is.filled = icmp ne i64 %filled, 0
  %nowhere = icmp eq i64 %data_ptr, 0
  %freed = and i1 %is.filled, %nowhere
  br i1 %freed, label %unlike, label %here
here:
  ret i64 %data_ptr
}}
"""
)
