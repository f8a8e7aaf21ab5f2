"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tcl.arguments import Argument, Array, input_arrays, output_arrays
from tcl.codegen.cpu.kernel import CpuKernel, compile_cpu
from tcl.codegen.dtypes import numpy_dtype
from tcl.codegen.errors import ArgumentError
from tcl.codegen.options import MappingOptions
from tcl.grammar.sized import SizedDef


class Executor:
    """A callable kernel.

    ``executor(*inputs)`` returns the output (or a tuple of outputs, in the order of the def);
    ``outputs=`` writes into existing arrays. Inputs must have the sizes it was compiled for.
    Arrays may have any strides: kernels are compiled for strides as they come up, and kept.
    Safe to call from several threads at once. A copy, pickled or not, compiles anew.
    """

    def __init__(self, sized: SizedDef, options: MappingOptions) -> None:
        self._sized = sized
        self._options = options
        self._kernels: dict[tuple[bool, tuple[tuple[int, ...], ...]], CpuKernel] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self._sized, self._options)

    def __repr__(self) -> str:
        return f"<tcl executor: {self._sized.checked.name}, {self._options}>"

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
        arrays = input_arrays(self._sized.checked, inputs)
        for tensor, array in zip(self._sized.checked.inputs, arrays, strict=True):
            if array.shape != self._sized.shapes[tensor.name]:
                raise ArgumentError(
                    f"input '{tensor.name}' of {self._sized.checked.name} has shape "
                    f"{self._sized.shapes[tensor.name]} in this executor, "
                    f"but an array of shape {array.shape} was given"
                )
        return self.run(arrays, outputs, unchecked=unchecked)

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array] | None, *, unchecked: bool = False
    ) -> Array | tuple[Array, ...]:
        """Run on inputs that are known to fit."""
        results = output_arrays(self._sized, inputs, outputs)
        strides = tuple(array.strides for array in (*inputs, *results))
        self.kernel(strides, unchecked=unchecked)(inputs, results)
        return results[0] if len(results) == 1 else results

    def prepare(self, inputs: Sequence[Array]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        outputs = (
            contiguous(self._sized.shapes[t.name], numpy_dtype(t.type).itemsize)
            for t in self._sized.checked.outputs
        )
        self.kernel((*(a.strides for a in inputs), *outputs))

    def kernel(self, strides: tuple[tuple[int, ...], ...], *, unchecked: bool = False) -> CpuKernel:
        """The kernel for arrays of these strides (in bytes; inputs, then outputs).

        Compiled if it has not been yet. Raises ``OptionsError`` for options that do not apply.
        """
        key = (unchecked, strides)
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(key) or self._compile(strides, unchecked)
                self._kernels[key] = kernel
        return kernel

    def _compile(self, strides: tuple[tuple[int, ...], ...], unchecked: bool) -> CpuKernel:
        checked = self._sized.checked
        names = [t.name for t in checked.inputs + checked.outputs]
        return compile_cpu(
            self._sized,
            self._options,
            strides=dict(zip(names, strides, strict=True)),
            unchecked=unchecked,
        )


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of a new array."""
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))
