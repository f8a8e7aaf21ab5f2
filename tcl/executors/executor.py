"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from tcl.arrays.arguments import Array, Scalar
from tcl.arrays.given import Given, given_inputs, given_outputs
from tcl.arrays.libraries import HOST
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.ready import ready
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import MappingOptions
from tcl.common.user_input import check_flag, in_order
from tcl.executors import machine
from tcl.grammar.sized import SizedDef
from tcl.selection.suggested_options import DEFAULT, Choices, Chosen, applied

Strides: TypeAlias = tuple[tuple[int, ...], ...]
"""Of each array, in bytes; inputs, then outputs."""


_A = TypeVar("_A")
_K = TypeVar("_K")
_L = TypeVar("_L")


class Calls(ABC, Generic[_A]):
    """A callable kernel for arrays on one device: what all executors do.

    Safe to call from several threads at once.
    """

    def __init__(self, sized: SizedDef, options: Chosen) -> None:
        self._sized = sized
        self._chosen = options
        if isinstance(options, Choices):
            options = options.preferred or DEFAULT
        self._options: MappingOptions = options
        self._lock = threading.Lock()
        self._repeats: list[Callable[[Any, Any], Any] | None] = [None, None]
        """Does a call if it is like the last one that went well, checked and unchecked."""

    def __repr__(self) -> str:
        return f"<tcl executor: {self._sized.checked.name}, {self._options}>"

    @property
    def options(self) -> MappingOptions:
        """The mapping options that the last kernel was built with. Where nobody gave them, others
        may be used for other strides."""
        return self._options

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        return self._sized

    def __call__(
        self,
        /,
        *inputs: _A | Scalar,
        outputs: Sequence[_A] | None = None,
        unchecked: bool = False,
        **named: _A | Scalar,
    ) -> _A | tuple[_A, ...]:
        """Run the kernel.

        Inputs come in the order of the def, by their names (``A=a``), or the first ones this way
        and the others that way; one that is called ``outputs`` or ``unchecked`` by its place.
        ``unchecked`` leaves off the run-time checks of data-dependent subscripts: with an index
        out of range, memory that belongs to nobody is then read. Raises ``ArgumentError`` for
        arguments that do not fit, ``IndexError`` for a data-dependent subscript out of range.
        """
        if named:
            inputs = in_order(self._sized.checked, inputs, named)
        if unchecked is False:  # as again(), whose call takes 40 ns
            repeat = self._repeats[0]
        else:
            check_flag("unchecked", unchecked)
            repeat = self._repeats[1]
        if repeat is not None:
            found: _A | tuple[_A, ...] | None = repeat(inputs, outputs)
            if found is not None:
                return found
        given = self._given(inputs)
        for tensor, view in zip(self._sized.checked.inputs, given.views, strict=True):
            if view.shape != self._sized.shapes[tensor.name]:
                raise ArgumentError(
                    f"input '{tensor.name}' of {self._sized.checked.name} has shape "
                    f"{self._sized.shapes[tensor.name]} in this executor, "
                    f"but an array of shape {view.shape} was given"
                )
        result: _A | tuple[_A, ...] = self.run(given, outputs, unchecked=unchecked)
        return result

    def run(self, given: Given, outputs: Any, *, unchecked: bool = False) -> Any:
        """Run on inputs that are known to fit."""
        foreign, tensors = given.kind.foreign, self._sized.checked.outputs
        if foreign is None:
            found = self.again(given.arrays, outputs, unchecked)
            return self._first(given, outputs, unchecked) if found is None else found
        if outputs is not None:  # whose memory is asked for first
            return self._first(given, outputs, unchecked)
        names = [f"output '{tensor.name}' of {self._sized.checked.name}" for tensor in tensors]
        for what, tensor in zip(names, tensors, strict=True):
            foreign.check_new(what, tensor.type)
        found = self.again(given.arrays, None, unchecked)
        if found is None:
            found = self._first(given, None, unchecked)
        if len(tensors) == 1:
            return foreign.returned(names[0], found)
        return tuple(foreign.returned(*each) for each in zip(names, found, strict=True))

    def again(self, inputs: tuple[Any, ...], outputs: Any, unchecked: bool) -> Any:
        """Run if this call is like the last one; None, and nothing done, if it is not."""
        if unchecked is False:
            repeat = self._repeats[0]
        else:
            check_flag("unchecked", unchecked)
            repeat = self._repeats[1]
        return None if repeat is None else repeat(inputs, outputs)

    def _kept(self, kernels: dict[_K, _L], key: _K, make: Callable[[MappingOptions], _L]) -> _L:
        """The kernel of ``kernels`` for this key; made, of the first options that apply, if there
        is none yet."""
        found = kernels.get(key)
        if found is None:
            with self._lock:
                found = kernels.get(key)
                if found is None:
                    self._options, made = applied(self._chosen, make)
                    found = kernels[key] = made
        return found

    def _new_strides(self) -> Strides:
        """Of new outputs."""
        outputs, shapes = self._sized.checked.outputs, self._sized.shapes
        return tuple(contiguous(shapes[t.name], numpy_dtype(t.type).itemsize) for t in outputs)

    @abstractmethod
    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""

    @abstractmethod
    def _given(self, inputs: Sequence[Any]) -> Given:
        """The inputs of a call. Raises ``ArgumentError``."""

    @abstractmethod
    def _first(self, given: Given, outputs: Any, unchecked: bool) -> Any:
        """A call that is not like the last one: everything about it is looked at."""


