"""``define`` and ``compile``: from a text to something that can be called."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from tcl.arguments import Argument, Array, input_arrays
from tcl.codegen.cpu.threads import thread_count
from tcl.codegen.errors import ArgumentError, OptionsError
from tcl.codegen.options import MappingOptions
from tcl.executor import Executor
from tcl.grammar.check import check
from tcl.grammar.checked import CheckedDef
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.known import best_known
from tcl.warn import warn


class OptionsFactory(Protocol):
    """Makes options for inputs that are about to be run on."""

    def __call__(
        self, source: str, entry_point: str, /, *inputs: Argument
    ) -> MappingOptions | None: ...


OptionsLike: TypeAlias = MappingOptions | str | OptionsFactory | None
"""Options, a preset's name, a factory, or None for the best way that is known."""


def define(
    source: str,
    options: OptionsLike = None,
    *,
    threads: int | None = None,
    nearest: bool = False,
) -> Definitions:
    """The defs of a text, as methods: ``define(text).mm(A, B)``.

    ``options`` says how to map them: ``MappingOptions``, a preset's name (``"naive"``,
    ``"pointwise"``, ``"mlp"``, ``"conv"``), or a factory ``(source, entry_point, *inputs) ->
    MappingOptions``. With none, the best way that is known is used: the tuning cache's, else a
    heuristic default. ``nearest=True``: for sizes that were not tuned, the tuning cache's options
    for the nearest sizes that were, if they can be applied, with a ``TclWarning`` that says so.
    ``threads`` is how many threads a call may use; with none, what the environment variable
    ``TCL_NUM_THREADS`` says, else all cores of this process. Raises ``TclSyntaxError``,
    ``TclSemanticError``, ``OptionsError``, ``ArgumentError``.
    """
    return Definitions(source, options, threads, nearest)


def compile(
    source: str,
    entry_point: str,
    mapping_options: OptionsLike,
    *inputs: Argument,
    threads: int | None = None,
) -> Executor:
    """A kernel for one def and the sizes and strides of ``inputs``, compiled before it returns.

    ``threads`` is as for ``define``. Raises what ``define`` raises, ``ArgumentError`` for inputs
    that do not fit and ``RangeInferenceError`` for sizes that do not.
    """
    definitions = Definitions(source, mapping_options, threads)
    executor, arrays = definitions.executor(entry_point, inputs)
    executor.prepare(arrays)
    return executor


class Definitions:
    """The defs of a text. Each is an attribute (and an item): a function of its inputs.

    Kernels are compiled when sizes come up for the first time, and kept; a copy, pickled or
    not, starts without any.
    """

    def __init__(
        self,
        source: str,
        options: OptionsLike = None,
        threads: int | None = None,
        nearest: bool = False,
    ) -> None:
        self._kernels = _Kernels(source, options, threads, nearest)
        self._functions = {
            name: DefFunction(self._kernels, definition)
            for name, definition in self._kernels.defs.items()
        }
        for name, definition in self._kernels.defs.items():
            for warning in definition.warnings:
                warn(warning.render(definition.source, "warning"))
            if name in self.__dict__ or hasattr(type(self), name):
                warn(f"the name '{name}' is taken; call this def as [{name!r}](...)")
        for name, function in self._functions.items():
            self.__dict__.setdefault(name, function)

    def __reduce__(self) -> tuple[object, ...]:
        return Definitions, self._kernels.given

    def __repr__(self) -> str:
        return f"<tcl definitions: {', '.join(self._functions)}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __getattr__(self, name: str) -> DefFunction:
        # Defs are attributes like any other; this says what there is not.
        functions = self.__dict__.get("_functions", {})
        raise AttributeError(_unknown(name, functions))

    def __getitem__(self, name: str) -> DefFunction:
        self.definition(name)
        return self._functions[name]

    def __call__(
        self,
        entry_point: str,
        *inputs: Argument,
        outputs: Sequence[Array] | None = None,
        unchecked: bool = False,
    ) -> Array | tuple[Array, ...]:
        """Run a def by its name; see ``Executor``."""
        return self[entry_point](*inputs, outputs=outputs, unchecked=unchecked)

    def definition(self, name: str) -> CheckedDef:
        """The checked def of that name; ``ArgumentError`` if there is none."""
        return self._kernels.definition(name)

    def executor(
        self, entry_point: str, inputs: Sequence[Argument]
    ) -> tuple[Executor, tuple[Array, ...]]:
        """The executor for these inputs' sizes, and the inputs as arrays."""
        return self._kernels.executor(entry_point, inputs)


