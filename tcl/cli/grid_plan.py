"""What ``tcl tune --grid`` is about to do: each point, what is known of it and what it costs."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class PointSettings:
    """The settings of one point."""

    config: TunerConfig
    threads: int
    """Of a kernel on a CPU."""
    target: Target
    start: MappingOptions | None


@dataclass(frozen=True, slots=True)
class PointProgress:
    """How far a search for a point has come in the cache."""

    done: bool = False
    """A complete search with these settings is there, and has found something."""
    last: SavedSearch | None = None
    """The last search, if it has these settings and is not done."""
    busy: str = ""
    """The sentence, if one is going on in another process."""


@dataclass(frozen=True, slots=True)
class PointCost:
    """What tuning one point costs."""

    candidates: int = 0
    """That are measured, at most, if it begins anew."""
    left: int = 0
    """Likewise, if it goes on."""
    each: float = 0.0
    """Seconds for a candidate, about."""
    around: float = 0.0
    """Seconds, whatever is left to measure."""
    limit: float | None = None
    """Seconds for all candidates, if there is a limit."""
    by_experience: bool = False
    """Whether earlier searches said so, rather than a rule."""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """One point of the grid, as it is planned."""

    number: int
    about: GridPoint
    choice: PointSettings
    key: CacheKey | None = None
    """None if the def cannot be used with these sizes."""
    standing: PointProgress = PointProgress()
    cost: PointCost = PointCost()
    problem: str = ""
    """Why it cannot be tuned."""

    @property
    def title(self) -> str:
        """The def, its sizes and its device, or its threads if that is the CPU, for people."""
        count, where = self.choice.threads, self.choice.target.name
        if where == "cpu":
            where = plural(count, "thread")
        return f"{self.about.title} ({where})"

    def ahead(self, *, resume: bool) -> tuple[int, float]:
        """How many candidates it has before it, and about how many seconds."""
        if resume and self.standing.done:
            return 0, 0.0
        cost = self.cost
        count = cost.left if resume else cost.candidates
        search = count * cost.each
        return count, cost.around + (search if cost.limit is None else min(search, cost.limit))


@dataclass(frozen=True, slots=True)
class GridPlan:
    """All points, each once, and the notes about those that were named again."""

    points: tuple[PlannedPoint, ...]
    notes: tuple[str, ...]


def make_plan(
    points: Sequence[GridPoint],
    given: Mapping[str, Any],
    folder: str,
    cache: TuningCache,
    *,
    here: bool = True,
) -> GridPlan:
    """The plan for a grid whose file is in ``folder``. ``given`` are the command line's settings,
    which come before those of the file; ``here``: whether this machine does the work. ``GridError``
    for settings that make no sense."""
    choices = _choices(points, given, folder, here=here)
    bases = functools.cache(partial(typical_pace, cache))  # each is asked for once
    found: list[PlannedPoint] = []
    notes = []
    known: dict[object, int] = {}
    for about in points:
        choice = choices[about.place]
        number = len(found) + 1
        point = _planned(number, about, choice, cache, bases)
        sizes = tuple(about.sizes.items())
        same = point.key or (about.text, about.checked.name, sizes, choice.target)
        twin = known.setdefault(same, number)
        if twin == number:
            found.append(point)
        else:
            notes.append(f"{about.place}: {about.title} is point {twin} again; it is tuned once")
    return GridPlan(tuple(found), tuple(notes))


def _choices(
    points: Sequence[GridPoint], given: Mapping[str, Any], folder: str, *, here: bool
) -> dict[str, PointSettings]:
    """The settings of each table."""
    chosen = {name: value for name, value in given.items() if value is not None}
    choices: dict[str, PointSettings] = {}
    problems: dict[str, str] = {}
    for point in points:
        if point.place in choices or point.place in problems:
            continue
        try:
            choices[point.place] = _choice(point.settings, chosen, folder, here=here)
        except TclError as error:
            problems[point.place] = f"{point.place}: error: {error}"
    if problems:
        raise GridError(problems.values())
    return choices


def _choice(
    own: Mapping[str, Any], chosen: Mapping[str, Any], folder: str, *, here: bool
) -> PointSettings:
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
    return PointSettings(config, threads, target, parse_options(options))


def _planned(
    number: int,
    about: GridPoint,
    choice: PointSettings,
    cache: TuningCache,
    typical: Callable[[str], float | None],
) -> PlannedPoint:
    """``typical``: seconds for a candidate, by device, as earlier searches went."""
    point = PlannedPoint(number, about, choice)
    try:
        shapes, layouts = layouts_of(about.checked, about.sizes)
        sized = infer(about.checked, shapes)
        _check_memory(sized)
        query = choice.target.query(sized, layouts, about.varying)
        backend = choice.target.backend(about.text, about.checked.name, layouts)
        if query.classes:
            backend = backend.for_all(query.classes)
        standing = _standing(cache, query.key, choice, backend)
        cost = _cost(sized, pace(cache, query.key), partial(typical, query.key.device))
    except SourceError as error:
        return replace(point, problem=error.message)
    except CacheError:
        raise
    except TclError as error:
        return replace(point, problem=str(error))
    settings = choice.config.settings
    starts = len({*STARTS, choice.start or STARTS[0]})
    most = starts + settings.population + (settings.generations - 1) * settings.search.children
    known = len(standing.last.outcomes()) if standing.last is not None else 0
    cost = replace(cost, candidates=most, left=max(0, most - known), limit=settings.time_limit)
    return replace(point, key=query.key, standing=standing, cost=cost)


def _check_memory(sized: SizedDef) -> None:
    """Refuse what the machine cannot hold: the system would end the whole grid for it."""
    tensors = (*sized.checked.inputs, *sized.checked.outputs)
    needed = _COPIES * sum(
        math.prod(sized.shapes[t.name]) * np.dtype(numpy_dtype(t.type)).itemsize for t in tensors
    )
    there = total_memory()
    if there is not None and needed > there:
        raise ArgumentError(
            f"its inputs and outputs need {in_words(needed)} of memory, the machine has "
            f"{in_words(there)}"
        )


def _standing(
    cache: TuningCache, key: CacheKey, choice: PointSettings, backend: Any
) -> PointProgress:
    settings = choice.config.settings
    ended = SavedSearch.ended(cache, key)
    space = choice.target.space(backend).space if ended else None
    right = [s for s in ended if space is not None and s.suits(space) and _fits(s, choice)]
    if any(search.found and search.complete(settings) for search in right):
        return PointProgress(done=True)
    try:
        last = SavedSearch.last(cache, key)
    except SearchBusyError as error:
        return PointProgress(busy=str(error))
    except CacheError:  # of another version: it does not go on
        return PointProgress()
    return PointProgress(
        last=next((s for s in right if last is not None and s.name == last.name), None)
    )


def _fits(search: SavedSearch, choice: PointSettings) -> bool:
    """Whether this is the search that was asked for, but perhaps for how long it went on."""
    try:
        choice.config.going_on(search.settings)
    except OptionsError:
        return False
    return choice.start is None or choice.start.to_json() in search.start[:1]


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


def _cost(sized: SizedDef, own: float | None, typical: Callable[[], float | None]) -> PointCost:
    """How long tuning takes, about: as it went before for these very sizes, seconds a candidate, if
    that is known, or for others, else by a rule.

    The rule is, for each candidate: a base of 0.1 s to compile it and 0.2 s to measure it, what the
    calls need beyond that at two operations a nanosecond, and 4 ns per byte that is compared; for
    each search, what comes before and after it. What is known of these very sizes takes the place
    of all of it but the last, what is known of other sizes takes the place of the base.
    """
    cost = cost_of(lower(sized))
    around = _AROUND + _PLAIN_CALLS * _PER_PLAIN_OPERATION * cost.operations
    if own is not None:
        return PointCost(each=own, around=around, by_experience=True)
    base, calls = typical(), _CALLS * _PER_OPERATION * cost.operations
    by_size = max(0.0, calls - _MEASURE) + _PER_BYTE * cost.bytes_moved
    each = (base or _BASE) + by_size
    return PointCost(each=each, around=around, by_experience=base is not None)
