"""A call whose arrays are like those of an earlier one: compared at every call, so natively.

What Python has to be asked for, array by array, takes longer than a small kernel. A function of a
few instructions (``arrays.c`` of the CPU's runtime) reads the same from where Python's, NumPy's,
torch's and CuPy's objects keep it: NumPy's by its C API's ``PyArrayObject_fields``, torch's by the
functions that libtorch exports for compiled code, CuPy's as Cython lays them out. Whether things
lie where these say is tried on objects of this process first; where they do not, Python is asked.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.runtime.structs import PythonStruct, TorchStruct, address, fill
from tcl.common.dataclass import dataclass
from tcl.common.errors import CompileError

Alike: TypeAlias = Callable[[tuple[Any, ...], tuple[Any, ...], int], int]
"""Takes inputs, outputs and the address of a call's record. Runs the kernel on them and returns
``RAN`` or ``FAILED``, as the kernel says; returns ``UNLIKE``, and nothing has run, if one is not
like those that it compares with, or an output overlaps another array."""

RAN, FAILED, UNLIKE = 0, 1, 2

Record: TypeAlias = tuple[int, int, int, int, int, Sequence[int], Sequence[int], int]
"""Of an array: the addresses of its type and its element type (of torch's, a number), bits that
no address has, flags that it has (torch's: that it has exactly; CuPy's: its device), whether there
are elements, sizes, strides, and its place among the arguments."""


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
        these two may not be; ``kernel``: the address of the function that runs a record (CuPy's: of
        none); ``keep``:
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

    def __init__(self, function: str, items: int) -> None:
        """``function``: its name; ``items``: the word at which a tuple's items begin. Raises
        ``CompileError``."""
        self.code = load("arrays", (function, _PYTHON, _TORCH))
        api = ctypes.pythonapi
        fill(
            self.code,
            _PYTHON,
            PythonStruct(
                save_thread=address(api.PyEval_SaveThread),
                restore_thread=address(api.PyEval_RestoreThread),
                as_pointer=address(api.PyLong_AsVoidPtr),
                integer=address(api.PyLong_FromLong),
                items=8 * items,
            ),
        )
        name = ctypes.create_string_buffer(b"call")
        method = (ctypes.c_uint64 * 4)()  # a PyMethodDef: name, function, flags, documentation
        method[0], method[1] = ctypes.addressof(name), self.code.address(function)
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


_PYTHON, _TORCH = "tcl_python", "tcl_torch"
"""Variables of the code."""

_FASTCALL = 0x80
"""Of Python's flags of a method: its arguments come in an array."""


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
        return Native("tcl_call_numpy", items)
    except CompileError:
        return None


WRITEABLE = 0x400
"""Of NumPy's flags of an array."""


@functools.cache
def cupy_alike() -> Native | None:
    """For CuPy's arrays, whose kernels it does not run: the last argument of what it gives is the
    address of those of the arguments. None where they cannot be read so."""
    cupy: Any = sys.modules["cupy"]
    items = _items_of_tuples()
    if items is None:
        return None
    held = np.zeros(512, np.uint8)
    samples = [
        ((3, 4), np.float32, None, 0, 64),
        ((4, 3), np.int16, (2, 8), 2, 8),
        ((5,), np.bool_, (-1,), 1, 4),
        ((), np.float64, None, 0, 0),
        ((2, 0, 3), np.int64, None, 3, 16),
    ]
    for shape, type_, strides, device, offset in samples:
        owner = cupy.cuda.UnownedMemory(held.ctypes.data, held.nbytes, held, device)
        memory = cupy.cuda.MemoryPointer(owner, offset)
        array = cupy.ndarray(shape, type_, memory, strides)
        words, n = _words(id(array), _CUPY_WORDS), len(shape)
        if words[13] != id(array.dtype) or words[14] != id(array.data):
            return None
        if words[6] - words[5] != 8 * n or words[9] - words[8] != 8 * n:
            return None
        if _words(words[5], n) != list(array.shape):
            return None
        if [ctypes.c_int64(s).value for s in _words(words[8], n)] != list(array.strides):
            return None
        words = _words(id(array.data), _POINTER_WORDS)
        if words[3] != array.data.ptr or words[4] & 0xFFFFFFFF != array.data.device_id:
            return None
    try:
        return Native("tcl_call_cupy", items)
    except CompileError:
        return None


_CUPY_WORDS, _POINTER_WORDS = 15, 5
"""Of CuPy's arrays and of its pointers to memory, as far as they are read."""


@dataclass(frozen=True, slots=True)
class TorchReader:
    """What reads torch's tensors on the host."""

    native: Native
    keys: int
    """The word of a tensor that says of what kind it is: its device, whether it is negated lazily,
    whether it stands for others."""
    dtype: Any

    def keys_of(self, tensor: Any) -> int:
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
        native = Native("tcl_call_torch", items)
        asked = {
            name: address(getattr(library, f"aoti_torch_get_{symbol}"))
            for name, symbol in _TORCH_FIELDS.items()
        }
        watching = {name: address(getattr(library, symbol)) for name, symbol in _WATCHING.items()}
    except (OSError, AttributeError, CompileError):
        return None
    tracing = int(torch._C.DispatchKey.PreDispatch)
    described = TorchStruct(**asked, **watching, key=tracing, keys=8 * keys)
    fill(native.code, _TORCH, described)
    return TorchReader(native, keys, library.aoti_torch_get_dtype)


_TORCH_FIELDS = {
    **{name: name for name in ("dim", "dtype", "sizes", "strides")},
    "data": "data_ptr",
}
"""What libtorch's functions ``aoti_torch_get_`` are asked."""
_WATCHING = {
    "any_modes": "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb",
    "key_included": "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE",
    "tracing_state": "_ZN5torch3jit6tracer15getTracingStateEv",
}
"""Functions of libtorch that tell who may watch calls."""

_SPAN = 24
"""Words of a tensor that are looked at: fewer than the smallest has."""


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
