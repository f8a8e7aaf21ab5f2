"""Kernels as functions that code compiled by Numba calls, without Python and without the GIL.

Numba compiles a function that is made here: it checks its arguments, calls the kernel's native
entry by its address, and raises. What types tell is checked when Numba compiles a call, and is an
error of Numba's (``TypingError``); the rest, when the call runs.

An address means something in this process alone. Numba itself keeps no code in its cache that has
one (``add_dynamic_addr``), with a warning; a call from a function with ``cache=True`` is an error.
"""

from __future__ import annotations

import ctypes
import keyword
import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, event
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.native import NO_MEMORY, NativeEntry
from tcl.common.errors import ArgumentError
from tcl.common.forks import free_lock
from tcl.common.number_format import plural
from tcl.executors.calls import contiguous, results_class
from tcl.grammar.tree.checked import Tensor

if TYPE_CHECKING:
    from tcl.executors.executor import Executor


class _Entry:
    """What a function made here calls, and what its errors say."""

    def __init__(self, executor: Executor, unchecked: bool) -> None:
        sized = executor.sized
        self.checked = sized.checked
        self.inputs = len(sized.checked.inputs)
        self.tensors: tuple[Tensor, ...] = (*sized.checked.inputs, *sized.checked.outputs)
        self.shapes = [sized.shapes[t.name] for t in self.tensors]
        self.dtypes = [numpy_dtype(t.type) for t in self.tensors]
        for tensor in self.tensors:
            if tensor.type.is_float and tensor.type.bits == 16:
                raise ArgumentError(
                    f"'{tensor.name}' of {self.checked.name} is {tensor.type}, a type that "
                    "Numba arrays do not have on a CPU"
                )
        self.strides = [
            contiguous(s, d.itemsize) for s, d in zip(self.shapes, self.dtypes, strict=True)
        ]
        self.entry = NativeEntry(executor.kernel(tuple(self.strides), unchecked=unchecked))

    def what(self, position: int) -> str:
        """An argument, as messages call it."""
        kind = "input" if position < self.inputs else "output"
        return f"{kind} '{self.tensors[position].name}' of {self.checked.name}"

    def unfit(self, position: int, shape: Any, strides: Any) -> str:
        """What is wrong with an argument of this shape and these strides."""
        wanted, steps = self.shapes[position], self.strides[position]
        if shape != wanted:
            return (
                f"{self.what(position)} has shape {wanted} in this executor, "
                f"but an array of shape {shape} was given"
            )
        if any(n > 1 and a != b for n, a, b in zip(wanted, steps, strides, strict=True)):
            return (
                f"{self.what(position)} has to be row-major for Numba, with strides {steps}, "
                f"but has {strides}; pass a copy, numpy.ascontiguousarray(...)"
            )
        return f"{self.what(position)} is not aligned in memory; pass an aligned array"

    def uninitialised(self, position: int) -> str:
        """What is wrong with leaving this output out."""
        return (
            f"{self.what(position)} is reduced into without being initialised; pass an array, "
            "or write the reduction with '!'"
        )


def _error(name: str, base: type[Exception], said: Callable[..., object]) -> type[Exception]:
    """Errors that compiled code raises with whole numbers and tuples of them, of which the first is
    an entry's number; a copy of one is an error of the base."""

    def made(self: Exception, number: int, *about: Any) -> None:
        found = said(_entries[number], *about)
        base.__init__(self, str(found))
        for note in getattr(found, "__notes__", ()):
            self.add_note(note)

    own = {"__init__": made, "__reduce__": lambda self: (base, self.args)}
    return type(name, (base,), own)


CheckError = _error("CheckError", IndexError, lambda e, *at: e.entry.launcher.failure(*at))
"""A data-dependent subscript left its tensor."""
UnfitError = _error("UnfitError", ArgumentError, _Entry.unfit)
"""An array whose shape, strides or address do not fit."""
NumberError = _error(
    "NumberError",
    ArgumentError,
    lambda e, k: f"{e.what(k)} is {e.tensors[k].type}, which has no such number",
)
"""A number that the input's type has not."""
OverlapError = _error(
    "OverlapError",
    ArgumentError,
    lambda e, k, other: f"{e.what(k)} overlaps {e.what(other)} in memory; pass a separate array",
)
"""An output that shares memory with another argument."""

_entries: list[_Entry] = []
"""By number. Kept for good: Numba does not say when code that has an address is gone."""
_functions: weakref.WeakKeyDictionary[Executor, dict[bool, Any]] = weakref.WeakKeyDictionary()
_lock = free_lock()


def numba_function(executor: Executor, places: tuple[int, ...], *, unchecked: bool) -> Any:
    """A function that Numba has compiled, or will, which runs the executor's kernel for row-major
    arrays; ``places`` are those, among the def's outputs, of the ones that it returns. Raises
    ``ArgumentError`` for element types that Numba lacks."""
    with _lock:
        made = _functions.setdefault(executor, {})
        if unchecked not in made:
            made[unchecked] = _make_call(executor, places, unchecked)
        return made[unchecked]


