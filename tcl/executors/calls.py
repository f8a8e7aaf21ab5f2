"""What the executors of all devices do with a call."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from tcl.arrays.arguments import Array, Scalar, Wanted, wanted_places
from tcl.arrays.given import Given, given_inputs, given_outputs, new_array
from tcl.arrays.libraries import HOST
from tcl.arrays.tracing import opaque
from tcl.arrays.user_input import check_flag, in_order
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError
from tcl.common.forks import free_lock
from tcl.executors import machine
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import DEFAULT, Choices, Chosen, applied

Strides: TypeAlias = tuple[tuple[int, ...], ...]
"""Of each array, in bytes; inputs, then outputs."""


MOST_QUICK = 16
"""Sizes and strides in turns with which calls of a def are quick."""
MOST_LAYOUTS = 64
"""Strides for which an executor keeps a kernel. Object code of others is in the user's cache."""

_A = TypeVar("_A")
_K = TypeVar("_K")
_L = TypeVar("_L")


class Calls(ABC, Generic[_A]):
    """A callable kernel for arrays on one device: what all executors do.

    Safe to call from several threads at once.
    """

    def __init__(
        self, sized: SizedDef, options: Chosen, wanted: Wanted, device: int = HOST
    ) -> None:
        self._sized = sized
        self._device = device
        self._chosen = options
        if isinstance(options, Choices):
            options = options.preferred or DEFAULT
        self._options: MappingOptions = options
        self._lock = free_lock()
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
    def latest(self) -> Repeat | None:
        """What does a call that is like the last one that went well."""
        return self._latest

    @property
    def options(self) -> MappingOptions:
        """The mapping options that the last kernel was built with. Where nobody gave them, others
        may be used for other strides."""
        return self._options

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        return self._sized

    @property
    def outline(self) -> SizedDef:
        """The same as far as calls need it, which may leave out the statements."""
        return self._sized

    @opaque
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

    def at_other_sizes(self, inputs: tuple[Any, ...], outputs: Any, unchecked: object) -> Any:
        """Run a call that ``again`` is not for, at other sizes than this executor's; None, and
        nothing done, if nothing is ready for that."""
        return None

    def run(
        self, given: Given, outputs: Any, unchecked: bool = False, wanted: Wanted = None
    ) -> Any:
        """Run on inputs that are known to fit."""
        if given.library.foreign and outputs is None:
            return self._returned(given, unchecked, wanted)
        found = self._as_before(given, outputs, unchecked, self._places(wanted))
        if found is None:
            found = self._first(given, outputs, unchecked, self._places(wanted))
        return found

    def _as_before(
        self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]
    ) -> Any:
        """Run if a call was like this one; None, and nothing done, if none was."""
        repeat = self._repeats.get(_key(given, unchecked, places))
        found = None if repeat is None else repeat(given.arrays, outputs)
        if repeat is not None and found is not None:
            self._keep(given, unchecked, places, repeat)
        return found

    def _returned(self, given: Given, unchecked: bool, wanted: Wanted) -> Any:
        """Likewise, with new outputs of the library that the inputs really are of."""
        places = self._places(wanted)
        tensors = [self._sized.checked.outputs[place] for place in places]
        names = [f"output '{tensor.name}' of {self._sized.checked.name}" for tensor in tensors]
        for what, tensor in zip(names, tensors, strict=True):
            given.library.check_new(what, tensor.type)
        found = self._as_before(given, None, unchecked, places)
        if found is None:
            found = self._first(given, None, unchecked, places)
        each = (found,) if len(tensors) == 1 else found
        return self.results(places)(tuple(map(given.library.returned, names, each)))

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
        return result_of(self._sized.checked, places)

    def _keep(self, given: Given, unchecked: bool, places: tuple[int, ...], repeat: Repeat) -> None:
        """Keep what does calls like this one."""
        _add(self._repeats, _key(given, unchecked, places), repeat)
        if not given.library.foreign:
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
                    found = made
                    _add(kernels, key, made)
        return found

    def _with_new_outputs(self, given: Given) -> Strides:
        outputs, shapes = self._sized.checked.outputs, self._sized.shapes
        new = (contiguous(shapes[t.name], numpy_dtype(t.type).itemsize) for t in outputs)
        return (*(view.strides for view in given.views), *new)

    @abstractmethod
    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""

    def _given(self, inputs: Sequence[Any]) -> Given:
        """The inputs of a call. Raises ``ArgumentError``."""
        given = given_inputs(self._sized.checked, inputs, machine.driver)
        if given.device != self._device:
            own = "the CPU" if self._device == HOST else f"cuda:{self._device}"
            lie = "in the host's memory" if given.device == HOST else f"on cuda:{given.device}"
            raise ArgumentError(
                f"this executor of {self._sized.checked.name} runs on {own}, but the inputs are "
                f"{lie}"
            )
        return given

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        """A call that is not like the last one: everything about it is looked at."""
        library, tensors = given.library, self._sized.checked.outputs
        with machine.on(self._device):
            chosen = [tensors[place] for place in places]
            results, views = given_outputs(self._sized, given, outputs, chosen)
            memory = dict(zip(places, views, strict=True))
            scratch = {  # which goes back when this returns, on a device in stream order
                place: new_array(self._sized, tensor, given.kind)
                for place, tensor in enumerate(tensors)
                if place not in places
            }
            memory |= {k: library.view(tensors[k].name, a) for k, a in scratch.items()}
            library.permits((), None if outputs is None else results)
            arrays = (*given.views, *(memory[place] for place in range(len(tensors))))
            make = self.results(places)
            repeat = self._run(given, arrays, unchecked, (results, views), (places, make))
        if repeat is not None:
            self._keep(given, unchecked, places, repeat)
        if isinstance(outputs, tuple | list):  # the caller's own, of whichever class they are
            results = tuple(outputs)
        elif outputs is not None:
            results = (outputs,)
        return make(results)

    @abstractmethod
    def _run(
        self,
        given: Given,
        arrays: tuple[Array, ...],
        unchecked: bool,
        results: tuple[Sequence[Any], Sequence[Array]],
        returned: tuple[tuple[int, ...], Callable[[tuple[Any, ...]], Any]],
    ) -> Repeat | None:
        """Run on all inputs and outputs, and give what does calls like this one. ``results`` and
        ``returned`` are as for ``KnownCall``."""


