"""A def as an operation of JAX's programs: what it makes of shapes, and what of it is compiled.

A program that is traced has it as ``tcl``, a primitive of its own, and not as ``jax.ffi.ffi_call``:
so shapes are known without a kernel, a kernel is compiled when a program is lowered for a CPU, and
what cannot be is refused with the def's name.

Kernels are XLA's foreign functions, which compiled programs call without Python. The function that
XLA calls is ``xla.c`` of the CPU's runtime, the same for all kernels: it is loaded for each kernel
anew, with a variable that says what the kernel's arguments have to be.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import ManualAxisType, NamedSharding, PartitionSpec

from tcl.arrays.arguments import Wanted, check_count, wanted_places
from tcl.arrays.libraries import shadow
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.native import NativeEntry, returning
from tcl.codegen.cpu.run.ready import ingredients
from tcl.codegen.cpu.runtime import structs
from tcl.codegen.cpu.runtime.library import load
from tcl.codegen.cpu.runtime.structs import fill
from tcl.common.errors import ArgumentError, CompileError
from tcl.common.forks import free_lock
from tcl.executors.calls import contiguous
from tcl.executors.dispatch import Origin, check_functional
from tcl.executors.executor import Executor
from tcl.executors.varying import VaryingExecutor
from tcl.grammar.syntax.types import ScalarType
from tcl.grammar.tree.checked import CheckedDef

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
        texts = _messages(entry.launcher)
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


_MESSAGE = 2000
"""Bytes of the longest format that the handler does not cut, with room for a value."""


def _messages(launcher: Launcher) -> list[bytes]:
    """What each of a kernel's checks says."""
    return [_as_format(launcher.failure(k, -1)) for k in range(len(launcher.sites))]


def _as_format(error: Exception) -> bytes:
    """What a failed check says, with its notes, as a format whose one argument is the value;
    ``error`` is the one for -1, which is another number where values are unsigned."""
    message = str(error)
    value, kind = ("-1", "%lld") if message.startswith("index -1 ") else (str(2**64 - 1), "%llu")
    before, _, after = message.partition(value)
    found = f"{before}{kind}{after}".encode()
    for note in getattr(error, "__notes__", ()):
        longer = found + f"\n{note}".replace("%", "%%").encode()
        found = longer if len(longer) < _MESSAGE else found
    return found


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


class Operation:
    """A def as JAX's programs name it. Two are the same only if they are one object."""

    def __init__(self, origin: Origin, checked: CheckedDef, wanted: Wanted) -> None:
        """Raises ``ArgumentError`` for a def that is no function of arrays, and for ``wanted`` that
        names none of its outputs."""
        check_functional(checked, "a function of JAX")
        self.checked = checked
        everything = range(len(checked.outputs))
        self._places = everything if wanted is None else wanted_places(checked, wanted)
        self.returned = tuple(checked.outputs[place] for place in self._places)
        """Its outputs."""
        self._kernels, self._unchecked = origin.kernels, origin.unchecked
        self.eager = jax.jit(lambda *inputs: primitive.bind(*inputs, operation=self))
        """The operation on arrays, outside of every program."""

    def __repr__(self) -> str:
        return self.checked.name

    def executor(self, inputs: Sequence[Any]) -> Executor:
        """The executor for inputs of these shapes, which has compiled nothing yet. Raises
        ``ArgumentError`` and ``RangeInferenceError`` for inputs that do not fit."""
        checked = self.checked
        check_count(checked, inputs)
        for tensor, given in zip(checked.inputs, inputs, strict=True):
            what = f"input '{tensor.name}' of {checked.name}"
            if not isinstance(given.dtype, np.dtype):  # a random key, for instance
                raise ArgumentError(
                    f"{what} is {tensor.type}, but an array of {given.dtype} was given"
                )
            if not all(isinstance(extent, int) for extent in given.shape):
                raise ArgumentError(
                    f"{what} has the shape ({', '.join(map(str, given.shape))}), but kernels "
                    "need sizes that are numbers; export a program for each size"
                )
        standing = [_standing(tuple(given.shape), given.dtype) for given in inputs]
        found, _ = self._kernels.executor(checked.name, standing)
        return cast(Executor, found)

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs' shapes and element types; they vary over the mesh axes that inputs do."""
        shapes = self.executor(inputs).sized.shapes
        sharding = NamedSharding(jax.sharding.get_abstract_mesh(), PartitionSpec())
        varies = ManualAxisType(varying=frozenset[Any]().union(*map(_mesh_axes, inputs)))
        return [
            jax.core.ShapedArray(
                *(shapes[t.name], numpy_dtype(t.type)), sharding=sharding, manual_axis_type=varies
            )
            for t in self.returned
        ]

    def target(self, inputs: Sequence[Any]) -> str:
        """The name under which XLA finds the kernel for inputs of these shapes, which is compiled
        if there is none. It is made of all that the kernel is made of."""
        executor, checked = self.executor(inputs), self.checked
        shapes = executor.sized.shapes
        tensors = (*checked.inputs, *checked.outputs)
        strides = tuple(contiguous(shapes[t.name], t.type.itemsize) for t in tensors)
        launcher = executor.kernel(strides, unchecked=self._unchecked)
        made_of = ingredients(
            *(executor.sized, executor.options, strides, self._unchecked, self._kernels.threads)
        )
        # What a handler is made of besides the kernel: what it says of a failed check, and returns.
        names = f"{' '.join(t.name for t in tensors)} {list(self._places)} {_messages(launcher)}"
        # Of a class of sizes: another kernel, which may do the same work in another order.
        serves = str(executor.serves) if isinstance(executor, VaryingExecutor) else ""
        digest = hashlib.sha256(f"{made_of.digest} {names}{serves}".encode()).hexdigest()
        stem = re.sub(r"[^A-Za-z0-9_]", "_", checked.name)[:_LONGEST]

        def make() -> Handler:
            inputs, outputs = (
                [(t.type, shapes[t.name]) for t in side] for side in (checked.inputs, self.returned)
            )
            entry = returning(launcher, executor.sized, self._places)
            return Handler(entry, inputs, outputs)

        return _registered(f"tcl_{stem}_{digest}", make)