def _make_call(executor: Executor, places: tuple[int, ...], unchecked: bool) -> Any:
    entry = _Entry(executor, unchecked)
    number = len(_entries)
    _entries.append(entry)
    # Threads without the GIL may still run it when Python clears its modules.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(entry))
    if numba.config.DISABLE_JIT:
        return _in_python(executor, entry, places, unchecked)
    name = entry.checked.name
    names: dict[str, Any] = {
        "_call": _caller(entry),
        "_near": _near,
        "_Failed": CheckError,
        "_Overlapping": OverlapError,
        "_Results": results_class(name, tuple(entry.checked.outputs[k].name for k in places)),
    }
    for k in range(len(entry.tensors)):
        names[f"_argument{k}"] = _argument(number, k)
    exec(_python_text(entry, number, places), names)
    function = names["_function"]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{name}({', '.join(t.name for t in entry.tensors)}): inputs, then outputs, of which new "
        "arrays are made if they are left out. Returns the outputs."
    )
    compiled = numba.njit(nogil=True)(function)
    template = compiled.get_call_template

    def uncached(args: Any, kws: Any) -> Any:
        _refuse_cache(name)
        return template(args, kws)

    compiled.get_call_template = uncached
    return compiled


def _python_text(entry: _Entry, number: int, places: tuple[int, ...]) -> str:
    """The function in Python, as Numba compiles it."""
    names = [t.name for t in entry.tensors]
    if not all(n.isidentifier() and not keyword.iskeyword(n) and n[0] != "_" for n in names):
        names = [f"x{k}" for k in range(len(names))]
    sizes = [math.prod(s) * d.itemsize for s, d in zip(entry.shapes, entry.dtypes, strict=True)]
    outputs = range(entry.inputs, len(names))
    given = [*names[: entry.inputs], *(f"{n}=None" for n in names[entry.inputs :])]
    arrays = [f"_a{k}" for k in range(len(names))]
    lines = [f"def _function({', '.join(given)}):"]
    lines += [f"_a{k} = _argument{k}({name})" for k, name in enumerate(names)]
    for k in outputs:
        for other in range(k):
            if sizes[k] and sizes[other]:
                one, two = (f"_a{j}.ctypes.data, {sizes[j]}" for j in (k, other))
                lines.append(f"if _near({one}, {two}): raise _Overlapping({number}, {k}, {other})")
    lines.append(f"_status, _site, _value = _call(({', '.join(arrays)},))")
    poor = str(entry.entry.error(NO_MEMORY, 0, 0))
    lines.append(f"if _status == {NO_MEMORY}: raise MemoryError({poor!r})")
    lines.append(f"if _status != 0: raise _Failed({number}, _site, _value)")
    returned = ", ".join(arrays[entry.inputs + place] for place in places)
    lines.append(f"return _Results({returned})" if len(places) > 1 else f"return {returned}")
    return "\n    ".join(lines)


def _in_python(executor: Executor, entry: _Entry, places: tuple[int, ...], unchecked: bool) -> Any:
    """The function for programs that Numba is told not to compile."""
    names = [t.name for t in entry.tensors]
    outputs = range(entry.inputs, len(names))

    def call(*arrays: Any, **named: Any) -> Any:
        given = dict(zip(names, arrays, strict=False)) | named
        for k in outputs:
            if given.get(names[k]) is None:
                if names[k] in entry.checked.uninitialised:
                    raise ArgumentError(entry.uninitialised(k))
                given[names[k]] = np.empty(entry.shapes[k], entry.dtypes[k])
        executor(
            *(given[n] for n in names[: entry.inputs]),
            outputs=tuple(given[names[k]] for k in outputs),
            wanted=tuple(names[k] for k in outputs),
            unchecked=unchecked,
        )
        return executor.results(places)(tuple(given[names[entry.inputs + k]] for k in places))

    return call


def _caller(entry: _Entry) -> Any:
    """Calls the native entry on a tuple of arrays: its result, and what it says of an error."""
    address = entry.entry.address

    def call(context: Any, arrays: Any) -> Any:
        kinds = arrays.types

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            addresses = cgutils.alloca_once(builder, word, len(kinds))
            for k, kind in enumerate(kinds):
                array = make_array(kind)(context, builder, builder.extract_value(args[0], k))
                place = builder.gep(addresses, [ir.Constant(word, k)])
                builder.store(builder.ptrtoint(array.data, word), place)
            error = cgutils.alloca_once(builder, word, 2)
            pointer = ir.IntType(8).as_pointer()
            type_ = ir.FunctionType(ir.IntType(32), [pointer, pointer]).as_pointer()
            function = context.add_dynamic_addr(builder, address, "tcl")
            status = builder.call(
                builder.bitcast(function, type_),
                [builder.bitcast(each, pointer) for each in (addresses, error)],
            )
            said = [builder.load(builder.gep(error, [ir.Constant(word, k)])) for k in (0, 1)]
            return context.make_tuple(builder, signature.return_type, (status, *said))

        return types.Tuple((types.int32, types.int64, types.int64))(arrays), generate

    return intrinsic(call)


