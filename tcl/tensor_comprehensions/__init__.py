"""The Python API of the original, Facebook's Tensor Comprehensions, on top of tcl.

To run a program of the original, replace ``import tensor_comprehensions as tc`` by ``import
tcl.tensor_comprehensions as tc`` and, without a GPU, change its device. docs/original.md lists what
is supported, what is accepted without effect, and what is refused. Names, keywords and return
values are those of the original. For new programs, use ``import tcl``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from tcl.almost_equal import assert_almost_equal
from tcl.common.closest import no_def
from tcl.common.errors import ArgumentError
from tcl.common.forks import reentrant_lock
from tcl.common.shown import kind_of
from tcl.common.warn import warn
from tcl.tensor_comprehensions import switches, tclib
from tcl.tensor_comprehensions.options import OptionsLike
from tcl.tensor_comprehensions.switches import *  # noqa: F403 - they are exported below
from tcl.tensor_comprehensions.switches import LOG, SwitchedModule, state
from tcl.tensor_comprehensions.tclib import (
    CompilationCache,
    MappingOptions,
    MappingOptionsCache,
    TcExecutor,
    Tuner,
    TunerConfig,
)

__all__ = [
    "TC",
    "CompilationCache",
    "Executor",
    "MappingOptions",
    "MappingOptionsCache",
    "TcExecutor",
    "Tuner",
    "TunerConfig",
    "assert_almost_equal",
    "autotune",
    "autotune_and_compile",
    "compile",
    "define",
    "make_autograd",
    "make_autotuned_options_factory",
    "make_load_from_cache_options_factory",
    "make_naive_options_factory",
]
__all__ += switches.__all__

Path: TypeAlias = "str | os.PathLike[str]"
Factory: TypeAlias = Callable[..., "OptionsLike | None"]
"""``(tc, entry_point, *inputs) -> MappingOptions``."""


class MisuseError(ArgumentError, AssertionError):
    """Arguments that contradict each other, which the original asserts that they do not."""


class Executor:
    """A def compiled for the sizes of some inputs: ``executor(A, B)``."""

    def __init__(self, executor: TcExecutor) -> None:
        self.executor = executor

    def __call__(
        self, *inputs: Any, outputs: Sequence[Any] | None = None, unchecked: bool = False
    ) -> Any:
        """Run, into ``outputs`` if they are given. Returns the output, or a tuple of several.
        ``unchecked`` leaves off the run-time checks of data-dependent subscripts. Raises
        ``ArgumentError``, ``IndexError``."""
        run = self.executor.unchecked_run if unchecked else self.executor.run
        return run(inputs, () if outputs is None else outputs)


def compile(tc: str, entry_point: str, mapping_options: OptionsLike, *inputs: Any) -> Executor:
    """A kernel for one def on inputs of these sizes and strides. Raises what ``tcl.compile``
    raises."""
    return Executor(tclib.compile(tc, entry_point, inputs, mapping_options))


def autotune(
    tc: str,
    entry_point: str,
    *inputs: Any,
    starting_options: OptionsLike | None = None,
    tuner_config: TunerConfig | None = None,
    cache_filename: Path | None = None,
    load_from_cache: bool = False,
    store_to_cache: bool = False,
) -> MappingOptions:
    """The best options that a search finds for these inputs. It starts from ``starting_options``,
    or with ``load_from_cache`` from the best options in ``cache_filename``; give exactly one of
    them. With ``store_to_cache``, the results are saved there. Raises ``MisuseError``, and the
    errors of ``tcl.autotune``."""
    if cache_filename is not None and not (load_from_cache or store_to_cache):
        raise MisuseError("cache_filename needs load_from_cache=True or store_to_cache=True")
    if cache_filename is None and (load_from_cache or store_to_cache):
        raise MisuseError("load_from_cache and store_to_cache need cache_filename=")
    if (starting_options is not None) == load_from_cache:
        raise MisuseError("give either starting_options= or load_from_cache=True")
    start = starting_options
    if start is None and cache_filename is not None:
        start = make_load_from_cache_options_factory(cache_filename)(tc, entry_point, *inputs)
    if start is None:
        raise MisuseError(
            f"{cache_filename} has no options for {entry_point} on inputs of shapes "
            f"{_shapes(inputs)}; tune it with starting_options first"
        )
    kept = cache_filename if store_to_cache and cache_filename is not None else ""
    return Tuner(tc, kept).tune(entry_point, inputs, start, tuner_config or TunerConfig())


def autotune_and_compile(tc: str, entry_point: str, *inputs: Any, **settings: Any) -> Executor:
    """Call ``autotune`` with these settings, then ``compile`` with the result."""
    return compile(tc, entry_point, autotune(tc, entry_point, *inputs, **settings), *inputs)


def make_naive_options_factory() -> Factory:
    """A factory that always returns the naive options."""

    def generate(tc: str, entry_point: str, *inputs: Any) -> MappingOptions:
        return MappingOptions("naive")

    return generate


def make_load_from_cache_options_factory(cache_filename: Path) -> Factory:
    """A factory that returns the best options in a cache file, or None if the file has none."""

    def generate(tc: str, entry_point: str, *inputs: Any) -> MappingOptions | None:
        found = MappingOptionsCache(cache_filename).load(tc, entry_point, inputs, 1)
        return found[0] if found else None

    return generate


def make_autotuned_options_factory(
    starting_options: OptionsLike | None = None,
    tuner_config: TunerConfig | None = None,
    cache_filename: Path | None = None,
    load_from_cache: bool = False,
    store_to_cache: bool = False,
) -> Factory:
    """A factory that calls ``autotune`` with these settings."""

    return partial(
        autotune,
        starting_options=starting_options,
        tuner_config=tuner_config,
        cache_filename=cache_filename,
        load_from_cache=load_from_cache,
        store_to_cache=store_to_cache,
    )


class TC:
    """The defs of a text, as methods: ``T.mm(A, B)``, or by name, ``T("mm", A, B)``. A def is
    compiled at the first call with new inputs, with options from the factory."""

    def __init__(self, tc: str, mapping_options_factory: Factory) -> None:
        if not callable(mapping_options_factory):
            raise ArgumentError(
                "mapping_options_factory is called with (tc, entry_point, *inputs); "
                f"{kind_of(mapping_options_factory)} was given, not a function: "
                "take make_naive_options_factory()"
            )
        self.tc = tc
        self.mapping_options_factory = mapping_options_factory
        self.compilation_cache = CompilationCache(tc)
        self._lock = reentrant_lock()  # a factory may well call a def of this text
        self._names = tclib.parse_defs(tc)
        for name in self._names:
            if name in self.__dict__ or hasattr(type(self), name):
                warn(f"the name '{name}' is taken; call this def as T({name!r}, ...)")
            else:
                setattr(self, name, self._method(name))

    def __getattr__(self, name: str) -> Any:
        # Defs are attributes like any other; this says what there is not.
        raise AttributeError(no_def(name, self.__dict__.get("_names", ())))

    def __call__(
        self,
        entry_point: str,
        *inputs: Any,
        outputs: Sequence[Any] | None = None,
        unchecked: bool = False,
    ) -> Any:
        """Run a def; see ``Executor``. Raises ``MisuseError`` if the factory has no options."""
        executor = self.compilation_cache.executor(entry_point, inputs)
        if executor is None:
            with self._lock:
                executor = self.compilation_cache.executor(entry_point, inputs)
                if executor is None:
                    executor = self._compiled(entry_point, inputs)
        return Executor(executor)(*inputs, outputs=outputs, unchecked=unchecked)

    def _compiled(self, entry_point: str, inputs: tuple[Any, ...]) -> TcExecutor:
        """With the factory's options."""
        if not state.silent:
            LOG.info("%s is compiled for inputs of shapes %s", entry_point, _shapes(inputs))
        options = self.mapping_options_factory(self.tc, entry_point, *inputs)
        if options is None:
            raise MisuseError(
                f"the factory has no options for {entry_point} on inputs of shapes "
                f"{_shapes(inputs)}"
            )
        began = time.monotonic()
        self.compilation_cache.compile(entry_point, inputs, options)
        if not state.silent:
            LOG.info("%s was compiled in %.0f ms", entry_point, 1e3 * (time.monotonic() - began))
        made = self.compilation_cache.executor(entry_point, inputs)
        assert made is not None
        return made

    def _method(self, name: str) -> Callable[..., Any]:
        def run(*inputs: Any, outputs: Sequence[Any] | None = None, unchecked: bool = False) -> Any:
            return self(name, *inputs, outputs=outputs, unchecked=unchecked)

        run.__name__ = run.__qualname__ = name
        vars(run)["origin"] = self, name  # from which make_autograd derives a gradient
        return run


def define(tc: str, mapping_options_factory: Factory) -> TC:
    """The defs of a text; see ``TC``. Raises ``TclSyntaxError``, ``TclSemanticError``."""
    return TC(tc, mapping_options_factory)


def make_autograd(
    forward_fun: Callable[..., Any], backward_fun: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function of torch tensors with gradients.

    ``forward_fun(*inputs)`` computes the outputs. ``backward_fun(*inputs, *gradients)`` returns a
    gradient for each input, or None for an input without one; it gets the gradients of the outputs
    as contiguous tensors. Without ``backward_fun`` the gradients are derived; then ``forward_fun``
    must be a def, ``T.f`` of ``T = define(...)``. Raises ``ArgumentError`` if they cannot be
    derived.
    """
    from tcl.tensor_comprehensions.autograd import differentiable

    return differentiable(forward_fun, backward_fun)


def _shapes(inputs: Iterable[Any]) -> str:
    return ", ".join(str(tuple(getattr(i, "shape", ()))) for i in inputs)


SILENT: bool
"""Whether neither compiling nor tuning is told about."""

sys.modules[__name__].__class__ = SwitchedModule
