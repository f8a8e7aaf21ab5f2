"""Calls like one that went well."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.arrays.arguments import Array, new_output
from tcl.arrays.given import Given
from tcl.arrays.libraries import HOST, NUMPY, Library, Like
from tcl.arrays.likeness import FAILED, RAN, UNLIKE, Alike, Comparison
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.abi import TENSORS
from tcl.codegen.cpu.run.launch import Frame, Launcher, address_of
from tcl.codegen.cpu.run.memory import empty
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import Tensor


class KnownCall:
    """What calls like one that went well have in common: library, types, shapes, strides and wanted
    outputs.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, whether they overlap, whether outputs may be written.
    """

    __slots__ = ("_empty", "_kernel", "_library", "_make", "_pairs", "_scratch", "_sized", "_slots")

    def __init__(
        self,
        kernel: Any,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
        returned: tuple[tuple[int, ...], Callable[[tuple[Any, ...]], Any]],
    ) -> None:
        """``results`` are the wanted outputs, and as NumPy sees them; ``returned`` their places
        among the def's, and what is made of them."""
        places, self._make = returned
        count, tensors = len(given.arrays), sized.checked.outputs
        self._kernel, self._sized, self._library = kernel, sized, given.library
        self._slots = (*range(count), *(count + place for place in places))
        """The places among the arguments of inputs and wanted outputs,"""
        self._scratch = [(count + k, t) for k, t in enumerate(tensors) if k not in places]
        """and of the other outputs."""
        self._pairs = distances(given.views, results[1])
        self._empty = (
            [
                given.library.maker(sized.shapes[t.name], t.type, given.device)
                for t in (tensors[place] for place in places)
            ]
            if not sized.checked.uninitialised
            else None
        )

    def _results(self, outputs: Any) -> tuple[Any, ...] | None:
        """The caller's outputs, or new ones; None for what has to be looked at."""
        if outputs is not None:
            if isinstance(outputs, tuple | list):
                return tuple(outputs)
            return (outputs,) if hasattr(outputs, "shape") else None
        if self._empty is None:
            return None
        try:
            return tuple([make() for make in self._empty])
        except (AssertionError, MemoryError, RuntimeError):  # torch's, of a mode, and of the same
            return None


