"""The operator on the CPU without Python: ``torch.c`` of the CPU's runtime, loaded, registered, and
its table filled."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.native import NativeEntry, on_the_way, returning
from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.runtime.structs import OperatorStruct, address, fill
from tcl.common.errors import CompileError
from tcl.common.forks import free_lock
from tcl.executors.varying import row_major
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import BUCKETS, MULTIPLE, kind_of
from tcl.grammar.sizes.varying import linear
from tcl.grammar.tree.checked import CheckedDef
from tcl.torch.kernels import CpuKernels, SignatureRow

_CALL, _PUBLISH, _OPERATOR = "tcl_operator_call", "tcl_operator_publish", "tcl_operator"

_TORCH = {
    **{name: f"aoti_torch_get_{name}" for name in ("dim", "dtype", "sizes", "strides")},
    "data": "aoti_torch_get_data_ptr",
    "empty_strided": "aoti_torch_empty_strided",
    "delete": "aoti_torch_delete_tensor_object",
    "check": "aoti_torch_check",
}
"""torch's functions, as the code names them."""

_SMALLEST = 16
"""Slots of a table that is new. It is replaced by one of twice as many when half of them are in
use."""

MOST_ROWS = 4096
"""Rows of an operator. Nothing of them is ever freed, as a thread may just read it: calls at still
other sizes, where these vary, are done in Python."""

_KINDS = 2 + max(kind_of(BUCKETS[-1] - 1), kind_of(BUCKETS[-1] - MULTIPLE))
"""Places of the table of kinds."""

_Words = ctypes.Array[ctypes.c_uint64]


_FACTOR = 0x9E3779B97F4A7C15
"""Odd, and without a pattern: it spreads words over a hash's high bits."""


def hashed(key: Sequence[int]) -> int:
    """The hash of a key, as the code computes it. A table looks from its lowest bits on."""
    mixed = 0
    for word in key:
        mixed = ((mixed ^ word % (1 << 64)) * _FACTOR) % (1 << 64)
        mixed ^= mixed >> 32
    return mixed


