"""A search as it is kept in the tuning cache, from which it goes on after any end.

Kept are the settings, with the seed; what the search began with; and how far it came. Asked again,
its strategy proposes the same again, of which the cache knows what was measured: each measurement
is there from the moment it was made.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from tcl.common.errors import CacheError, OptionsError
from tcl.tuner.cache.tuning_cache import CacheKey, Record, TuningCache
from tcl.tuner.config import TunerSettings
from tcl.tuner.space.search_space import Config, ConfigSpace

OWNER = "owner"
"""In the state: the process that is at work on it; None if there is none."""
SECONDS = "seconds"
"""In the state: how long the search has taken so far, its breaks not counted."""
_MODEL = "model"
"""In the state: the identity of the model that the search starts from; None if there is none."""


class SearchBusyError(CacheError):
    """The search is still going on, in another process."""


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """What the cache knows of a search, or will of one that is about to begin."""

    name: str
    settings: TunerSettings
    """With a seed."""
    start: tuple[str, ...]
    """The options that it started from, as JSON."""
    seeds: tuple[Config, ...]
    """The configurations that opened its first generation."""
    knobs: object
    """Of the space it searches, by name with the number of choices: see ``knobs_of``."""
    generation: int = 0
    """The one that was about to be searched; 0: the start."""
    begun: bool = False
    """Whether this is an earlier part's, which is to be gone on with."""
    records: tuple[Record, ...] = ()
    """Everything measured, in the order in which it was saved."""
    seconds: float = 0.0
    """How long it has taken so far, as far as was saved."""
    model: str | None = None
    """The identity of the model that it starts from; None if there is none."""

    @classmethod
    def last(cls, cache: TuningCache, key: CacheKey) -> SavedSearch | None:
        """The last search for a key to begin, of those that are not going on right now.

        ``SearchBusyError`` if there are only such, ``CacheError`` if it cannot be read.
        """
        busy = None
        for worker, read in _searches(cache, key):
            if worker is None:
                return read()
            busy = busy or worker
        if busy is not None:
            raise _going_on(cache, busy)
        return None

    @classmethod
    def ended(cls, cache: TuningCache, key: CacheKey) -> tuple[SavedSearch, ...]:
        """All searches for a key that are not going on right now and can be read, the last one to
        begin first."""
        searches = []
        for worker, read in _searches(cache, key):
            if worker is None:
                with contextlib.suppress(CacheError):  # of another version
                    searches.append(read())
        return tuple(searches)

    def complete(self, settings: TunerSettings) -> bool:
        """Whether nothing is left of what these settings ask for: all generations are done, or
        the time is spent."""
        spent = settings.time_limit is not None and self.seconds >= settings.time_limit
        return spent or self.generation > settings.generations

    @property
    def found(self) -> bool:
        """Whether anything worked."""
        return any(record.time is not None for record in self.records)

    def suits(self, space: ConfigSpace) -> bool:
        """Whether it searches this space, with the same knobs fixed in it."""
        return self.knobs == knobs_of(space)

    def state(self, generation: int, seconds: float) -> dict[str, object]:
        """What is saved before ``generation``, by the process that is at it."""
        return {
            "start": self.start,
            "seeds": self.seeds,
            "generation": generation,
            "knobs": self.knobs,
            _MODEL: self.model,
            SECONDS: seconds,
            OWNER: _owner(),
        }

    def outcomes(self) -> dict[tuple[int, str], Record]:
        """Measurements of the search itself, not of its finals, by generation and options."""
        return {
            (r.generation, r.options): r
            for r in self.records
            if r.generation is not None and r.heat is None
        }

    @property
    def heats(self) -> int:
        """How many heats its finals have had."""
        return 1 + max((r.heat for r in self.records if r.heat is not None), default=-1)


def _searches(
    cache: TuningCache, key: CacheKey
) -> Iterator[tuple[int | None, Callable[[], SavedSearch]]]:
    """The searches for a key, the last one to begin first: the process that is at work on it, if
    any, and how it is read."""
    for name in cache.runs(key):
        if found := cache.load_run(name):
            worker = os.getpid() if (os.getpid(), name) in _here else _at_work(found[1])
            yield worker, partial(_checked_state, cache, key, name, *found)


def _checked_state(
    cache: TuningCache,
    key: CacheKey,
    name: str,
    config: Mapping[str, Any],
    state: Mapping[str, Any],
) -> SavedSearch:
    try:
        known = {f.name for f in fields(TunerSettings)}
        if set(config) - known:
            raise ValueError
        return SavedSearch(
            name,
            TunerSettings(**config),
            tuple(map(str, state["start"])),
            tuple(tuple(seed) for seed in state["seeds"]),
            state["knobs"],
            int(state["generation"]),
            True,
            cache.of_run(key, name),
            float(state.get(SECONDS, 0.0)),
            None if state.get(_MODEL) is None else str(state[_MODEL]),
        )
    except (KeyError, TypeError, ValueError, OptionsError):
        raise CacheError(
            f"the search {name} was started by another version of tcl and cannot continue; "
            "start a new search, which begins with the best of its results"
        ) from None


def knobs_of(space: ConfigSpace) -> list[object]:
    """What a search that goes on has to find again."""
    return [[knob.name, len(knob.choices)] for knob in space.knobs]


# Whether somebody is at it.

_here: set[tuple[int, str]] = set()
"""The searches of this process, with its number: one that it forks has none of them."""
_lock = threading.Lock()


@contextlib.contextmanager
def kept(
    name: str, cache: TuningCache | None, key: CacheKey | None, resume: SavedSearch | None
) -> Iterator[SavedSearch | None]:
    """While the context lasts, nobody else goes on with the search of this name. Gives what there
    is to resume: it may have gone on since ``resume`` was looked up.

    ``CacheError`` if somebody is at it, or it cannot be read any more.
    """
    mine = (os.getpid(), name)
    with _lock:
        if cache is not None and mine in _here:
            raise _going_on(cache, mine[0])
        _here.add(mine)
    try:
        if cache is None or key is None or resume is None:
            yield resume
        else:

            def claim(state: Mapping[str, object]) -> dict[str, object]:
                if worker := _at_work(state):
                    raise _going_on(cache, worker)
                return {**state, OWNER: _owner()}

            cache.change_run(name, claim)
            try:
                found = cache.load_run(name)
                yield _checked_state(cache, key, name, *found) if found else resume
            finally:
                with contextlib.suppress(CacheError):
                    cache.change_run(name, lambda state: {**state, OWNER: None})
    finally:
        _here.discard(mine)


def _going_on(cache: TuningCache, process: int) -> SearchBusyError:
    return SearchBusyError(
        f"the search in {cache.path} is still running, in process {process}; stop it first, or "
        "start a new search without resume"
    )


def _owner() -> list[object]:
    """This process, as nobody else ever is."""
    return [platform.node(), os.getpid(), _born(os.getpid())]


def _at_work(state: Mapping[str, object]) -> int | None:
    """The other process that is at work on a search, if it is alive; of another machine's nothing
    is known, so it is not."""
    match state.get(OWNER):
        case [node, int(pid), born] if node == platform.node() and pid != os.getpid():
            try:
                os.kill(pid, 0)
            except PermissionError:
                pass
            except (OSError, OverflowError):
                return None
            return pid if _born(pid) == born else None
    return None


def _born(pid: int) -> str:
    """When a process began, in the system's own count; empty where that is not known."""
    try:
        fields_ = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return "" if fields_[0] == "Z" else fields_[19]
    except (OSError, IndexError):
        return ""
