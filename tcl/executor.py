"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tcl.arguments import Argument, Array, input_arrays, output_arrays
from tcl.codegen.cpu.launch import DIRECT, HEAD, Launcher, address_of, word_at
from tcl.codegen.cpu.ready import ready
from tcl.codegen.dtypes import numpy_dtype
from tcl.codegen.errors import ArgumentError
from tcl.codegen.options import MappingOptions
from tcl.grammar.sized import SizedDef

Strides: TypeAlias = tuple[tuple[int, ...], ...]
"""Of each array, in bytes; inputs, then outputs."""


class Executor:
    """A callable kernel.

    ``executor(*inputs)`` returns the output (or a tuple of outputs, in the order of the def);
    ``outputs=`` writes into existing arrays. Inputs must have the sizes it was compiled for.
    Arrays may have any strides: kernels are compiled for strides as they come up, and kept.
    Safe to call from several threads at once.
    """

    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        self._sized = sized
        self._options = options
        self._kernels: dict[tuple[bool, Strides], Launcher] = {}
        self._lock = threading.Lock()
        self._repeats: list[Repeat | None] = [None, None]
        """The last call that went well, checked and unchecked."""

    @property
    def options(self) -> MappingOptions:
        """The mapping options that the kernel is built with."""
        return self._options

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        return self._sized

    def __call__(
        self,
        *inputs: Argument,
        outputs: Sequence[Array] | None = None,
        unchecked: bool = False,
    ) -> Array | tuple[Array, ...]:
        """Run the kernel.

        ``unchecked`` leaves off the run-time checks of data-dependent subscripts: with an index
        out of range, memory that belongs to nobody is then read. Raises ``ArgumentError`` for
        arguments that do not fit, ``IndexError`` for a data-dependent subscript out of range.
        """
        repeat = self._repeats[1 if unchecked else 0]
        if repeat is not None:
            results = repeat(inputs, outputs)
            if results is not None:
                return results[0] if len(results) == 1 else results
        arrays = input_arrays(self._sized.checked, inputs)
        for tensor, array in zip(self._sized.checked.inputs, arrays, strict=True):
            if array.shape != self._sized.shapes[tensor.name]:
                raise ArgumentError(
                    f"input '{tensor.name}' of {self._sized.checked.name} has shape "
                    f"{self._sized.shapes[tensor.name]} in this executor, "
                    f"but an array of shape {array.shape} was given"
                )
        return self._first(arrays, outputs, unchecked)

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array] | None, *, unchecked: bool = False
    ) -> Array | tuple[Array, ...]:
        """Run on inputs that are known to fit."""
        repeat = self._repeats[1 if unchecked else 0]
        if repeat is not None:
            results = repeat(tuple(inputs), outputs)
            if results is not None:
                return results[0] if len(results) == 1 else results
        return self._first(inputs, outputs, unchecked)

    def _first(
        self, inputs: Sequence[Array], outputs: Sequence[Array] | None, unchecked: bool
    ) -> Array | tuple[Array, ...]:
        """A call that is not like the last one: everything about it is looked at."""
        results = output_arrays(self._sized, inputs, outputs)
        arrays = (*inputs, *results)
        kernel = self.kernel(tuple(array.strides for array in arrays), unchecked=unchecked)
        kernel(arrays)
        fresh = not self._sized.checked.uninitialised
        self._repeats[1 if unchecked else 0] = Repeat(kernel, inputs, results, fresh)
        return results[0] if len(results) == 1 else results

    def prepare(self, inputs: Sequence[Array]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        outputs = (
            contiguous(self._sized.shapes[t.name], numpy_dtype(t.type).itemsize)
            for t in self._sized.checked.outputs
        )
        self.kernel((*(a.strides for a in inputs), *outputs))

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The kernel for arrays of these strides (in bytes; inputs, then outputs).

        Compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` for options that do not apply.
        """
        key = (unchecked, strides)
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(key) or ready(
                    self._sized, self._options, strides, unchecked=unchecked
                )
                self._kernels[key] = kernel
        return kernel


class Repeat:
    """Calls like one that went well, with its types, shapes and strides.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, whether they overlap, whether outputs may be written.
    """

    __slots__ = (
        "_call",
        "_empty",
        "_expected",
        "_inputs",
        "_kernel",
        "_numbers",
        "_outputs",
        "_pairs",
    )

    def __init__(
        self, kernel: Launcher, inputs: Sequence[Array], outputs: Sequence[Array], fresh: bool
    ) -> None:
        """``fresh`` says whether outputs may be new arrays."""
        self._kernel = kernel
        self._call = kernel.call
        self._inputs = len(inputs)
        self._expected = tuple(
            (a.dtype, a.shape, a.strides, a.dtype.alignment - 1, *_reach(a))
            for a in (*inputs, *outputs)
        )
        self._empty = tuple((a.shape, a.dtype) for a in outputs) if fresh else None
        self._outputs = len(outputs)
        self._numbers = tuple(range(len(self._expected)))
        self._pairs = tuple((o, tuple(range(o))) for o in range(len(inputs), len(self._expected)))

    def __call__(
        self, inputs: tuple[Argument, ...], outputs: Sequence[Array] | None
    ) -> tuple[Array, ...] | None:
        """Run, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        results = self._results(outputs) if type(outputs) is not tuple else outputs
        if results is None or len(inputs) != self._inputs or len(results) != self._outputs:
            return None
        frame = self._kernel.frame()
        if not self._fill(frame.pointers, inputs, results, outputs is None):
            self._kernel.frames.append(frame)
            return None
        if self._call(frame.pointers_at, frame.error_at):
            raise self._kernel.failed(frame)
        self._kernel.frames.append(frame)
        return results

    def _fill(
        self,
        pointers: ctypes.Array[ctypes.c_uint64],
        inputs: tuple[Argument, ...],
        results: tuple[Array, ...],
        fresh: bool,
    ) -> bool:
        """Write the arrays' addresses, if this call is alike and surely right."""
        starts, stops = [], []
        for position, array, (dtype, shape, strides, unaligned, low, high) in zip(
            self._numbers, inputs + results, self._expected, strict=True
        ):
            if (
                type(array) is not np.ndarray
                or array.dtype != dtype
                or array.shape != shape
                or array.strides != strides
            ):
                return False
            address = word_at(id(array) + HEAD).value if DIRECT else address_of(array)
            if address & unaligned:
                return False
            pointers[position] = address
            starts.append(address + low)
            stops.append(address + high)
        if fresh:
            return True
        for output, others in self._pairs:
            start, stop = starts[output], stops[output]
            for other in others:
                if start < stops[other] and starts[other] < stop:
                    return False
        return all([array.flags.writeable for array in results])

    def _results(self, outputs: Sequence[Array] | None) -> tuple[Array, ...] | None:
        if isinstance(outputs, list):
            return tuple(outputs)
        if outputs is not None or self._empty is None:
            return None
        try:
            return tuple([np.empty(shape, dtype) for shape, dtype in self._empty])
        except MemoryError:
            return None


def _reach(array: Array) -> tuple[int, int]:
    """The bytes that an array's elements span, from its first element on: (first, stop)."""
    if array.size == 0:
        return 0, 0
    ends = [s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + array.itemsize


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of a new array."""
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))