class Stub:
    """The code of one operator, with its table. It is never freed: a thread of torch may still run
    it when the interpreter ends."""

    def __init__(self, kernels: CpuKernels, checked: CheckedDef) -> None:
        """Raises ``OSError`` or ``AttributeError`` where torch has not the functions that it
        needs."""
        self._kernels = kernels
        self._count = len(checked.inputs)
        torch_functions = _library()
        number = {
            t.type: getattr(torch_functions, f"aoti_torch_dtype_{t.type}")()
            for t in (*checked.inputs, *checked.outputs)
        }
        inputs, outputs = checked.inputs, [checked.outputs[k] for k in kernels.places]
        varying = [_place(checked, name) for name in kernels.varying]
        key, layouts = (2 * sum(t.rank for t in side) for side in (inputs, outputs))
        self._outputs = len(outputs)
        self._varying = len(varying)
        self._code = load("torch", (_CALL, _PUBLISH, _OPERATOR))
        self.address = self._code.address(_CALL)
        """Of the function that torch calls."""
        self._publish = _PUBLISH_TYPE(self._code.address(_PUBLISH))
        self._missed = _MISSED_TYPE(self._call_in_python)
        in_words = [n for t in inputs for n in (t.rank, number[t.type], t.type.itemsize)]
        out_words = [n for t in outputs for n in (t.rank, number[t.type])]
        self._described = [(ctypes.c_int64 * len(w))(*w) for w in (in_words, out_words)]
        self._kind_places = (ctypes.c_int64 * _KINDS)()
        fill(
            self._code,
            _OPERATOR,
            OperatorStruct(
                **{name: address(getattr(torch_functions, to)) for name, to in _TORCH.items()},
                inputs=ctypes.addressof(self._described[0]),
                outputs=ctypes.addressof(self._described[1]),
                input_count=len(inputs),
                output_count=len(outputs),
                key=key,
                words=1 + key + len(inputs) + layouts + len(varying),
                varying=len(varying),
                size=varying[0] if varying else 0,
                largest=BUCKETS[-1],
                multiple=MULTIPLE,
                missed=address(self._missed),
                kinds=ctypes.addressof(self._kind_places),
            ),
        )
        self._lock = free_lock()
        self._rows: dict[tuple[int, ...], _Words] = {}
        self._entries: dict[tuple[object, ...], NativeEntry] = {}
        """By code, and the memory that it needs on the way."""
        self._kinds: dict[int, ctypes.Array[ctypes.c_int64]] = {}
        """The rows of kinds of sizes."""
        self._tables: list[_Words] = []
        """All that there were: a thread may still look into an old one."""
        self._renew()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _call_in_python(self, stack: int) -> int:
        """A call that the code could not do: by the handles in ``stack``, to which those of the
        outputs are written. The address of what is wrong, a text, or 0."""
        try:
            words = ctypes.c_uint64 * max(self._count, self._outputs)
            handles = words.from_address(stack)
            inputs = _tensors(handles[: self._count])
            found = self._kernels(*inputs)
            self._remember(inputs)
            outputs = found if isinstance(found, tuple) else (found,)
            for position, handle in enumerate(_handles(outputs)):
                handles[position] = handle
        except BaseException as error:  # no exception leaves a callback
            return failures.keep(error)
        return 0

    def _remember(self, inputs: Sequence[Any]) -> None:
        """Add the row of inputs like these."""
        key = tuple(n for t in inputs for n in (*t.shape, *t.stride()))
        with self._lock:
            if key in self._rows:
                return
            row = self._kernels.row(inputs)
            least = tuple(int(t.numel() > 0) for t in inputs)
            if self._remember_kind(row, least) or len(self._rows) >= MOST_ROWS:
                return
            entry = self._entry(row.sized, row.launcher)
            outputs = (n for k in self._kernels.places for side in row.outputs[k][:2] for n in side)
            sizes = row.launcher.sizes or (0,) * self._varying
            values = (entry.address, *key, *least, *outputs, *sizes)
            words = self._rows[key] = (ctypes.c_uint64 * len(values))(*values)
            if 2 * len(self._rows) > len(self._tables[-1]) - 1:
                self._renew()
            else:
                self._insert(key, words)

    def _remember_kind(self, row: SignatureRow, least: Sequence[int]) -> bool:
        """Add the row of the kind of sizes, if there can be one. ``least``: of the inputs."""
        if row.of_class is None or self._varying != 1:
            return False
        kind = kind_of(*row.launcher.sizes)
        symbolic, places = row.of_class.serves.symbolic, self._kernels.places
        checked = symbolic.checked
        if kind in self._kinds:  # strides of single points may be any
            return False
        sides = checked.inputs, tuple(checked.outputs[k] for k in places)
        shapes = [[symbolic.shapes[t.name] for t in side] for side in sides]
        found = [
            [linear(n) for shape in side for n in (*shape, *row_major(shape, 1))] for side in shapes
        ]
        key, outputs = ([n for pair in side if pair is not None for n in pair] for side in found)
        if any(pair is None for side in found for pair in side):
            return False
        entry = self._entry(*row.of_class.largest_of_kind(unchecked=self._kernels.unchecked))
        values = (entry.address, *key, *least, *outputs)
        words = self._kinds[kind] = (ctypes.c_int64 * len(values))(*values)
        self._publish(ctypes.addressof(self._kind_places) + 8 * kind, ctypes.addressof(words))
        return True

    def _entry(self, sized: SizedDef, launcher: Launcher) -> NativeEntry:
        """The function of a kernel: one for all sizes that need about as much memory on the way."""
        needed = on_the_way(launcher, sized, self._kernels.places)
        room = {k: 1 << (size - 1).bit_length() for k, size in needed.items()}
        # As long as an entry has the code, no other one has its address.
        key = launcher.entry, *(room if launcher.sizes else needed).items()
        found = self._entries.get(key)
        if found is None:
            more = room if launcher.sizes else None
            found = self._entries[key] = returning(launcher, sized, self._kernels.places, more)
        return found

    def _renew(self) -> None:
        """A table of twice as many slots, with all rows."""
        slots = 2 * (len(self._tables[-1]) - 1) if self._tables else _SMALLEST
        table = (ctypes.c_uint64 * (1 + slots))(slots - 1)
        self._tables.append(table)
        for key, words in self._rows.items():
            self._insert(key, words)
        self._publish(
            self._code.address(_OPERATOR) + OperatorStruct.table.offset, ctypes.addressof(table)
        )

    def _insert(self, key: tuple[int, ...], words: _Words) -> None:
        """Publish a row in the last table, of which at least half is empty."""
        table = self._tables[-1]
        slot = hashed(key) & table[0]
        while table[1 + slot]:
            slot = (slot + 1) & table[0]
        self._publish(ctypes.addressof(table) + 8 * (1 + slot), ctypes.addressof(words))


