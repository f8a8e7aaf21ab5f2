"""Tuning from Python: ``autotune`` and what surrounds it, with the original's names."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from tcl.api import Definitions, compile, sized
from tcl.arrays.arguments import Argument
from tcl.arrays.tracing import opaque
from tcl.arrays.user_input import (
    SourceLike,
    check_flag,
    check_sequence,
    file_named,
    in_order,
)
from tcl.backends.targets import Target, target, target_of
from tcl.cached_options import MappingOptionsCache
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.knobs import Value
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, CacheError, CompileError, OptionsError
from tcl.common.headroom import need_room_for_numba
from tcl.common.scratch_folder import workspace
from tcl.common.shown import kind_of, shown
from tcl.executors.call_inputs import inputs_of
from tcl.executors.calls import Calls
from tcl.executors.dispatch import Settings
from tcl.executors.size_classes import for_all
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef
from tcl.progress.shown import shown_progress
from tcl.selection.best_options import DEFAULT, Query, defined
from tcl.selection.predicted_options import model_to_start_from
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.config import TunerConfig
from tcl.tuner.run.checkpoint import SavedSearch
from tcl.tuner.run.events import Event, Note
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.tuner import Tuner as BackendTuner
from tcl.tuner.run.workplace import Workplace, check_cores
from tcl.tuner.space.program_space import ProgramSpace
from tcl.workers import template

Start: TypeAlias = MappingOptions | str | None
Report: TypeAlias = Callable[[Event[MappingOptions]], object]

STARTS = (DEFAULT, MappingOptions("pointwise"))
"""What every search measures first, after what the user gives."""


class Tuner:
    """Tunes the defs of one text.

    - ``cache_filename``: a cache file. If given, each result is saved there as soon as it is
      measured.
    - ``threads``: as for ``define``. Kernels are measured on this number of cores; during a
      measurement, tcl uses these cores for nothing else.
    - ``workplace``: a ``tcl.cluster.Cluster`` that compiles and measures candidates. Default: this
      machine.
    - ``device``: ``"cpu"``, or ``"cuda:0"`` for a GPU of this machine. Default: the device of the
      inputs.
    - ``varying``: names of sizes that vary, as for ``define``. Kernels and results are then for all
      sizes of the class of the inputs' sizes. If there can be no such kernel, they are for these
      sizes only, and a ``Note`` says so.

    Raises ``ArgumentError`` for an unknown device.
    """

    def __init__(
        self,
        source: SourceLike,
        cache_filename: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = None,
        workplace: Workplace | None = None,
        device: str | None = None,
        varying: Sequence[str] = (),
    ) -> None:
        if workplace is not None and not hasattr(workplace, "open"):
            raise ArgumentError(
                f"workplace has to be a tcl.cluster.Cluster, not {shown(workplace)}"
            )
        path = None if cache_filename is None else file_named("cache_filename", cache_filename)
        self._workplace = workplace
        self._threads = thread_count(threads)
        self._target = None if device is None else target(device, self._threads)
        self._definitions = Definitions(source, Settings(threads=self._threads, varying=varying))
        self._cache = None if path is None else TuningCache(path)

    @opaque
    def tune(
        self,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        starting_options: Start = None,
        config: TunerConfig | None = None,
        *,
        fixed: Mapping[str, Value] | None = None,
        resume: bool = False,
        report: Report | None = None,
        progress: bool | None = None,
    ) -> TuningResult[MappingOptions]:
        """Search for the fastest options of ``entry_point`` on these inputs.

        - ``inputs``: arrays of any library that calls accept. Arrays on a CUDA device are first
          copied to the host.
        - ``starting_options``: measured first. Default: the heuristic default.
        - ``config``: settings of the search.
        - ``fixed``: a mapping from knobs to values, for decisions that the search must not change.
          All measured candidates have these values. Raises ``OptionsError`` for an unknown knob or
          value.
        - ``resume``: continue the last search for such inputs that the cache has, with its
          settings, however it ended. ``config`` may change only the limits: generations, time limit
          and compile processes. The search ends as it would have ended without the break. A
          complete search continues if ``config`` asks for more generations. If there is no such
          search, a new one starts, and a ``Note`` says so.
        - ``report``: a function that is called with every event.
        - ``progress``: whether to show the progress; see ``autotune``.

        Ctrl+C ends the search early and keeps the results. Raises what ``define`` and ``compile``
        raise; ``IndexError`` for index tensors with values out of range; ``ArgumentError`` if there
        are more threads than cores, or if a resumed search started from other options;
        ``CacheError`` if the search cannot be resumed.
        """
        definition = self._definitions.definition(entry_point)
        check_sequence(definition, inputs)
        _check_settings(config, fixed, report)
        check_flag("resume", resume)
        if progress is not None:
            check_flag("progress", progress)
        limit = None if config is None else config.settings.time_limit
        with shown_progress(progress, entry_point, inputs, limit, report) as (take, say):
            query, result = self._searched(
                definition, inputs, starting_options, config, fixed or {}, take, resume
            )
            if self._cache is not None and result.options is not None and not result.unsaved:
                path = self._cache.path
                call = defined("source", path, query, self._definitions._kernels.varying)
                say(f"saved in {path}; {call} uses it for {query.key.described}")
        return result

    def _searched(
        self,
        definition: CheckedDef,
        inputs: Sequence[Any],
        starting_options: Start,
        config: TunerConfig | None,
        fixed: Mapping[str, Value],
        report: Report | None,
        resume: bool,
    ) -> tuple[Query, TuningResult[MappingOptions]]:
        """What was searched for, and what was found."""
        where, query, backend, arrays = self._backend(definition, inputs, report)
        key = query.key if self._cache is not None else None
        given = _given_options(starting_options)
        saved = self._saved(key, report) if resume else None
        config = config or TunerConfig()
        if saved is not None:
            config = config.going_on(saved.settings)
            if given is not None and given.to_json() not in saved.start[:1]:
                raise ArgumentError(
                    f"the search to resume started from {saved.start[0]}; leave out the "
                    "options, or start a new search"
                )
        _import_once()
        with workspace() as folder:
            backend = backend.holding(arrays, folder)
            space = _space(where, backend, fixed)
            settings, prior = config.settings, None
            if settings.model and settings.strategy == "screened":
                tell = report or (lambda event: None)
                prior = model_to_start_from(query, backend, space, lambda s: tell(Note(s)))
            tuner = BackendTuner(
                backend,
                space,
                config=config,
                cache=self._cache,
                key=key,
                entry=definition.name,
                timing=where.timing,
                measure_cores=where.cores,
                workplace=self._workplace,
                prior=prior,
            )
            return query, tuner.tune(_with_start(space, given), report, saved)

    def check(
        self,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        starting_options: Start = None,
        *,
        fixed: Mapping[str, Value] | None = None,
    ) -> None:
        """Raises the errors of ``tune`` for wrong arguments. Measures nothing."""
        definition = self._definitions.definition(entry_point)
        check_sequence(definition, inputs)
        _check_settings(None, fixed, None)
        where, _, backend, _ = self._backend(definition, inputs, None)
        _with_start(_space(where, backend, fixed or {}), _given_options(starting_options))
        if self._workplace is None:
            check_cores(where.cores)

    def _backend(
        self, definition: CheckedDef, inputs: Sequence[Any], report: Report | None
    ) -> tuple[Target, Query, Any, Sequence[Any]]:
        """The device, what kernels are for there, what makes them, and the inputs' values."""
        found = inputs_of(definition, inputs)
        where = target_of(found, self._target, self._threads)
        arrays = found.values()
        query = self._query(where, sized(self._definitions, definition, arrays), arrays, report)
        backend = where.backend(definition.text, definition.name, arrays)
        return where, query, backend.for_all(query.classes), arrays

    def _query(
        self, where: Target, with_sizes: SizedDef, arrays: Sequence[Any], report: Report | None
    ) -> Query:
        """What kernels are for, and how a cache is asked for options of it."""
        varying = [n for n in self._definitions._kernels.varying if n in with_sizes.checked.sizes]
        query = where.query(with_sizes, arrays, varying)
        if query.classes:
            for tensor, array in zip(with_sizes.checked.inputs, arrays, strict=True):
                if not array.flags.c_contiguous:
                    raise ArgumentError(
                        "kernels for varying sizes need row-major arrays, but input "
                        f"'{tensor.name}' of {query.name} is not row-major; leave out varying, "
                        "or pass a copy (numpy.ascontiguousarray)"
                    )
        elif varying and report is not None:
            why = for_all(with_sizes.checked, with_sizes.sizes, varying, where.device)
            report(Note(f"{why}; a kernel for these sizes only is tuned"))
        return query

    def _saved(self, key: CacheKey | None, report: Report | None) -> SavedSearch | None:
        if self._cache is None or key is None:
            raise ArgumentError("a search can be resumed only from a cache; name its file")
        saved = SavedSearch.last(self._cache, key)
        if saved is None and report is not None:
            report(Note("there is no search to resume; this one is new"))
        return saved