class Executor(Calls[Any]):
    """A callable kernel for arrays in the host's memory: NumPy's, torch's.

    ``executor(*inputs)`` returns the output (or a tuple of outputs, in the order of the def), of
    the library that the inputs are of; ``outputs=`` writes into existing arrays. Inputs must have
    the sizes it was compiled for.
    Arrays may have any strides: kernels are compiled for strides as they come up, and kept.
    Safe to call from several threads at once. A copy, pickled or not, compiles anew.

    ``threads`` is how many threads a call may use; None: what ``TCL_NUM_THREADS`` says, else all
    cores of this process. One call at a time has the others: calls beside it run on their own
    thread alone.
    """

    def __init__(self, sized: SizedDef, options: Chosen, threads: int | None = None) -> None:
        super().__init__(sized, options)
        self._most = thread_count(threads)
        self._kernels: dict[tuple[bool, Strides], Launcher] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self._sized, self._chosen, self._most)

    @property
    def threads(self) -> int:
        """The threads that a call uses: as many as it may, or one where more are not worth it.
        Known once a kernel is compiled; until then, how many it may use."""
        return max((k.threads for k in self._kernels.values()), default=self._most)

    def _given(self, inputs: Sequence[Any]) -> Given:
        given = given_inputs(self._sized.checked, inputs, machine.driver)
        if given.device != HOST:
            raise ArgumentError(
                f"this executor of {self._sized.checked.name} runs on the CPU, "
                f"but the inputs lie on cuda:{given.device}"
            )
        return given

    def _first(self, given: Given, outputs: Any, unchecked: bool) -> Any:
        results, views = given_outputs(self._sized, given, outputs)
        memory = (*given.views, *views)
        kernel = self.kernel(tuple(view.strides for view in memory), unchecked=unchecked)
        if outputs is not None:
            given.library.written(results)
        kernel(memory)
        if not given.copied:
            fresh = not self._sized.checked.uninitialised
            self._repeats[unchecked] = Repeat(kernel, given, (results, views), self._sized, fresh)
        if isinstance(outputs, tuple | list):  # the caller's own, of whichever class they are
            results = tuple(outputs)
        elif outputs is not None:
            results = (outputs,)
        return results[0] if len(results) == 1 else results

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        given = self._given(inputs)
        self.kernel((*(view.strides for view in given.views), *self._new_strides()))

    def numba(self, *, unchecked: bool = False) -> Any:
        """The kernel as a function for code that Numba compiles: of row-major arrays, inputs and
        then outputs, of which new ones are made if they are left out; it returns the outputs.
        ``tcl docs numba`` says more. Raises ``ArgumentError`` for types that Numba lacks."""
        from tcl.executors.numba_call import numba_function

        check_flag("unchecked", unchecked)
        return numba_function(self, unchecked=unchecked)

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The kernel for arrays of these strides (in bytes; inputs, then outputs).

        Compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` for options that were given and do not apply.
        """
        return self._kept(
            self._kernels,
            (unchecked, strides),
            lambda options: ready(
                self._sized, options, strides, unchecked=unchecked, threads=self._most
            ),
        )


class Repeat:
    """Calls like one that went well, with its library, types, shapes and strides.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, whether they overlap, whether outputs may be written.
    """

    __slots__ = (
        *("_addresses", "_call", "_count", "_empty", "_frames", "_inputs", "_kernel", "_likes"),
        *("_make", "_outputs", "_pairs", "_single", "_written"),
    )

    def __init__(
        self,
        kernel: Launcher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
        fresh: bool,
    ) -> None:
        """``results`` are the outputs, and as NumPy sees them; ``fresh`` says whether they may be
        new arrays."""
        outputs, views = results
        library = given.library
        self._kernel = kernel
        self._call = kernel.best_call
        self._frames = kernel.frames
        self._addresses = library.addresses
        self._written = library.written
        self._make = library.empty
        self._inputs = len(given.arrays)
        self._outputs = len(outputs)
        self._count = self._inputs + self._outputs
        self._single = len(outputs) == 1
        self._likes = tuple(
            library.like(array, view.dtype.alignment - 1)
            for array, view in zip((*given.arrays, *outputs), (*given.views, *views), strict=True)
        )
        new = tuple((sized.shapes[t.name], t.type) for t in sized.checked.outputs)
        self._empty = new if fresh else None
        self._pairs = distances(given.views, views)

    def __call__(self, inputs: tuple[Any, ...], outputs: Any) -> Any:
        """Run, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        results = outputs if type(outputs) is tuple else self._results(outputs)
        if results is None or len(inputs) != self._inputs or len(results) != self._outputs:
            return None
        addresses = self._addresses(inputs + results, self._likes)
        if addresses is None:
            return None
        if outputs is not None:
            for output, other, low, high in self._pairs:
                if low < addresses[output] - addresses[other] < high:
                    return None
            if not self._written(results):
                return None
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._kernel.frame()
        frame.pointers[0 : self._count] = addresses  # type: ignore[assignment]
        if self._call(frame.at):
            raise self._kernel.failed(frame)
        self._frames.append(frame)
        return results[0] if self._single else results

    def _results(self, outputs: Any) -> tuple[Any, ...] | None:
        if isinstance(outputs, list):
            return tuple(outputs)
        if outputs is not None or self._empty is None:
            return None
        make = self._make
        try:
            return tuple([make(shape, type_, HOST) for shape, type_ in self._empty])
        except (MemoryError, RuntimeError):  # torch's, of the same
            return None


def distances(
    inputs: Sequence[Array], outputs: Sequence[Array]
) -> tuple[tuple[int, int, int, int], ...]:
    """Positions of an output and another array, and two numbers: they share a byte only if the
    distance of their first elements is between these. Where it is, they are looked at closely."""
    reach = [_reach(a) for a in (*inputs, *outputs)]
    return tuple(
        (output, other, reach[other][0] - reach[output][1], reach[other][1] - reach[output][0])
        for output in range(len(inputs), len(reach))
        for other in range(output)
    )


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