def _add(kept: dict[_K, _L], key: _K, value: _L) -> None:
    """Keep a value, and the latest others up to a number."""
    kept[key] = value
    while len(kept) > MOST_LAYOUTS:
        with contextlib.suppress(KeyError, RuntimeError, StopIteration):  # another thread was there
            del kept[next(iter(kept))]


class Repeat(Protocol):
    """Calls like one that went well."""

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        """Run, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""


def _key(given: Given, unchecked: bool, places: tuple[int, ...]) -> tuple[object, ...]:
    """By which is found what does calls like one on these inputs."""
    strides = tuple(view.strides for view in given.views)
    return unchecked, places, given.library, strides


def result_of(checked: CheckedDef, places: tuple[int, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """What makes a call's result of the outputs at these places."""
    if len(places) == 1:
        return itemgetter(0)
    names = tuple(checked.outputs[place].name for place in places)
    made: Callable[[tuple[Any, ...]], Any] = results_class(checked.name, names)._make
    return made


def contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of a new array."""
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))


class _Results(tuple[Any, ...]):
    """A copy, pickled or not, is of the same names; no module has the class itself."""

    __slots__ = ()
    _of: tuple[str, tuple[str, ...]]

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (*self._of, tuple(self))


@functools.cache
def results_class(entry: str, names: tuple[str, ...]) -> type[Any]:
    """A named tuple, equal to a plain one with the same items.

    Where a name cannot be a field of a named tuple, as ``lambda`` cannot, the field is called by
    its place, ``_1``; ``getattr`` with the name itself finds the item too, unless every named tuple
    has an attribute of that name.
    """
    plain = namedtuple("Results", names, rename=True)  # type: ignore[misc]
    made = type(entry, (_Results, plain), {"__slots__": (), "_of": (entry, names)})
    taken = dir(type("_", (_Results, namedtuple("Results", ())), {}))
    for position, name in enumerate(names):
        if name in ("count", "index") or name not in taken:
            setattr(made, name, property(itemgetter(position)))
    return made


def _again(entry: str, names: tuple[str, ...], items: tuple[Any, ...]) -> Any:
    return results_class(entry, names)(*items)
