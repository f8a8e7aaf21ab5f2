"""``define`` and ``compile``: from a text to something that can be called."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakSet

from tcl.arrays.tracing import opaque, tell_torch
from tcl.arrays.user_input import SourceLike, check_flag, in_order
from tcl.common.closest import no_def
from tcl.common.errors import CacheError
from tcl.common.interrupts import of_system
from tcl.common.lazy import Lazy
from tcl.common.warn import warn, warn_once
from tcl.executors.dispatch import Kernels, OptionsLike, Settings
from tcl.executors.dispatch import OptionsFactory as OptionsFactory
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import DEFAULT
from tcl.selection.tune_modes import ModeLike, TuneMode

if TYPE_CHECKING:
    from tcl import def_html, first_use
    from tcl.arrays.arguments import Argument, Wanted
    from tcl.arrays.given import Given
    from tcl.codegen.cpu.run import memory
    from tcl.executors import calls
    from tcl.executors.call_kernels import FirstCall
    from tcl.executors.calls import Calls, Repeat
    from tcl.executors.executor import Executor
    from tcl.grammar.ranges.sized import SizedDef
    from tcl.selection import remembered
    from tcl.selection.suggested_options import Chosen
    from tcl.tuner.cache import tuning_cache
else:
    calls = Lazy("tcl.executors.calls")
    def_html = Lazy("tcl.def_html")
    first_use = Lazy("tcl.first_use")
    remembered = Lazy("tcl.selection.remembered")
    memory = Lazy("tcl.codegen.cpu.run.memory")
    tuning_cache = Lazy("tcl.tuner.cache.tuning_cache")


@opaque
def define(
    source: SourceLike,
    options: OptionsLike = None,
    *,
    threads: int | None = None,
    nearest: bool = False,
    strict: bool = False,
    relax: str | Iterable[str] | None = None,
    tune_mode: ModeLike | None = None,
    varying: Sequence[str] = (),
) -> Definitions:
    """The defs of a text, as methods: ``define(text).mm(A, B)``, or ``define(text).mm(A=a, B=b)``
    with inputs by name.

    Arrays are of NumPy, torch, JAX, CuPy or any library with DLPack. Outputs are new arrays of the
    same library. If the arrays are on a CUDA device, calls run there (see ``CudaExecutor``), with
    the best options for that GPU.

    - ``source``: the text, or a ``pathlib.Path`` of a file with the text.
    - ``options``: how to map the defs. ``MappingOptions``, the name of a preset (``"naive"``,
      ``"pointwise"``, ``"mlp"``, ``"conv"``), a result of ``Tuner.tune``, or a factory ``(source,
      entry_point, *inputs) -> MappingOptions``. Default: the best known options. These come from
      the tuning cache, also from near sizes if they promise more than the default; else from a
      model (``tcl docs model``); else from a heuristic. Cached options that do not apply are
      skipped, with one warning; another warning says that the cache has options only for other
      numbers of threads. ``"predict"`` is the same as the default, with a warning if there is no
      model.
    - ``threads``: the number of threads that a call may use. Default: the environment variable
      ``TCL_NUM_THREADS``, else all cores of this process.
    - ``nearest``: if True, sizes that were not tuned use the cached options of the nearest tuned
      sizes, if these can be applied. A ``TclWarning`` says so.
    - ``strict``: if True, code that is legal but probably a mistake raises an error, as with ``tcl
      check --strict``. Otherwise it gives a ``TclWarning``, here or in the call whose sizes show
      the mistake.
    - ``relax``: fields of the device that may differ, such as ``("clock", "cores")`` or
      ``"clock,cores"``. If nothing was tuned on this device, options that were measured on such a
      device are used. A ``TclWarning`` names the differences. Default: the environment variable
      ``TCL_RELAX``. An unknown field raises ``ValueError`` and lists the known ones.
    - ``tune_mode``: what to do if the cache has no options. ``"off"``; ``"predict"``, the default;
      ``"auto"``, ``"trimmed"`` or ``"all"``, which search when a call first needs options; the name
      of a preset; a list of these, of which the fastest is used; or a mapping from names of defs to
      these (``tcl docs tuning``). Default: the environment variable ``TCL_TUNE_MODE``.
    - ``varying``: names of sizes that take many values, such as ``("N",)``. On the CPU, row-major
      arrays then share one kernel for all sizes of a class. A class has sizes of the same order of
      magnitude, either all multiples of 16 or none. The kernel gets the sizes when it runs.

    Raises ``TclSyntaxError``, ``TclSemanticError``, ``OptionsError`` and ``ArgumentError``. For an
    unknown mode, the ``ArgumentError`` is also a ``ValueError``.
    """
    settings = Settings(options, threads, nearest, strict, relax, tune_mode, varying)
    return Definitions(source, settings)


@overload
def compile(
    source: SourceLike,
    entry_point: str,
    mapping_options: OptionsLike,
    *inputs: Argument,
    threads: int | None = None,
    wanted: Wanted = None,
    relax: str | Iterable[str] | None = None,
    **named: Argument,
) -> Executor: ...


@overload
def compile(
    source: SourceLike,
    entry_point: str,
    mapping_options: OptionsLike,
    *inputs: Any,
    threads: int | None = None,
    wanted: Wanted = None,
    relax: str | Iterable[str] | None = None,
    **named: Any,
) -> Calls[Any]: ...


@opaque
def compile(
    source: SourceLike,
    entry_point: str,
    mapping_options: OptionsLike,
    *inputs: Any,
    threads: int | None = None,
    wanted: Wanted = None,
    relax: str | Iterable[str] | None = None,
    **named: Any,
) -> Calls[Any]:
    """A kernel for one def and for the sizes and strides of ``inputs``, compiled before this
    returns. If the inputs are on a GPU, the kernel is for that GPU.

    ``named``: inputs by name, as in a call. ``wanted``: names of the outputs that calls return by
    default (see ``Executor``). ``threads`` and ``relax`` are as for ``define``.

    Raises what ``define`` raises, ``ArgumentError`` for inputs that do not fit, and
    ``RangeInferenceError`` for sizes that do not fit.
    """
    definitions = Definitions(source, Settings(mapping_options, threads, relax=relax))
    if named:
        arguments = ("threads", "wanted", "relax")
        inputs = in_order(definitions.definition(entry_point), inputs, named, arguments)
    executor, given = definitions._kernels.executor(entry_point, inputs, wanted)
    executor.prepare(given.arrays)
    return executor


def release_memory() -> int:
    """Forget the kernels that defs hold for earlier shapes; the next call loads its kernel from the
    user's cache. Return the memory of dead outputs, which is held for reuse, to the system. Returns
    the number of these bytes."""
    for definitions in list(_all):
        definitions._kernels.forget()
        for function in definitions._functions.values():
            function._forget()
    return memory.release_memory()


class Definitions:
    """The defs of a text. Each def is an attribute and an item: a function of its inputs.

    The first call with new sizes compiles a kernel; later calls reuse it. A copy, also by pickle,
    starts without kernels.
    """

    def __init__(self, source: SourceLike, settings: Settings | None = None) -> None:
        tell_torch()
        self._kernels = Kernels(source, settings or Settings(), _first_use)
        self._functions = {
            name: DefFunction(self._kernels, definition)
            for name, definition in self._kernels.defs.items()
        }
        for name in self._functions:
            if name in self.__dict__ or hasattr(type(self), name):
                warn(f"the name '{name}' is taken; call this def as [{name!r}](...)")
        for name, function in self._functions.items():
            self.__dict__.setdefault(name, function)
        _all.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        return Definitions, (self._kernels.source, self._kernels.settings)

    def __repr__(self) -> str:
        return f"<tcl definitions: {', '.join(self._functions)}>"

    def _repr_html_(self) -> str:
        return def_html.text_html(self._kernels.source, self._kernels.defs.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __getattr__(self, name: str) -> DefFunction:
        # Defs are attributes like any other; this says what there is not.
        functions = self.__dict__.get("_functions", {})
        raise AttributeError(no_def(name, functions))

    def __getitem__(self, name: str) -> DefFunction:
        self.definition(name)
        return self._functions[name]

    @opaque
    def __call__(
        self,
        /,
        entry_point: str,
        *inputs: Any,
        outputs: Any = None,
        wanted: Wanted = None,
        unchecked: bool = False,
        **named: Any,
    ) -> Any:
        """Run the def with this name; see ``Executor`` and ``CudaExecutor``."""
        return self[entry_point](
            *inputs, outputs=outputs, wanted=wanted, unchecked=unchecked, **named
        )

    def definition(self, name: str) -> CheckedDef:
        """The checked def with this name. Raises ``ArgumentError`` if there is none."""
        return self._kernels.definition(name)

    def executor(
        self,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        wanted: Wanted = None,
    ) -> tuple[Calls[Any], Given]:
        """The executor for the sizes and the device of these inputs, and the inputs in the form
        that it takes. ``wanted``: names of the outputs that calls of a new executor return by
        default."""
        return self._kernels.executor(entry_point, inputs, wanted)


def sized(definitions: Definitions, definition: CheckedDef, arrays: Sequence[Any]) -> SizedDef:
    """One of these defs with the sizes of its inputs, after a warning of what they show."""
    return definitions._kernels.sized_by(definition, arrays)


_all: WeakSet[Definitions] = WeakSet()
"""Those there are."""


class DefFunction:
    """One def of a text: a function of its inputs."""

    def __init__(self, kernels: Kernels, definition: CheckedDef) -> None:
        self._kernels = kernels
        self._latest: Calls[Any] | None = None
        """The executor of the last call, whichever thread made it. It is asked first, and says
        itself whether a call is like the last one that it ran."""
        self._several: OrderedDict[tuple[object, ...], Repeat] = OrderedDict()
        """What does calls with inputs of these shapes and strides; it says itself whether a call is
        like that."""
        self.__name__ = self.__qualname__ = definition.name
        names = ", ".join(t.name for t in definition.inputs)
        results = ", ".join(t.name for t in definition.outputs)
        self.__doc__ = f"{definition.name}({names}) -> ({results})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self._kernels.source, self._kernels.settings, self.__name__)

    @opaque
    def __call__(
        self,
        /,
        *inputs: Any,
        outputs: Any = None,
        wanted: Wanted = None,
        unchecked: bool = False,
        **named: Any,
    ) -> Any:
        """Run it; see ``Executor`` and ``CudaExecutor``."""
        if named:
            inputs = in_order(self._kernels.definition(self.__name__), inputs, named)
        latest = self._latest
        if len(self._several) > 1 and unchecked is False and wanted is None:
            repeat = self._several.get(_shapes_of(inputs))
            found = None if repeat is None else repeat(inputs, outputs)
            if found is not None:
                return found
        elif latest is not None:
            found = latest.again(inputs, outputs, unchecked, wanted)
            if found is not None:
                return found
        if latest is not None and wanted is None:
            found = latest.at_other_sizes(inputs, outputs, unchecked)
            if found is not None:
                return found
        if unchecked is not False:
            check_flag("unchecked", unchecked)
        executor, given = self._kernels.executor(self.__name__, inputs)
        results = executor.run(given, outputs, unchecked, wanted)
        self._latest = executor
        if unchecked is False and wanted is None and executor.latest is not None:
            self._several[_shapes_of(inputs)] = executor.latest
            while len(self._several) > calls.MOST_QUICK:
                with contextlib.suppress(KeyError):  # another thread was there
                    self._several.popitem(last=False)
        return results

    def _forget(self) -> None:
        """As a def that was never called."""
        self._latest = None
        self._several = OrderedDict()

    def __repr__(self) -> str:
        return f"<tcl {self.__doc__}>"

    def _repr_html_(self) -> str:
        definition = self._kernels.definition(self.__name__)
        return def_html.def_html(self._kernels.source, definition)


def _shapes_of(inputs: tuple[Any, ...]) -> tuple[object, ...]:
    """What mostly tells calls apart that different kernels are for."""
    try:
        return tuple([(a.shape, a.strides) for a in inputs])
    except AttributeError:  # numbers; tensors, whose strides are a method
        return tuple([getattr(a, "shape", type(a)) for a in inputs])


def _restored(source: str, settings: Settings, name: str) -> DefFunction:
    """A function of a text, as a copy makes it."""
    return Definitions(source, settings)[name]


def _first_use(call: FirstCall, mode: TuneMode) -> Chosen:
    """Tune for a call, unless that was done; what it takes is loaded now."""
    with contextlib.suppress(CacheError):  # which is told of where it is needed
        cache = tuning_cache.TuningCache(tuning_cache.default_path())
        found = remembered.known_by(cache, call.query, mode)
        if found is not None:
            return found
    try:
        tuned = first_use.tuned
    except OSError as error:
        if not of_system(error):
            raise
        name = call.query.name
        warn_once(
            ("first use", str(error)), f"{name} is not tuned, so the default is used: {error}"
        )
        return DEFAULT
    return tuned(call, mode)
