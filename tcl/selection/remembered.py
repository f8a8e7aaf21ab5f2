"""Choices that were made without measuring, kept in the user's cache: who comes next has the same
answer, and need not ask again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field

from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError, OptionsError
from tcl.common.folder import cache_folder
from tcl.common.log import logger
from tcl.common.warn import warn_once
from tcl.selection.best_options import Query, best_known
from tcl.selection.suggested_options import DEFAULT, Choices, Chosen, Suggested
from tcl.selection.tune_modes import TuneMode
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.file import FILE_NAME
from tcl.tuner.cache.first_uses import Adviser, FirstUse
from tcl.tuner.cache.tuning_cache import TuningCache

_log = logger("executors")


def _default() -> Chosen:  # a lambda could not be pickled
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
            why = "" if used else "none of the preferred candidates can be compiled"
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
        said = (
            f"the prediction for {query.name} cannot be saved, so the next process predicts "
            f"again: {error}"
        )
        if by.kind == "model":
            warn_once(("predict", str(error)), said)
        else:
            _log.debug("%s", said)


BEGUN, BUSY_THEN = "begun", "busy"
"""With a mode: what was begun, and what was done while others used the cores, is done again."""


def known_by(cache: TuningCache, query: Query, mode: TuneMode) -> Chosen | None:
    """What is known since an earlier time; None if the mode's work is still to be done. For empty
    arrays there is none: kernels do nothing, or write zeros. Raises ``CacheError``."""
    if any(0 in shape for shape in query.sized.shapes.values()):
        return best_known(query)
    entries = first_uses.load(cache, query.key)
    done = next((e for e in entries if mode.satisfied_by(e.mode)), None)
    again = {f"{BEGUN} {mode}", f"{BUSY_THEN} {mode}"}
    if done is None and any(e.mode in again for e in entries):
        return None
    # Whatever was tuned by hand had its own search; a smaller mode's result does not do.
    if mode.searches and (done is not None or not entries) and cache.top(query.key, 1):
        return best_known(query)
    if done is None:
        return None
    if done.winner is None:
        return default_as_nothing_works(query, mode, done.message)
    try:
        return MappingOptions.from_json(done.winner)
    except OptionsError:  # of another version: it is found again
        return None


def default_as_nothing_works(query: Query, mode: TuneMode, message: str) -> Chosen:
    """The default, with one warning."""
    warn_once(
        ("first use", query.key.digest, str(mode)),
        f"no candidate of mode {mode} works for {query.name} on {query.key.sizes}, so the "
        f"default is used: {message}",
    )
    return DEFAULT