_MISSED_TYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_PUBLISH_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Failures(threading.local):
    """What went wrong in the last call of this thread that Python did for a stub.

    A C++ exception takes the text to whoever called the operator, as a ``RuntimeError``; the
    exception itself is kept for callers of ours, who raise that.
    """

    _error: BaseException | None = None
    _text = ctypes.create_string_buffer(b"")

    def keep(self, error: BaseException) -> int:
        """The address of the text, which stays until the next one."""
        self._error = error.with_traceback(None)  # whose frames hold the inputs
        told = "\n".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])
        self._text = ctypes.create_string_buffer(told.encode("utf-8", "replace"))
        return ctypes.addressof(self._text)

    def take(self, raised: BaseException) -> BaseException | None:
        """The exception behind one that was raised by a stub; None for all others."""
        error, self._error = self._error, None
        told = self._text.value.decode("utf-8")
        return error if error is not None and told in str(raised) else None


failures = Failures()


def _place(checked: CheckedDef, name: str) -> int:
    """The word of a key that tells a size."""
    place = 0
    for tensor in checked.inputs:
        if name in (tensor.dims or ()):
            return place + (tensor.dims or ()).index(name)
        place += 2 * tensor.rank
    raise KeyError(name)


@functools.cache
def _library() -> ctypes.CDLL:
    """torch's C interface."""
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


def made_stub(kernels: CpuKernels, checked: CheckedDef) -> Stub | None:
    """The stub of an operator; None where there can be none: of a torch without the functions that
    it needs, and where exceptions are not known to pass through code that LLVM made here."""
    if sys.platform != "linux":
        return None
    try:
        return Stub(kernels, checked)
    except (AttributeError, OSError):
        return None


def implement(stub: Stub, namespace: str, name: str) -> None:
    """Make a stub what runs for tensors on the CPU. Raises ``CompileError`` if torch refuses."""
    library = ctypes.c_void_p()
    functions = _library()
    refused = functions.aoti_torch_library_init_impl(
        namespace.encode(), b"CPU", b"tcl.torch.stub", 0, ctypes.byref(library)
    ) or functions.aoti_torch_library_impl(library, name.encode(), ctypes.c_void_p(stub.address))
    if refused:
        raise CompileError(f"torch refused the operator {namespace}::{name}")


def _tensors(handles: Sequence[int]) -> list[Any]:
    """The tensors of handles, which are used up. (torch's function for one handle leaks it.)"""
    capsules = [_capsule(handle, None, None) for handle in handles]
    found: list[Any] = torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(capsules)
    return found


def _handles(tensors: Sequence[Any]) -> list[int]:
    capsules = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors(list(tensors))
    return [int(_content(capsule, None)) for capsule in capsules]


_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_content = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
