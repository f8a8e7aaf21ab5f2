"""Calls like one that went well, on arrays in the host's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from tcl.arrays.arguments import Array, new_output
from tcl.arrays.given import Given
from tcl.arrays.libraries import HOST, NUMPY, HostLibrary, Like
from tcl.arrays.likeness import FAILED, RAN, UNLIKE, Alike, Comparison
from tcl.codegen.cpu.abi import TENSORS
from tcl.codegen.cpu.run.launch import Frame, Launcher, address_of
from tcl.codegen.cpu.run.memory import empty
from tcl.grammar.ranges.sized import SizedDef


class HostRepeat:
    """Calls like one that went well, with its library, types, shapes, strides and wanted outputs.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, whether they overlap, whether outputs may be written.
    """

    __slots__ = (
        *("_alike", "_comparison", "_empty", "_frames", "_kernel", "_make"),
        *("_permits", "_scratch", "_sized", "_tells"),
    )

    def __init__(
        self,
        kernel: Launcher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
        returned: tuple[tuple[int, ...], Callable[[tuple[Any, ...]], Any]],
        tells: tuple[int, int, int] | None = None,
    ) -> None:
        """``results`` are the wanted outputs, and as NumPy sees them; ``returned`` their places
        among the def's, and what is made of them. ``tells``: the place of an input, one of its
        dimensions, and its size, where calls at other sizes are common: these are then told by it,
        before outputs are made."""
        outputs, views = results
        places, self._make = returned
        library, tensors = given.library, sized.checked.outputs
        assert isinstance(library, HostLibrary)
        self._kernel = kernel
        self._sized = sized
        self._tells = tells
        self._scratch = [t for place, t in enumerate(tensors) if place not in places]
        self._frames = [] if self._scratch else kernel.frames
        chosen = [tensors[place] for place in places]
        fresh = not sized.checked.uninitialised
        self._empty = (
            [library.maker(sized.shapes[t.name], t.type, HOST) for t in chosen] if fresh else None
        )
        count = len(given.arrays)
        slots = (*range(count), *(count + place for place in places))
        arrays, memory = (*given.arrays, *outputs), (*given.views, *views)
        pairs = [
            (slots[output], slots[other], low, high)
            for output, other, low, high in distances(given.views, views)
        ]
        bits = [view.dtype.alignment - 1 for view in memory]
        self._permits: Callable[[Any, Any], bool] | None = library.permits
        native = None if kernel.long else library.native()
        if native is None:
            likes = tuple(map(library.like, arrays, bits))
            self._alike = _by_python(library, likes, count, slots, pairs, kernel)
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
            return self._kernel.frame()
        made = Frame(self._kernel)
        scratch = [new_output(self._sized, tensor, empty) for tensor in self._scratch]
        inputs, tensors = self._sized.checked.inputs, self._sized.checked.outputs
        for tensor, array in zip(self._scratch, scratch, strict=True):
            made.pointers[len(inputs) + tensors.index(tensor)] = address_of(array)
        made.held = scratch
        return made

    def _results(self, outputs: Any) -> tuple[Any, ...] | None:
        if outputs is not None:
            if isinstance(outputs, list):
                return tuple(outputs)
            return (outputs,) if hasattr(outputs, "shape") else None
        if self._empty is None:
            return None
        try:
            return tuple([make() for make in self._empty])
        except (AssertionError, MemoryError, RuntimeError):  # torch's, of a mode, and of the same
            return None


def _told(inputs: tuple[Any, ...], place: int, axis: int, size: int) -> bool:
    try:
        return bool(inputs[place].shape[axis] == size)
    except (AttributeError, IndexError, TypeError, ValueError):  # no array, or of another rank
        return False


def _by_python(
    library: HostLibrary,
    likes: tuple[Like, ...],
    count: int,
    slots: Sequence[int],
    pairs: Sequence[tuple[int, int, int, int]],
    kernel: Launcher,
) -> Alike:
    """What compares arrays where nothing does natively, or where calls have to hear of Ctrl+C."""
    call, longest = kernel.best_call, 1 + max(slots)

    def alike(inputs: tuple[Any, ...], outputs: tuple[Any, ...], record: int) -> int:
        if len(inputs) != count or len(inputs) + len(outputs) != len(likes):
            return UNLIKE
        addresses = library.addresses(inputs + outputs, likes)
        if addresses is None:
            return UNLIKE
        at = ctypes.c_uint64.from_address(record + 8 * TENSORS).value
        arguments = (ctypes.c_uint64 * longest).from_address(at)
        for slot, address in zip(slots, addresses, strict=True):
            arguments[slot] = address
        if any(low < arguments[one] - arguments[other] < high for one, other, low, high in pairs):
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