@opaque
def autotune(
    source: SourceLike,
    entry_point: str,
    *inputs: Any,
    starting_options: Start = None,
    tuner_config: TunerConfig | None = None,
    cache_filename: str | os.PathLike[str] | None = None,
    load_from_cache: bool = False,
    store_to_cache: bool = False,
    fixed: Mapping[str, Value] | None = None,
    resume: bool = False,
    threads: int | None = None,
    device: str | None = None,
    report: Report | None = None,
    progress: bool | None = None,
    varying: Sequence[str] = (),
    **named: Any,
) -> MappingOptions | None:
    """The best options that a search finds for a def on these inputs, or None if it finds nothing.
    ``named``: inputs by name, as in a call.

    The search starts from ``starting_options``, with ``load_from_cache`` from the best cached
    options, and otherwise from the heuristic default. With ``store_to_cache``, all measurements are
    saved in ``cache_filename`` (default: the user's cache), and ``resume`` continues the last
    search that was saved there. ``resume`` and ``fixed`` are as for ``Tuner.tune``, ``device`` and
    ``varying`` as for ``Tuner``, ``threads`` as for ``define``. Results for one number of threads
    are not used for another.

    A search takes from seconds to minutes; ``tuner_config`` limits it. Meanwhile it shows its
    progress: as a panel on a terminal (on standard error) and in a notebook. By default it shows
    nothing if standard error is a file or a pipe, or if ``report`` receives the events.
    ``progress=True`` shows progress in these cases too, in a file as lines; ``progress=False``
    never shows it. The lines are also logged to ``tcl.tuning`` at level ``INFO``.

    Raises what ``Tuner.tune`` raises, ``ArgumentError`` for contradictory arguments, and
    ``CacheError`` if ``load_from_cache`` finds no options.
    """
    if named:
        definition = Definitions(source).definition(entry_point)
        inputs = in_order(definition, inputs, named, SETTINGS)
    check_flag("load_from_cache", load_from_cache)
    check_flag("store_to_cache", store_to_cache)
    if starting_options is not None and load_from_cache:
        raise ArgumentError("give either starting_options or load_from_cache=True, not both")
    if cache_filename is not None and not (load_from_cache or store_to_cache):
        raise ArgumentError("cache_filename needs load_from_cache=True or store_to_cache=True")
    if resume and not store_to_cache:
        raise ArgumentError("resume=True needs store_to_cache=True: it continues a saved search")
    path = None
    if cache_filename is not None:
        path = file_named("cache_filename", cache_filename)
    elif load_from_cache or store_to_cache:
        path = default_path()
    start = starting_options
    if load_from_cache and path is not None:
        found = MappingOptionsCache(path).load(
            source, entry_point, inputs, threads=threads, device=device, varying=varying
        )
        if not found:
            raise CacheError(
                f"{path} has no options for {entry_point} on these inputs; tune it first, "
                "or give starting_options"
            )
        start = found[0]
    tuner = Tuner(
        source,
        path if store_to_cache else None,
        threads=threads,
        device=device,
        varying=varying,
    )
    result = tuner.tune(
        *(entry_point, inputs, start, tuner_config),
        fixed=fixed,
        resume=resume,
        report=report,
        progress=progress,
    )
    return result.options


