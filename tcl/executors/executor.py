"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from tcl.arrays.arguments import Array, Scalar, Wanted, new_output, wanted_places
from tcl.arrays.foreign import Foreign
from tcl.arrays.given import Given, given_inputs, given_outputs
from tcl.arrays.libraries import HOST, HostLibrary, Like
from tcl.arrays.likeness import FAILED, RAN, UNLIKE, Alike, Comparison
from tcl.arrays.numpy_arrays import NUMPY
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.cpu.abi import TENSORS
from tcl.codegen.cpu.run.launch import Frame, Launcher, address_of
from tcl.codegen.cpu.run.memory import empty
from tcl.codegen.cpu.run.ready import ready
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import MappingOptions
from tcl.common.user_input import check_flag, in_order
from tcl.executors import machine
from tcl.executors.results import results_class
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

    def __init__(self, sized: SizedDef, options: Chosen, wanted: Wanted = None) -> None:
        self._sized = sized
        self._chosen = options
        if isinstance(options, Choices):
            options = options.preferred or DEFAULT
        self._options: MappingOptions = options
        self._lock = threading.Lock()
        self._wanted = wanted
        checked = sized.checked
        everything = tuple(range(len(checked.outputs)))
        self._usual = everything if wanted is None else wanted_places(checked, wanted)
        self._known_places: dict[object, tuple[int, ...]] = {None: self._usual}
        self._latest: Repeat | None = None
        """Does a call if it is like the last one that went well, with checks, and with the outputs
        that are usually returned."""
        self._recent: dict[tuple[bool, tuple[int, ...]], Repeat] = {}
        """Likewise, of all calls: unchecked or not, and places of the outputs that are returned."""
        self._repeats: dict[tuple[object, ...], Repeat] = {}
        """What did calls before, by what they were given."""

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
        wanted: Wanted = None,
        unchecked: bool = False,
        **named: _A | Scalar,
    ) -> _A | tuple[_A, ...]:
        """Run the kernel.

        Inputs come in the order of the def, by their names (``A=a``), or the first ones this way
        and the others that way; one that is called as an option of calls by its place.
        Returns the output; of several a named tuple, in the order of the def. ``wanted`` are the
        names of those that are returned, in the order of ``wanted``, and that ``outputs`` holds:
        the others are scratch memory, which is kept for the next calls.
        ``unchecked`` leaves off the run-time checks of data-dependent subscripts: with an index
        out of range, memory that belongs to nobody is then read. Raises ``ArgumentError`` for
        arguments that do not fit, ``IndexError`` for a data-dependent subscript out of range.
        """
        if named:
            inputs = in_order(self._sized.checked, inputs, named)
        found: _A | tuple[_A, ...] | None
        if unchecked is False and wanted is None and (latest := self._latest) is not None:
            found = latest(inputs, outputs)  # as again(), whose call takes 40 ns
        else:
            found = self.again(inputs, outputs, unchecked, wanted)
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
        result: _A | tuple[_A, ...] = self.run(given, outputs, unchecked, wanted)
        return result

    def again(
        self,
        inputs: tuple[Any, ...],
        outputs: Any,
        unchecked: bool = False,
        wanted: Wanted = None,
    ) -> Any:
        """Run if this call is like the last one; None, and nothing done, if it is not."""
        if unchecked is False and wanted is None:
            repeat = self._latest
        else:
            check_flag("unchecked", unchecked)
            repeat = self._recent.get((unchecked, self._places(wanted)))
        return None if repeat is None else repeat(inputs, outputs)

    def run(
        self, given: Given, outputs: Any, unchecked: bool = False, wanted: Wanted = None
    ) -> Any:
        """Run on inputs that are known to fit."""
        foreign = given.kind.foreign
        if foreign is not None and outputs is None:
            return self._returned(foreign, given, unchecked, wanted)
        if foreign is None:
            found = self._as_before(given, outputs, unchecked, self._places(wanted))
            if found is not None:
                return found
        return self._first(given, outputs, unchecked, self._places(wanted))

    def _as_before(
        self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]
    ) -> Any:
        """Run if a call was like this one; None, and nothing done, if none was."""
        repeat = self._repeats.get(_key(given, unchecked, places))
        found = None if repeat is None else repeat(given.arrays, outputs)
        if repeat is not None and found is not None:
            self._keep(given, unchecked, places, repeat)
        return found

    def _returned(self, foreign: Foreign, given: Given, unchecked: bool, wanted: Wanted) -> Any:
        """Likewise, with new outputs of the library that the inputs really are of."""
        places = self._places(wanted)
        tensors = [self._sized.checked.outputs[place] for place in places]
        names = [f"output '{tensor.name}' of {self._sized.checked.name}" for tensor in tensors]
        for what, tensor in zip(names, tensors, strict=True):
            foreign.check_new(what, tensor.type)
        found = self._as_before(given, None, unchecked, places)
        if found is None:
            found = self._first(given, None, unchecked, places)
        each = (found,) if len(tensors) == 1 else found
        return self.results(places)(tuple(map(foreign.returned, names, each)))

    def _places(self, wanted: Wanted) -> tuple[int, ...]:
        """The places, among the def's outputs, of those that a call returns. Raises
        ``ArgumentError`` for a name that is none, or is given twice, and if one is left out that
        the def adds to."""
        key = tuple(wanted) if isinstance(wanted, list) else wanted
        try:
            found = self._known_places.get(key)
        except TypeError:  # something in it cannot be a name
            found = None
        if found is None:
            found = self._known_places[key] = wanted_places(self._sized.checked, wanted)
        return found

    def results(self, places: tuple[int, ...]) -> Callable[[tuple[Any, ...]], Any]:
        """What makes a call's result of the outputs at these places."""
        if len(places) == 1:
            return itemgetter(0)
        checked = self._sized.checked
        names = tuple(checked.outputs[place].name for place in places)
        made: Callable[[tuple[Any, ...]], Any] = results_class(checked.name, names)._make
        return made

    def _keep(self, given: Given, unchecked: bool, places: tuple[int, ...], repeat: Repeat) -> None:
        """Keep what does calls like this one."""
        self._repeats[_key(given, unchecked, places)] = repeat
        if given.kind.foreign is None:
            self._recent[unchecked, places] = repeat
            if not unchecked and places == self._usual:
                self._latest = repeat

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
    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        """A call that is not like the last one: everything about it is looked at."""