_LONGEST = 64
"""Characters of a def's name that a target's begins with."""


def _standing(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A NumPy array that stands for one of JAX, in row-major order. Nothing reads its values."""
    return shadow(_ALIGNED, shape, contiguous(shape, dtype.itemsize), dtype)


_ALIGNED = 1 << 12
"""An address for what has none."""


_handlers: dict[str, Handler] = {}
"""By name. XLA keeps what was registered as long as the process lives."""
_lock = free_lock()


def _registered(name: str, make: Callable[[], Handler]) -> str:
    """``name``, after making and registering the function, if there is none of this name yet."""
    with _lock:
        if name not in _handlers:
            handler = make()
            # Threads of XLA may still run it when Python clears its modules.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler.address), platform="cpu")
            _handlers[name] = handler
    return name


primitive = Primitive("tcl")
"""Takes the inputs of a def, and ``operation=``; gives a list of its outputs."""
primitive.multiple_results = True


def as_declared(operation: Operation, inputs: Sequence[Any]) -> list[Any]:
    """The inputs as the operation takes them, by what JAX can differentiate.

    Numbers that Python made, which have no element type of their own, get the declared one. Inputs
    that are the same on all devices of a mesh axis over which another one varies (in
    ``jax.shard_map``) are said to vary, too, as JAX's own operations do. Raises ``ArgumentError``.
    """
    types = [jax.typeof(each) for each in inputs]
    axes = frozenset[Any]().union(*map(_mesh_axes, types))
    found = []
    for tensor, each, type_ in zip(operation.checked.inputs, inputs, types, strict=False):
        if unreduced := type_.manual_axis_type.unreduced:
            raise ArgumentError(
                f"input '{tensor.name}' of {operation} must first be summed over the mesh axes "
                f"{', '.join(sorted(map(str, unreduced)))}, with jax.lax.psum"
            )
        if tensor.rank == 0 and type_.weak_type and tensor.type.is_float:
            each = jax.lax.convert_element_type(each, numpy_dtype(tensor.type))
        if any(type_.sharding.spec):  # a kernel takes it whole
            each = jax.reshard(each, PartitionSpec())
        for axis in sorted(axes - type_.manual_axis_type.varying, key=str):
            each = jax.lax.pcast(each, axis, to="varying")
        found.append(each)
    return [*found, *inputs[len(found) :]]


def _mesh_axes(type_: Any) -> frozenset[Any]:
    """The mesh axes over which an array varies, or its gradient does."""
    found: frozenset[Any] = type_.manual_axis_type.varying | type_.manual_axis_type.reduced
    return found


def _eager(*inputs: Any, operation: Operation) -> Any:
    with jax.disable_jit(False):
        return operation.eager(*inputs)


def _lower(context: Any, *operands: Any, operation: Operation) -> Any:
    return jax.ffi.ffi_lowering(operation.target(context.avals_in))(context, *operands)


def _refuse(context: Any, *_: Any, operation: Operation) -> Any:
    where = " and ".join(context.module_context.platforms)
    raise ArgumentError(
        f"{operation} of tcl.jax.call runs only on a CPU, but this program is for {where}; give "
        "it arrays on a CPU: jax.device_put(x, jax.devices('cpu')[0])"
    )


def _batched(inputs: Sequence[Any], axes: Sequence[Any], *, operation: Operation) -> Any:
    """A call for each element of the batch, one after another."""
    batches = {
        k: jax.numpy.moveaxis(inputs[k], axis, 0) for k, axis in enumerate(axes) if axis is not None
    }

    def element(parts: dict[int, Any]) -> Any:
        each = [parts.get(k, whole) for k, whole in enumerate(inputs)]
        return primitive.bind(*each, operation=operation)

    outputs = jax.lax.map(element, batches)
    return outputs, [0] * len(outputs)


primitive.def_impl(_eager)
primitive.def_abstract_eval(lambda *inputs, operation: operation.outputs(inputs))
mlir.register_lowering(primitive, _refuse)
mlir.register_lowering(primitive, _lower, platform="cpu")
batching.primitive_batchers[primitive] = _batched
