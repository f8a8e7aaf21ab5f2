"""What ``tcl tune --grid`` is about to do: each point, what is known of it and what it costs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcl.backends.targets import Target, timed_target
from tcl.cli.cache_common import layouts_of
from tcl.cli.grid_cost import Estimate
from tcl.cli.grid_file import GridError, GridPoint
from tcl.cli.kernels import parse_options
from tcl.cli.settings import own_names, search_config
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.common.number_format import plural
from tcl.grammar.errors import ArgumentError, SourceError, TclError
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.errors import CacheError
from tcl.tuner.run.checkpoint import SavedSearch, SearchBusyError
from tcl.tuner.run.workplace import check_cores
from tcl.tuning import STARTS

_GENERATIONS = 10
_COPIES = 2
"""Of the inputs and outputs, that a search holds in memory at least."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The settings of one point."""

    config: TunerConfig
    threads: int
    """Of a kernel on a CPU."""
    target: Target
    start: MappingOptions | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a search for a point has come in the cache."""

    done: bool = False
    """A complete search with these settings is there, and has found something."""
    last: SavedSearch | None = None
    """The last search, if it has these settings and is not done."""
    busy: str = ""
    """The sentence, if one is going on in another process."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid, as it is planned."""

    number: int
    about: GridPoint
    choice: Choice
    key: CacheKey | None
    """None if the def cannot be used with these sizes."""
    standing: Standing
    candidates: int
    """How many are measured, at most, if it begins anew."""
    seconds: float
    """About how long that takes."""
    candidates_left: int
    """How many are left to measure if it goes on; 0 if nothing is left to do."""
    seconds_left: float
    by_experience: bool = False
    """Whether earlier searches said how long it takes, rather than a rule."""
    problem: str = ""
    """Why it cannot be tuned."""

    @property
    def title(self) -> str:
        """The def, its sizes and its device, or its threads if that is the CPU, for people."""
        count, where = self.choice.threads, self.choice.target.name
        if where == "cpu":
            where = plural(count, "thread")
        return f"{self.about.title} ({where})"


@dataclass(frozen=True, slots=True)
class Plan:
    """All points, each once, and the notes about those that were named again."""

    points: tuple[Point, ...]
    notes: tuple[str, ...]


def make_plan(
    points: Sequence[GridPoint],
    given: Mapping[str, Any],
    folder: str,
    cache: TuningCache,
    *,
    here: bool = True,
) -> Plan:
    """The plan for a grid whose file is in ``folder``. ``given`` are the command line's settings,
    which come before those of the file; ``here``: whether this machine does the work. ``GridError``
    for settings that make no sense."""
    choices = _choices(points, given, folder, here=here)
    estimate = Estimate(cache)
    found: list[Point] = []
    notes = []
    known: dict[object, int] = {}
    for about in points:
        choice = choices[about.place]
        number = len(found) + 1
        point = _planned(number, about, choice, cache, estimate)
        sizes = tuple(about.sizes.items())
        same = point.key or (about.text, about.checked.name, sizes, choice.target)
        twin = known.setdefault(same, number)
        if twin == number:
            found.append(point)
        else:
            notes.append(f"{about.place}: {about.title} is point {twin} again; it is tuned once")
    return Plan(tuple(found), tuple(notes))


def _choices(
    points: Sequence[GridPoint], given: Mapping[str, Any], folder: str, *, here: bool
) -> dict[str, Choice]:
    """The settings of each table."""
    chosen = {name: value for name, value in given.items() if value is not None}
    choices: dict[str, Choice] = {}
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
) -> Choice:
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
    return Choice(config, threads, target, parse_options(options))


def _planned(
    number: int, about: GridPoint, choice: Choice, cache: TuningCache, estimate: Estimate
) -> Point:
    point = Point(number, about, choice, None, Standing(), 0, 0.0, 0, 0.0)
    try:
        shapes, layouts = layouts_of(about.checked, about.sizes)
        sized = infer(about.checked, shapes)
        _check_memory(sized)
        key = choice.target.layout_key(sized, layouts)
        backend = choice.target.backend(about.text, about.checked.name, layouts)
        standing = _standing(cache, key, choice, backend)
        cost = estimate.of(sized, key)
    except SourceError as error:
        return replace(point, problem=error.message)
    except CacheError:
        raise
    except TclError as error:
        return replace(point, problem=str(error))
    settings = choice.config.settings
    starts = len({*STARTS, choice.start or STARTS[0]})
    most = starts + settings.population + (settings.generations - 1) * settings.search.children
    left = most - (len(standing.last.outcomes()) if standing.last is not None else 0)
    left = 0 if standing.done else max(0, left)
    limit = settings.time_limit
    return replace(
        point,
        key=key,
        standing=standing,
        candidates=most,
        seconds=cost.seconds(most, limit),
        candidates_left=left,
        seconds_left=0.0 if standing.done else cost.seconds(left, limit),
        by_experience=cost.by_experience,
    )


def _check_memory(sized: SizedDef) -> None:
    """Refuse what the machine cannot hold: the system would end the whole grid for it."""
    tensors = (*sized.checked.inputs, *sized.checked.outputs)
    needed = _COPIES * sum(
        math.prod(sized.shapes[t.name]) * np.dtype(numpy_dtype(t.type)).itemsize for t in tensors
    )
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise ArgumentError(
            f"its inputs and outputs need {needed / 1e9:.0f} GB of memory, the machine has "
            f"{there / 1e9:.0f} GB"
        )


def _standing(cache: TuningCache, key: CacheKey, choice: Choice, backend: Any) -> Standing:
    settings = choice.config.settings
    ended = SavedSearch.ended(cache, key)
    space = choice.target.space(backend).space if ended else None
    right = [s for s in ended if space is not None and s.suits(space) and _fits(s, choice)]
    if any(search.found and search.complete(settings) for search in right):
        return Standing(done=True)
    try:
        last = SavedSearch.last(cache, key)
    except SearchBusyError as error:
        return Standing(busy=str(error))
    except CacheError:  # of another version: it does not go on
        return Standing()
    return Standing(last=next((s for s in right if last is not None and s.name == last.name), None))


def _fits(search: SavedSearch, choice: Choice) -> bool:
    """Whether this is the search that was asked for, but perhaps for how long it went on."""
    try:
        choice.config.going_on(search.settings)
    except OptionsError:
        return False
    return choice.start is None or choice.start.to_json() in search.start[:1]
