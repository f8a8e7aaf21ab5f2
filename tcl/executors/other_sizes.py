"""Calls at other sizes than the last one's, where these are of a class that has a kernel.

A def whose sizes vary may be called with other sizes each time. Such calls need no executor: what
they have to be like follows from their sizes, by formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tcl.arrays.arguments import new_output, output_arrays
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.memory import empty
from tcl.executors.calls import result_of
from tcl.grammar.checked import CheckedDef
from tcl.grammar.sized import SizedDef


class Known(Protocol):
    """A class of sizes."""

    def sized(self, sizes: Mapping[str, int]) -> tuple[SizedDef, Any]:
        """The def for some of the sizes, as far as a call needs it, first."""

    def known(self, sizes: Mapping[str, int], *, unchecked: bool) -> Launcher | None:
        """The kernel for row-major arrays, if there is one."""


class OtherSizes:
    """Calls with NumPy's row-major arrays, all outputs of which are wanted, of one def."""

    def __init__(
        self,
        definition: CheckedDef,
        varying: Sequence[str],
        find: Callable[[Mapping[str, int]], Known | None],
    ) -> None:
        """``find`` gives the class of some sizes, if it has a kernel."""
        self._definition, self._find = definition, find
        self._make = result_of(definition, tuple(range(len(definition.outputs))))
        self._dtypes = [numpy_dtype(t.type) for t in definition.inputs]
        dims = {
            dim: (place, axis)
            for place, tensor in enumerate(definition.inputs)
            for axis, dim in enumerate(tensor.dims or ())
        }
        self._where = [(name, *dims[name]) for name in varying]
        """Each size that varies, and an input with its dimension that tell it."""
        self.latest: Mapping[str, int] = {}
        """The sizes of the last call whose executor, if it has one, is not quick yet."""

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, unchecked: object) -> Any:
        """Run, and return the outputs; None, and nothing done, for calls of another kind, and if
        the last call had the same sizes: then an executor is to make such calls quick. Raises
        ``ArgumentError`` for outputs that do not fit, and ``IndexError``, as the kernel does."""
        if len(inputs) != len(self._dtypes) or not isinstance(unchecked, bool):
            return None
        for array, dtype in zip(inputs, self._dtypes, strict=True):
            if type(array) is not np.ndarray or array.dtype != dtype:
                return None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
        try:
            sizes = {name: inputs[place].shape[axis] for name, place, axis in self._where}
        except IndexError:
            return None
        class_ = None if sizes == self.latest else self._find(sizes)
        if class_ is None:
            return None
        sized, _ = class_.sized(sizes)
        tensors = self._definition.inputs
        if any(a.shape != sized.shapes[t.name] for a, t in zip(inputs, tensors, strict=True)):
            return None
        results = self._outputs(sized, inputs, outputs)
        launcher = class_.known(sizes, unchecked=unchecked)
        if results is None or launcher is None:
            return None
        launcher((*inputs, *results))
        self.latest = sizes
        return self._make(results)

    def _outputs(
        self, sized: SizedDef, inputs: tuple[Any, ...], outputs: Any
    ) -> tuple[Any, ...] | None:
        tensors = self._definition.outputs
        if outputs is None:
            if self._definition.uninitialised:
                return None
            return tuple([new_output(sized, tensor, empty) for tensor in tensors])
        results = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
        if not all(type(each) is np.ndarray and each.flags.c_contiguous for each in results):
            return None
        return output_arrays(sized, inputs, results, tensors)
