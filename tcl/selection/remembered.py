"""Choices that were made without measuring, kept in the user's cache: who comes next has the same
answer, and need not ask again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field

from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError
from tcl.common.folder import cache_folder
from tcl.common.log import logger
from tcl.common.warn import warn_once
from tcl.selection.best_options import Query
from tcl.selection.suggested_options import DEFAULT, Choices, Chosen, Suggested
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.file import FILE_NAME
from tcl.tuner.cache.first_uses import Adviser, FirstUse
from tcl.tuner.cache.tuning_cache import TuningCache

_log = logger("executors")


def _default() -> Chosen:
    return DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered(Choices):
    """Options that an adviser chooses, best first, or the one that it has chosen earlier."""

    query: Query
    by: Adviser
    now: bool = False
    """Whether it has just been asked, so that what is made is to be remembered."""
    instead: Callable[[], Chosen] = field(default=_default, compare=False)

    def otherwise(self) -> Chosen:
        return self.instead()

    def note(self, refused: list[tuple[Suggested, str]], used: Suggested | None) -> None:
        for entry, reason in refused:
            about = self.name, entry.options, reason
            _log.info("%s: predicted options are passed over: %s: %s", *about)
        if self.now:
            why = "" if used else "nothing that is preferred can be compiled"
            remember(self.query, self.by, used.options if used else None, why)


def user_cache() -> TuningCache | None:
    """The user's cache; None if there is no such file."""
    folder = cache_folder()
    if folder is None or not os.path.exists(folder / FILE_NAME):
        return None
    return TuningCache(folder / FILE_NAME)


def remembered(query: Query, by: Adviser) -> FirstUse | None:
    """What it chose earlier: its ``winner`` is None where that left the default alone. None if it
    was not asked, or the cache cannot be read, which was said where tuned options were looked
    for."""
    cache = user_cache()
    if cache is None:
        return None
    try:
        return first_uses.predicted(cache, query.key, by)
    except CacheError:
        return None


def remember(query: Query, by: Adviser, winner: str | None, message: str) -> None:
    """Keep what it chose. Where that cannot be done there is one warning, if what is asked again
    for each process is a model, which takes long."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        cache = TuningCache(folder / FILE_NAME)
        first_uses.store_predicted(cache, query.key, by, winner, message)
    except CacheError as error:
        said = f"what is predicted for {query.name} is not kept, and asked for again: {error}"
        if by.kind == "model":
            warn_once(("predict", str(error)), said)
        else:
            _log.debug("%s", said)