def autotune_and_compile(
    source: SourceLike,
    entry_point: str,
    *inputs: Any,
    threads: int | None = None,
    **settings: Any,
) -> Calls[Any] | None:
    """Call ``autotune`` with these settings, then ``compile`` with the result, for the device of
    the inputs. ``device`` and ``varying`` are not accepted, because one kernel is made."""
    check_no_device(settings)
    if settings.get("varying"):
        raise ArgumentError(
            "the kernel is compiled for the sizes of these inputs; leave out varying=, or use "
            "it with tcl.autotune and tcl.define"
        )
    named = {name: value for name, value in settings.items() if name not in SETTINGS}
    if named:
        definition = Definitions(source).definition(entry_point)
        inputs = in_order(definition, inputs, named, SETTINGS)
        settings = {name: value for name, value in settings.items() if name in SETTINGS}
    best = autotune(source, entry_point, *inputs, threads=threads, **settings)
    if best is None:
        return None
    made: Calls[Any] = compile(source, entry_point, best, *inputs, threads=threads)
    return made


def check_no_device(settings: Mapping[str, Any]) -> None:
    """Raise ``ArgumentError`` if a device is named."""
    if settings.get("device") is not None:
        raise ArgumentError("the kernel runs on the device of its inputs; leave out device=")


