"""What ``tcl tune --grid`` is about to do: each point, what is known of it and what it costs."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tcl.backends.targets import Target, timed_target
from tcl.cli.cache_commands.common import layouts_of
from tcl.cli.grid_file import GridError, GridPoint
from tcl.cli.kernels import parse_options
from tcl.cli.settings import own_names, search_config
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.common.errors import ArgumentError, CacheError, OptionsError, TclError
from tcl.common.number_format import plural
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import SourceError
from tcl.tuner.cache.insight import pace, typical_pace
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.run.checkpoint import SavedSearch, SearchBusyError
from tcl.tuner.run.workplace import check_cores
from tcl.tuning import STARTS
from tcl.workers.process_memory import in_words, total_memory

_GENERATIONS = 10
_COPIES = 2
"""Of the inputs and outputs, that a search holds in memory at least."""


@dataclass(slots=True, eq=False)
class PlannedPoint:
    """One point of the grid: its settings, what the cache has of it, and what tuning it costs."""

    number: int
    about: GridPoint
    config: TunerConfig
    threads: int
    """Of a kernel on a CPU."""
    target: Target
    start: MappingOptions | None
    key: CacheKey | None = None
    """None if the def cannot be used with these sizes."""
    problem: str = ""
    """Why it cannot be tuned."""
    done: bool = False
    """A complete search with these settings is in the cache, and has found something."""
    last: SavedSearch | None = None
    """The last search, if it has these settings and is not done."""
    busy: str = ""
    """The sentence, if one is going on in another process."""
    candidates: int = 0
    """That are measured, at most, if it begins anew."""
    each: float = 0.0
    """Seconds for a candidate, about."""
    around: float = 0.0
    """Seconds, whatever is left to measure."""
    by_experience: bool = False
    """Whether earlier searches said how long it takes, rather than a rule."""

    @property
    def title(self) -> str:
        """The def, its sizes and its device, or its threads if that is the CPU, for people."""
        where = self.target.name
        return f"{self.about.title} ({plural(self.threads, 'thread') if where == 'cpu' else where})"

    def ahead(self, *, resume: bool) -> tuple[int, float]:
        """How many candidates it has before it, and about how many seconds."""
        if resume and self.done:
            return 0, 0.0
        known = len(self.last.outcomes()) if resume and self.last is not None else 0
        count = max(0, self.candidates - known)
        limit = self.config.settings.time_limit
        search = count * self.each
        return count, self.around + (search if limit is None else min(search, limit))


def make_plan(
    points: Sequence[GridPoint],
    given: Mapping[str, Any],
    folder: str,
    cache: TuningCache,
    *,
    here: bool = True,
) -> tuple[list[PlannedPoint], list[str]]:
    """All points of a grid whose file is in ``folder``, each once, and notes about those that were
    named again. ``given`` are the command line's settings, which come before those of the file;
    ``here``: whether this machine does the work. ``GridError`` for settings that make no sense."""
    chosen = {name: value for name, value in given.items() if value is not None}
    choices: dict[str, tuple[TunerConfig, int, Target, MappingOptions | None]] = {}
    problems = []
    for place, own in {point.place: point.settings for point in points}.items():
        try:
            choices[place] = _choice(own, chosen, folder, here=here)
        except TclError as error:
            problems.append(f"{place}: error: {error}")
    if problems:
        raise GridError(problems)
    typical = functools.cache(partial(typical_pace, cache))  # each is asked for once
    found: list[PlannedPoint] = []
    notes = []
    known: dict[object, int] = {}
    for about in points:
        point = PlannedPoint(len(found) + 1, about, *choices[about.place])
        _plan(point, cache, typical)
        sizes = tuple(about.sizes.items())
        same = point.key or (about.text, about.checked.name, sizes, point.target)
        twin = known.setdefault(same, point.number)
        if twin == point.number:
            found.append(point)
        else:
            notes.append(
                f"{about.place}: {about.title} is the same as point {twin}; it is tuned once"
            )
    return found, notes


def _choice(
    own: Mapping[str, Any], chosen: Mapping[str, Any], folder: str, *, here: bool
) -> tuple[TunerConfig, int, Target, MappingOptions | None]:
    """The settings of a table."""
    settings = {"device": "cpu", "generations": _GENERATIONS, **own, **chosen}
    with own_names():
        config = search_config(settings)
        config.settings.check()
    threads = thread_count(settings.get("threads"))
    target = timed_target(settings["device"], threads, here=here)
    if here:
        check_cores(target.cores)
    options = settings.get("options")
    if options is not None and "options" not in chosen:
        text = options in PRESETS or options.lstrip().startswith("{")
        if not text:  # a file, which is looked for beside the grid's
            options = os.path.join(folder, options)
    return config, threads, target, parse_options(options)


def _plan(point: PlannedPoint, cache: TuningCache, typical: Callable[[str], float | None]) -> None:
    """Find out all about a point. ``typical``: seconds for a candidate, by device, as earlier
    searches went."""
    about = point.about
    try:
        shapes, layouts = layouts_of(about.checked, about.sizes)
        sized = infer(about.checked, shapes)
        _check_memory(sized)
        query = point.target.query(sized, layouts, about.varying)
        backend = point.target.backend(about.text, about.checked.name, layouts)
        backend = backend.for_all(query.classes)
        _look_up(point, cache, query.key, backend)
        _estimate(point, sized, pace(cache, query.key), partial(typical, query.key.device))
    except SourceError as error:
        point.problem = error.message
    except CacheError:
        raise
    except TclError as error:
        point.problem = str(error)
    else:
        point.key = query.key


def _check_memory(sized: SizedDef) -> None:
    """Refuse what the machine cannot hold: the system would end the whole grid for it."""
    tensors = (*sized.checked.inputs, *sized.checked.outputs)
    needed = _COPIES * sum(
        math.prod(sized.shapes[t.name]) * np.dtype(numpy_dtype(t.type)).itemsize for t in tensors
    )
    there = total_memory()
    if there is not None and needed > there:
        raise ArgumentError(
            f"its inputs and outputs need {in_words(needed)} of memory; the machine has "
            f"{in_words(there)}"
        )


def _look_up(point: PlannedPoint, cache: TuningCache, key: CacheKey, backend: Any) -> None:
    """How far a search for a point has come in the cache."""
    ended = SavedSearch.ended(cache, key)
    space = point.target.space(backend).space if ended else None
    right = [s for s in ended if space is not None and s.suits(space) and _fits(s, point)]
    if any(search.found and search.complete(point.config.settings) for search in right):
        point.done = True
        return
    try:
        last = SavedSearch.last(cache, key)
    except SearchBusyError as error:
        point.busy = str(error)
    except CacheError:  # of another version: it does not go on
        return
    else:
        point.last = next((s for s in right if last is not None and s.name == last.name), None)


def _fits(search: SavedSearch, point: PlannedPoint) -> bool:
    """Whether this is the search that was asked for, but perhaps for how long it went on."""
    try:
        point.config.going_on(search.settings)
    except OptionsError:
        return False
    return point.start is None or point.start.to_json() in search.start[:1]


_BASE = 0.3
_MEASURE = 0.2
_CALLS = 4
"""Of a kernel whose calls are long."""
_PER_OPERATION = 0.5e-9
_PER_BYTE = 4e-9
_AROUND = 8.0
"""Seconds: workers that start, the finals, the comparison afterwards."""
_PLAIN_CALLS = 25
"""Of plain code, without options that were tuned: the reference, and in the comparison."""
_PER_PLAIN_OPERATION = 1e-9


def _estimate(
    point: PlannedPoint, sized: SizedDef, own: float | None, typical: Callable[[], float | None]
) -> None:
    """How long tuning takes, about: as it went before for these very sizes, seconds a candidate, if
    that is known, or for others, else by a rule.

    The rule is, for each candidate: a base of 0.1 s to compile it and 0.2 s to measure it, what the
    calls need beyond that at two operations a nanosecond, and 4 ns per byte that is compared; for
    each search, what comes before and after it. What is known of these very sizes takes the place
    of all of it but the last, what is known of other sizes takes the place of the base.
    """
    settings = point.config.settings
    starts = len({*STARTS, point.start or STARTS[0]})
    later = (settings.generations - 1) * settings.search.children
    point.candidates = starts + settings.population + later
    cost = cost_of(lower(sized))
    point.around = _AROUND + _PLAIN_CALLS * _PER_PLAIN_OPERATION * cost.operations
    base = own if own is not None else typical()
    point.by_experience = base is not None
    point.each = base or _BASE
    if own is None:
        calls = _CALLS * _PER_OPERATION * cost.operations
        point.each += max(0.0, calls - _MEASURE) + _PER_BYTE * cost.bytes_moved
