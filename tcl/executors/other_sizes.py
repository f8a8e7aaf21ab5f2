"""Calls at other sizes than the last one's, where these are of a class that has a kernel.

A def whose sizes vary may be called with other sizes each time. Such calls need no executor: what
they have to be like follows from their sizes, by formulas that are compiled once for a class. Most
of what such a call takes is waiting for memory that the kernel before it drove out of the caches:
so little is done here, and little is touched.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.arrays.arguments import LARGE, output_arrays
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.run.memory import POOLED, large
from tcl.executors.calls import MOST_QUICK, result_of
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import kind_of
from tcl.grammar.tree.checked import CheckedDef

if TYPE_CHECKING:
    from tcl.executors.varying import Class, LoadedClass

_ARRAY = np.ndarray
_ROW_MAJOR = 0x101
"""NumPy's flags of an array that is contiguous in C's order and aligned."""


class OtherSizes:
    """Calls with NumPy's row-major arrays, all outputs of which are wanted, of one def."""

    def __init__(
        self,
        definition: CheckedDef,
        varying: Sequence[str],
        find: Callable[[Mapping[str, int]], Class | None],
    ) -> None:
        """``find`` gives the class of some sizes, if it has a kernel."""
        self._definition, self._find = definition, find
        self._make = result_of(definition, tuple(range(len(definition.outputs))))
        self._inputs = [numpy_dtype(t.type) for t in definition.inputs]
        self._outputs = [numpy_dtype(t.type) for t in definition.outputs]
        dims = {
            dim: (place, axis)
            for place, tensor in enumerate(definition.inputs)
            for axis, dim in enumerate(tensor.dims or ())
        }
        self._where = [(name, *dims[name]) for name in varying]
        """Each size that varies, and an input with its dimension that tell it."""
        self._known: dict[tuple[object, ...], tuple[Class, LoadedClass]] = {}
        """By whether subscripts are unchecked, and the kinds of the sizes: at most some dozens."""
        self._recent: dict[tuple[int, ...], None] = {}
        """The sizes of the latest calls, oldest first, in the order of ``_where``."""

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, unchecked: object) -> Any:
        """Run, and return the outputs; None, and nothing done, for calls of another kind, and if
        one of the latest calls had the same sizes: an executor is to make such calls quick. Raises
        ``ArgumentError`` for outputs that do not fit, and ``IndexError``, as the kernel does."""
        if len(inputs) != len(self._inputs) or not isinstance(unchecked, bool):
            return None
        sizes: dict[str, int] = {}
        kinds: list[int] = []
        try:
            for name, place, axis in self._where:
                sizes[name] = size = inputs[place].shape[axis]
                kinds.append(kind_of(size))
        except (AttributeError, IndexError, TypeError):  # no array, or of another rank
            return None
        if tuple(sizes.values()) in self._recent:
            return None
        known = self._known.get((unchecked, *kinds)) or self._looked_up(sizes, unchecked)
        if known is None:
            return None
        class_, code = known
        shapes, new, *more = code.needs(sizes)
        for array, dtype, shape in zip(inputs, self._inputs, shapes, strict=True):
            if type(array) is not _ARRAY or array.shape != shape:
                return None
            given = array.dtype
            if given is not dtype and given != dtype:
                return None
            if array.flags.num & _ROW_MAJOR != _ROW_MAJOR:
                return None
        if outputs is None:
            results = self._new(new)
        else:
            results = self._row_major(class_.sized(sizes)[0], inputs, outputs)
        if results is None:
            return None
        code.run(sizes, inputs + results, *more)
        self.called(sizes)
        return self._make(results)

    def called(self, sizes: Mapping[str, int]) -> None:
        self._recent[tuple([sizes[name] for name, _, _ in self._where])] = None
        if len(self._recent) > MOST_QUICK:
            # Unless another thread is there as well.
            with contextlib.suppress(KeyError, RuntimeError, StopIteration):
                del self._recent[next(iter(self._recent))]

    def come_again(self, sizes: Mapping[str, int]) -> bool:
        """Whether one of the latest calls was at these sizes."""
        return tuple([sizes[name] for name, _, _ in self._where]) in self._recent

    def tells(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """What mostly tells that a call is at other sizes than these: the place of an input, one of
        its dimensions, and its size."""
        name, place, axis = self._where[0]
        return place, axis, sizes[name]

    def _looked_up(
        self, sizes: Mapping[str, int], unchecked: bool
    ) -> tuple[Class, LoadedClass] | None:
        class_ = self._find(sizes)
        code = None if class_ is None else class_.code(unchecked=unchecked)
        if class_ is None or code is None:
            return None
        # At once for all of the class: another kind of its sizes need not be looked up.
        kinds = (class_.classes[name].kinds for name in sizes)
        for each in itertools.product((unchecked,), *kinds):
            self._known[each] = class_, code
        return class_, code

    def _new(self, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[Any, ...] | None:
        """New outputs of so many bytes and these shapes; None for what is looked at closely."""
        if self._definition.uninitialised:
            return None
        results = []
        for dtype, (size, shape) in zip(self._outputs, wanted, strict=True):
            if size < POOLED:
                results.append(np.empty(shape, dtype))
                continue
            if size > LARGE:
                return None
            try:
                results.append(large(size)(shape, dtype))
            except MemoryError:
                return None
        return tuple(results)

    def _row_major(
        self, sized: SizedDef, inputs: tuple[Any, ...], outputs: Any
    ) -> tuple[Any, ...] | None:
        """The caller's arrays; None for other ones than NumPy's row-major ones."""
        results = tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)
        if not all(type(each) is np.ndarray and each.flags.c_contiguous for each in results):
            return None
        return output_arrays(sized, inputs, results, self._definition.outputs)