_IMPORTED_ONCE = (
    *("numba", "numba.core.typed_passes", "numba.np.arraymath", "numba.np.npyimpl"),
    *("tcl.backends.program_backend", "tcl.codegen.reference", "tcl.tuner.measure.evaluate"),
)
"""What takes long to import of all that workers need."""


def _import_once() -> None:
    """Have Numba imported before the first worker is made, which compiles the reference. Else that
    one imports it, and then the next one is not made before their template has done it again."""
    with suppress(CompileError):  # no room: the worker says so
        need_room_for_numba()
        template.prepare(_IMPORTED_ONCE)


def _check_settings(config: object, fixed: object, report: object) -> None:
    """Raise ``ArgumentError`` for what is of another type."""
    if config is not None and not isinstance(config, TunerConfig):
        remedy = "; write tcl.TunerConfig(generations=5, ...)" * isinstance(config, Mapping)
        raise ArgumentError(
            f"tuner_config has to be a tcl.TunerConfig, not {kind_of(config)}{remedy}"
        )
    if fixed is not None and not isinstance(fixed, Mapping):
        raise ArgumentError(f"fixed must map knobs to values, not {shown(fixed)}")
    if report is not None and not callable(report):
        raise ArgumentError(f"report must be a function that takes events, not {shown(report)}")


def _space(device: Target, backend: Any, fixed: Mapping[str, Value]) -> ProgramSpace:
    try:
        return device.space(backend, fixed)
    except ValueError as error:
        raise OptionsError(str(error)) from None


def _with_start(space: ProgramSpace, given: MappingOptions | None) -> tuple[MappingOptions, ...]:
    """What a search begins with: no search ends slower than what nobody has to search for. With
    fixed knobs only what has these values; ``OptionsError`` if the given options have not."""
    start = tuple(dict.fromkeys((given, *STARTS) if given is not None else STARTS))
    if not space.fixed:
        return start
    kept = tuple(options for options in start if space.from_options(options) is not None)
    if given is not None and given not in kept:
        raise OptionsError("the starting options do not have the values of the fixed knobs")
    return kept or (space.to_options(space.nearest(DEFAULT)),)


def _given_options(options: Start) -> MappingOptions | None:
    if isinstance(options, str):
        return MappingOptions(options)
    if options is None or isinstance(options, MappingOptions):
        return options
    raise OptionsError(
        f"starting_options have to be MappingOptions or a preset's name, not {kind_of(options)}"
    )


SETTINGS = tuple(
    name
    for name, parameter in inspect.signature(autotune).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
)
"""What ``autotune`` takes by name besides inputs."""