# Whether two pieces of memory share a byte: the address and the size of each.
_near = numba.njit(lambda one, size, other, width: one < other + width and other < one + size)


def _argument(number: int, position: int) -> Any:
    """A function that gives the array of an argument, checked; an output's is new for None."""
    entry = _entries[number]
    shape, strides = entry.shapes[position], entry.strides[position]
    unaligned = entry.dtypes[position].alignment - 1

    def argument(array: Any) -> Any:
        raise NotImplementedError

    def typed(array: Any) -> Any:
        if position >= entry.inputs and isinstance(array, types.NoneType | types.Omitted):
            return _new_output(entry, position)
        if (
            position < entry.inputs
            and not shape
            and isinstance(array, types.Number | types.Boolean)
        ):
            return _from_number(number, position, array)
        _check_type(entry, position, array)
        row_major = array.layout == "C" or math.prod(shape) == 0

        def checked(array: Any) -> Any:
            fits = array.shape == shape and not array.ctypes.data & unaligned
            if not row_major:
                for axis in range(len(shape)):
                    fits = fits and (shape[axis] < 2 or array.strides[axis] == strides[axis])
            if not fits:
                raise UnfitError(number, position, array.shape, array.strides)
            return array

        def aligned(array: Any) -> Any:  # Numba has no types for what is in an empty tuple
            if array.ctypes.data & unaligned:
                raise UnfitError(number, position, (), ())
            return array

        return checked if shape else aligned

    overload(argument, strict=False)(typed)
    return argument


def _check_type(entry: _Entry, position: int, array: Any) -> None:
    """Raises ``TypingError`` for a type of Numba that this argument cannot have."""
    what, tensor = entry.what(position), entry.tensors[position]
    if not isinstance(array, types.Array):
        raise TypingError(f"{what} has to be a NumPy array, not {array}")
    if array.dtype != numba.from_dtype(entry.dtypes[position]):
        raise TypingError(
            f"{what} is {tensor.type}, but an array of {array.dtype} was given; "
            f"convert it with .astype(numpy.{entry.dtypes[position].name})"
        )
    if array.ndim != tensor.rank:
        raise TypingError(
            f"{what} has {plural(tensor.rank, 'dimension')}, but an array of {array.ndim} was given"
        )
    if position >= entry.inputs and not array.mutable:
        raise TypingError(f"{what} is read-only; pass an array that can be written")


def _new_output(entry: _Entry, position: int) -> Any:
    """What gives a new array for an output."""
    if entry.tensors[position].name in entry.checked.uninitialised:
        raise TypingError(entry.uninitialised(position))
    shape, dtype = entry.shapes[position], entry.dtypes[position]
    return lambda array: np.empty(shape, dtype)


def _from_number(number: int, position: int, kind: Any) -> Any:
    """What makes an array of rank 0 of a number."""
    entry = _entries[number]
    dtype, type_ = entry.dtypes[position], entry.tensors[position].type
    is_float = type_.is_float
    wider = types.Integer | types.Float if is_float else types.Integer
    if numba.from_dtype(dtype) != kind and (type_.is_bool or not isinstance(kind, wider)):
        raise TypingError(
            f"{entry.what(position)} is {type_}, but a number of {kind} was given; convert it"
        )

    def converted(array: Any) -> Any:
        found = np.empty((), dtype)
        found[()] = array
        value = found[()]
        if (np.isinf(value) and not np.isinf(array)) if is_float else value != array:
            raise NumberError(number, position)
        return found

    return converted


class _Compiling(event.Listener):  # type: ignore[misc]
    """The functions that Numba compiles just now, each for the one before it. It does so in one
    thread at a time."""

    def __init__(self) -> None:
        self.functions: list[Any] = []

    def on_start(self, event: Any) -> None:
        self.functions.append(event.data["dispatcher"])

    def on_end(self, event: Any) -> None:
        self.functions.pop()


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def _refuse_cache(name: str) -> None:
    """Raises ``TypingError`` if the function that calls this kernel is to be kept. Of those that
    call that one, each keeps the error for good, and might be called without: they are left to
    Numba, which finds the address."""
    caller = _compiling.functions[-1] if _compiling.functions else None
    if caller is not None and caller.stats.cache_path is not None:
        raise TypingError(
            f"{caller.py_func.__name__} has cache=True and calls {name}, a kernel in the memory "
            "of this process; leave out cache=True"
        )