class HostRepeat(KnownCall):
    """Calls like one that went well, on arrays in the host's memory."""

    __slots__ = ("_alike", "_comparison", "_frames", "_permits", "_tells")

    def __init__(
        self,
        kernel: Launcher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        *about: Any,
        tells: tuple[int, int, int] | None = None,
    ) -> None:
        """``about``: what else ``KnownCall`` takes. ``tells``: the place of an input, one of its
        dimensions, and its size, where calls at other sizes are common: these are then told by it,
        before outputs are made."""
        super().__init__(kernel, given, results, *about)
        self._tells = tells
        self._frames = [] if self._scratch else kernel.frames
        count, slots, library = len(given.arrays), self._slots, given.library
        arrays, memory = (*given.arrays, *results[0]), (*given.views, *results[1])
        pairs = [(slots[one], slots[other], low, high) for one, other, low, high in self._pairs]
        bits = [view.dtype.alignment - 1 for view in memory]
        self._permits: Callable[[Any, Any], bool] | None = library.permits
        native = None if kernel.long else library.native()
        if native is None:
            likes = tuple(map(library.like, arrays, bits))
            compare = comparing_by_python(library, likes, count, slots, pairs)
            self._alike = _by_python(compare, kernel)
            return
        records = [
            library.record(array, bit, slot, output=slot >= count)
            for array, bit, slot in zip(arrays, bits, slots, strict=True)
        ]
        keep = [(type(array), array.dtype) for array in arrays]
        call = ctypes.cast(kernel.call, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        self._comparison = Comparison(records, count, pairs, call, keep)
        self._alike = native.comparing(self._comparison)
        if library is NUMPY:
            self._permits = None  # whether they may be written to is compared, too

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        """Run, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        if self._tells is not None and not _told(inputs, *self._tells):
            return None
        results = outputs if type(outputs) is tuple else self._results(outputs)
        if results is None:
            return None
        permits = self._permits
        if permits is not None and not permits(inputs, None if outputs is None else results):
            return None
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._frame()
        status = self._alike(inputs, results, frame.at)
        if status == FAILED:
            raise self._kernel.failed(frame)
        self._frames.append(frame)
        return None if status else self._make(results)

    def _frame(self) -> Frame:
        """A frame to fill, with memory for the outputs that nobody wants."""
        if not self._scratch:
            frame: Frame = self._kernel.frame()
            return frame
        made = Frame(self._kernel)
        scratch = [new_output(self._sized, tensor, empty) for _, tensor in self._scratch]
        for (slot, _), array in zip(self._scratch, scratch, strict=True):
            made.pointers[slot] = address_of(array)
        made.held = scratch
        return made


def _told(inputs: tuple[Any, ...], place: int, axis: int, size: int) -> bool:
    try:
        return bool(inputs[place].shape[axis] == size)
    except (AttributeError, IndexError, TypeError, ValueError):  # no array, or of another rank
        return False


def comparing_by_python(
    library: Library,
    likes: tuple[Like, ...],
    count: int,
    slots: Sequence[int],
    pairs: Sequence[tuple[int, int, int, int]],
) -> Alike:
    """What compares arrays where nothing does natively. It runs nothing, and takes, in place of a
    record, where to write the addresses of the arguments."""
    longest = 1 + max(slots, default=-1)

    def alike(inputs: tuple[Any, ...], outputs: tuple[Any, ...], at: int) -> int:
        if len(inputs) != count or len(inputs) + len(outputs) != len(likes):
            return UNLIKE
        addresses = library.addresses(inputs + outputs, likes)
        if addresses is None:
            return UNLIKE
        arguments = (ctypes.c_uint64 * longest).from_address(at)
        for slot, address in zip(slots, addresses, strict=True):
            arguments[slot] = address
        for one, other, low, high in pairs:
            if low < arguments[one] - arguments[other] < high:
                return UNLIKE
        return RAN

    return alike


def _by_python(compare: Alike, kernel: Launcher) -> Alike:
    """What also runs, where nothing does natively, or where calls have to hear of Ctrl+C."""
    call = kernel.best_call

    def alike(inputs: tuple[Any, ...], outputs: tuple[Any, ...], record: int) -> int:
        at = ctypes.c_uint64.from_address(record + 8 * TENSORS).value
        if compare(inputs, outputs, at):
            return UNLIKE
        return FAILED if call(record) else RAN

    return alike


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


if TYPE_CHECKING:
    from tcl.executors.calls import Repeat

_Make = Callable[[Any], Any]


class WithNumbers:
    """A ``Repeat`` for calls with numbers for inputs of rank 0: those become arrays first. What is
    not plainly a value of the input's type is left for who looks at everything."""

    __slots__ = ("_makers", "_repeat")

    def __init__(
        self, repeat: Repeat, tensors: Sequence[tuple[int, Tensor]], library: Library
    ) -> None:
        """``tensors``: inputs of rank 0, with their places. ``library``: whose arrays the others
        are."""
        self._repeat = repeat
        self._makers = [(place, _maker(tensor, library)) for place, tensor in tensors]

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        given = list(inputs)
        for place, make in self._makers:
            try:
                kind = type(value := given[place])
            except IndexError:
                return None
            if kind is float or kind is int:
                array = make(value)
                if array is None:
                    return None
                given[place] = array
        return self._repeat(tuple(given), outputs)


def _maker(tensor: Tensor, library: Library) -> _Make:
    """From a number to an array of rank 0; None for one that may not be a value of the type."""
    dtype = numpy_dtype(tensor.type)
    if tensor.type.is_float:
        try:
            high: float = float(np.finfo(dtype).max)
        except ValueError:  # a type that NumPy does not know
            return lambda value: None
        low = -high
    elif tensor.type.is_bool:
        return lambda value: None
    else:
        low, high = tensor.type.limits
    whole = not tensor.type.is_float

    def made(value: float) -> Any:
        if not low <= value <= high or (whole and type(value) is not int):
            return None
        return np.array(value, dtype)

    if library is NUMPY:
        return made

    def moved(value: float) -> Any:
        array = made(value)
        return None if array is None else library.filled(array, HOST)

    return moved