class _Kernels:
    """What the functions of a text share: its defs, and an executor for all sizes so far."""

    def __init__(
        self, source: str, options: OptionsLike, threads: int | None, nearest: bool
    ) -> None:
        if not isinstance(source, str):
            raise ArgumentError(f"a TC is a string, not {type(source).__name__}")
        if not isinstance(nearest, bool):
            raise ArgumentError(f"nearest has to be True or False, not {nearest!r}")
        if nearest and options is not None:
            raise ArgumentError(
                "nearest=True is about options from the tuning cache; give either it or options"
            )
        self.source = source
        self.options = _as_options(options)
        self.threads = thread_count(threads)
        self.nearest = nearest
        self.defs = check(source)
        self._executors: dict[tuple[object, ...], Executor] = {}
        # An options factory runs under it, and may well call a def of this text.
        self._lock = threading.RLock()

    @property
    def given(self) -> tuple[str, OptionsLike, int, bool]:
        """What this was made from."""
        return self.source, self.options, self.threads, self.nearest

    def definition(self, name: str) -> CheckedDef:
        """The checked def of that name; ``ArgumentError`` if there is none."""
        if not isinstance(name, str) or name not in self.defs:
            raise ArgumentError(_unknown(str(name), self.defs))
        return self.defs[name]

    def executor(
        self, entry_point: str, inputs: Sequence[Argument]
    ) -> tuple[Executor, tuple[Array, ...]]:
        """The executor for these inputs' sizes, and the inputs as arrays."""
        arrays = input_arrays(self.definition(entry_point), inputs)
        key = (entry_point, *(a.shape for a in arrays))
        executor = self._executors.get(key)
        if executor is None:
            with self._lock:
                executor = self._executors.get(key)
                if executor is None:
                    executor = self._executors[key] = self._make(entry_point, arrays)
        return executor, arrays

    def _make(self, entry_point: str, arrays: tuple[Array, ...]) -> Executor:
        sized = size(self.defs[entry_point], arrays)
        options = self.options
        if options is None:
            options = best_known(sized, arrays, self.threads, nearest=self.nearest)
        if isinstance(options, MappingOptions):
            return Executor(sized, options, self.threads)
        made = options(self.source, entry_point, *arrays)
        if not isinstance(made, MappingOptions):
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise OptionsError(f"the options factory has none for {entry_point} on {shapes}")
        return Executor(sized, made, self.threads)


class DefFunction:
    """One def of a text: a function of its inputs."""

    def __init__(self, kernels: _Kernels, definition: CheckedDef) -> None:
        self._kernels = kernels
        self._latest: Executor | None = None
        """The executor of the last call, whichever thread made it. It is asked first, and says
        itself whether a call is like the last one that it ran."""
        self.__name__ = self.__qualname__ = definition.name
        names = ", ".join(t.name for t in definition.inputs)
        results = ", ".join(t.name for t in definition.outputs)
        self.__doc__ = f"{definition.name}({names}) -> ({results})"

    def __reduce__(self) -> tuple[object, ...]:
        return _function, (*self._kernels.given, self.__name__)

    def __call__(
        self, *inputs: Argument, outputs: Sequence[Array] | None = None, unchecked: bool = False
    ) -> Array | tuple[Array, ...]:
        """Run it; see ``Executor``."""
        latest = self._latest
        if latest is not None:
            found = latest.again(inputs, outputs, unchecked)
            if found is not None:
                return found
        executor, arrays = self._kernels.executor(self.__name__, inputs)
        results = executor.run(arrays, outputs, unchecked=unchecked)
        self._latest = executor
        return results

    def __repr__(self) -> str:
        return f"<tcl {self.__doc__}>"


def _function(
    source: str, options: OptionsLike, threads: int, nearest: bool, name: str
) -> DefFunction:
    """A function of a text, as a copy makes it."""
    return Definitions(source, options, threads, nearest)[name]


def size(checked: CheckedDef, arrays: Sequence[Array]) -> SizedDef:
    """The definition with the sizes of these inputs."""
    shapes = {t.name: a.shape for t, a in zip(checked.inputs, arrays, strict=True)}
    return infer(checked, shapes)


def _as_options(options: OptionsLike) -> MappingOptions | OptionsFactory | None:
    if isinstance(options, str):
        return MappingOptions(options)
    if options is None or isinstance(options, MappingOptions) or callable(options):
        return options
    raise OptionsError(
        f"options have to be MappingOptions, a preset's name or a factory, "
        f"not {type(options).__name__}"
    )


def _unknown(name: str, defs: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:64], list(defs), n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(defs)}"
    return f"there is no def '{name}'; {hint}"


def assert_almost_equal(
    actual: Array,
    expected: Array,
    *inputs: Array,
    operations: int = 1,
    precision: float = 1e-7,
) -> None:
    """Assert that two arrays agree within ``operations * precision * largest input``.

    ``operations`` is the number of iterated operations per value, ``precision`` the relative
    precision of one. Raises ``AssertionError``.
    """
    largest = max((float(np.max(np.abs(i))) for i in inputs if i.size), default=0.0)
    difference = np.abs(np.asarray(actual, np.float64) - np.asarray(expected, np.float64))
    worst = float(np.max(difference, initial=0.0))
    if not worst <= operations * precision * largest:
        raise AssertionError(
            f"the largest difference is {worst:g}, more than {operations} operations at "
            f"precision {precision:g} on values up to {largest:g} explain"
        )