class Repeat(Protocol):
    """Calls like one that went well."""

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        """Run, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""


class Executor(Calls[Any]):
    """A callable kernel for arrays in the host's memory: NumPy's, torch's, JAX's, or of what hands
    its memory over by DLPack.

    ``executor(*inputs)`` returns the output (or a named tuple of outputs, in the order of the def),
    of the library that the inputs are of; ``outputs=`` writes into existing arrays. Inputs must
    have the sizes it was compiled for. ``wanted``: what calls return if they do not say.
    Arrays may have any strides: kernels are compiled for strides as they come up, and kept.
    Safe to call from several threads at once. A copy, pickled or not, compiles anew.

    ``threads`` is how many threads a call may use; None: what ``TCL_NUM_THREADS`` says, else all
    cores of this process. One call at a time has the others: calls beside it run on their own
    thread alone.
    """

    def __init__(
        self,
        sized: SizedDef,
        options: Chosen,
        threads: int | None = None,
        wanted: Wanted = None,
    ) -> None:
        super().__init__(sized, options, wanted)
        self._most = thread_count(threads)
        self._remembers = True
        """Whether calls like the next one, if it goes well, are to be quick."""
        self._kernels: dict[tuple[bool, Strides], Launcher] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self._sized, self._chosen, self._most, self._wanted)

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

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        tensors = self._sized.checked.outputs
        chosen = [tensors[place] for place in places]
        results, views = given_outputs(self._sized, given, outputs, chosen)
        memory = dict(zip(places, views, strict=True))
        for place, tensor in enumerate(tensors):
            if place not in memory:
                memory[place] = new_output(self._sized, tensor, empty)
        arrays = (*given.views, *(memory[place] for place in range(len(tensors))))
        kernel = self.kernel(tuple(view.strides for view in arrays), unchecked=unchecked)
        given.library.permits((), None if outputs is None else results)
        kernel(arrays)
        make = self.results(places)
        if self._remembers and not given.copied:
            repeat = HostRepeat(kernel, given, (results, views), self._sized, (places, make))
            self._keep(given, unchecked, places, repeat)
        if isinstance(outputs, tuple | list):  # the caller's own, of whichever class they are
            results = tuple(outputs)
        elif outputs is not None:
            results = (outputs,)
        return make(results)

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
        return numba_function(self, self._usual, unchecked=unchecked)

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


def _key(given: Given, unchecked: bool, places: tuple[int, ...]) -> tuple[object, ...]:
    """By which is found what does calls like one on these inputs."""
    strides = tuple(view.strides for view in given.views)
    return unchecked, places, given.library, given.kind.foreign is None, strides


class HostRepeat:
    """Calls like one that went well, with its library, types, shapes, strides and wanted outputs.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, whether they overlap, whether outputs may be written.
    """

    __slots__ = (
        *("_alike", "_comparison", "_empty", "_frames", "_kernel", "_make"),
        *("_permits", "_scratch", "_sized"),
    )

    def __init__(
        self,
        kernel: Launcher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
        returned: tuple[tuple[int, ...], Callable[[tuple[Any, ...]], Any]],
    ) -> None:
        """``results`` are the wanted outputs, and as NumPy sees them; ``returned`` their places
        among the def's, and what is made of them."""
        outputs, views = results
        places, self._make = returned
        library, tensors = given.library, sized.checked.outputs
        assert isinstance(library, HostLibrary)
        self._kernel = kernel
        self._sized = sized
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
            return tuple(outputs) if isinstance(outputs, tuple | list) else None
        if self._empty is None:
            return None
        try:
            return tuple([make() for make in self._empty])
        except (MemoryError, RuntimeError):  # torch's, of the same
            return None


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


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of a new array."""
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))
