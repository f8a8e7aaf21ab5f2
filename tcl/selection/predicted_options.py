"""What a model of measured candidates chooses for a def that nobody has tuned.

A candidate that is taken has passed every check with which passes refuse options, and is compiled;
it is not compared with the reference before it is used, as the heuristic default is not, and no
options that a user gives: what options can say changes how a kernel computes, never what, which is
tested for random options of all kinds. Compiling the reference and calling it would take as long as
the kernel itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError, ModelError
from tcl.common.folder import cache_folder
from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.common.warn import warn_once
from tcl.selection.best_options import Query, best_known
from tcl.selection.suggested_options import DEFAULT, Choices, Chosen, Suggested
from tcl.selection.tune_modes import TuneMode
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.file import FILE_NAME
from tcl.tuner.cache.first_uses import FirstUse
from tcl.tuner.cache.tuning_cache import TuningCache

if TYPE_CHECKING:
    from tcl.codegen.loopir import lower
    from tcl.tuner.model import lookup, ranking
else:
    lower, lookup = Lazy("tcl.codegen.loopir.lower"), Lazy("tcl.tuner.model.lookup")
    ranking = Lazy("tcl.tuner.model.ranking")

_log = logger("executors")
_TRIES = 3
"""Candidates that are compiled before the default is taken."""


def best_or_predicted(
    query: Query, mode: TuneMode, *, nearest: bool = False, relax: Collection[str] = ()
) -> Chosen:
    """The best options that the user's cache has, else, if the mode is ``predict``, what a model
    chooses, else the heuristic default. For the others see ``best_known``."""
    known = best_known(query, nearest=nearest, relax=relax)
    if known is not DEFAULT or mode.name != "predict":
        return known
    return predicted(query, asked=mode.asked)


def predicted(query: Query, *, asked: bool) -> Chosen:
    """What the best model there is chooses, or has chosen earlier; the default where that is the
    better choice, or there is no model, with a warning if one was ``asked`` for."""
    found = tuple(lookup.files(query.device, models_folder()))
    if not found:
        return _nothing(query, "there is no model; `tcl model train` makes one", asked)
    model = lookup.contents_identity(found)
    known = _remembered(query, model)
    if known is None:
        return _asked_now(query, model)
    if known.winner is None:
        return DEFAULT
    return Predicted(query.name, "", _entries(query, (known.winner,)), query=query, model=model)


def models_folder() -> Path | None:
    """Where the user's own models lie."""
    folder = cache_folder()
    return folder / "models" if folder is not None else None


def _nothing(query: Query, why: str, asked: bool) -> Chosen:
    if asked:
        warn_once(
            ("predict", query.name, why),
            f"{query.name} is mapped by the default, as nothing can be predicted: {why}",
        )
    return DEFAULT


def _entries(query: Query, options: Sequence[str]) -> tuple[Suggested, ...]:
    key = query.key
    pairs = enumerate(options, 1)
    return tuple(Suggested(text, key.digest, key.sizes, rank) for rank, text in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(Choices):
    """Options that a model chooses, best first, or the one that it has chosen earlier."""

    query: Query
    model: str
    """The identity of the model's file, and of those that are asked where it is damaged."""
    now: bool = False
    """Whether the model has just been asked, so that what is made is to be remembered."""

    def note(self, refused: list[tuple[Suggested, str]], used: Suggested | None) -> None:
        for entry, reason in refused:
            about = self.name, entry.options, reason
            _log.info("%s: predicted options are passed over: %s: %s", *about)
        if self.now:
            why = "" if used else "nothing that is preferred can be compiled"
            _remember(self.query, self.model, used.options if used else None, why)

    def otherwise(self) -> Chosen:
        """Where options are of earlier, what the model says now."""
        return DEFAULT if self.now else _asked_now(self.query, self.model)


def _asked_now(query: Query, model: str) -> Chosen:
    """The most promising candidates; the default where that is the better choice, which is
    remembered."""
    try:
        ranked = rank_candidates(query)
    except ModelError as error:
        warn_once(("predict", str(error)), f"nothing is predicted: {error}")
        return DEFAULT
    preferred = list(islice(ranked.preferred(), _TRIES)) if ranked is not None else []
    if ranked is not None and preferred:
        best = ranked.ratio(preferred[0])
        about = query.name, query.key.sizes, len(ranked), best
        _log.debug("%s on %s: of %d candidates the best promises %.2f of the time", *about)
        texts = [ranked.options(place).to_json() for place in preferred]
        entries = _entries(query, texts)
        return Predicted(query.name, "", entries, query=query, model=model, now=True)
    why = "there is nothing to choose"
    if ranked is not None:
        why = f"unknown {ranked.unseen}" if ranked.unseen else "nothing promises 3 % over it"
    _log.debug("%s on %s: the default stands: %s", query.name, query.key.sizes, why)
    _remember(query, model, None, why)
    return DEFAULT


def _remembered(query: Query, model: str) -> FirstUse | None:
    folder = cache_folder()
    if folder is None or not os.path.exists(folder / FILE_NAME):
        return None
    try:
        return first_uses.predicted(TuningCache(folder / FILE_NAME), query.key, model)
    except CacheError:  # which was said where tuned options were looked for
        return None


def _remember(query: Query, model: str, winner: str | None, message: str) -> None:
    folder = cache_folder()
    if folder is None:
        return
    try:
        cache = TuningCache(folder / FILE_NAME)
        first_uses.store_predicted(cache, query.key, model, winner, message)
    except CacheError as error:
        warn_once(
            ("predict", str(error)),
            f"what is predicted for {query.name} is not kept, and asked for again: {error}",
        )


def rank_candidates(query: Query) -> ranking.Ranking | None:
    """What the best model for the query's device expects of candidates around the default; None
    where there is nothing to choose. Files that cannot be read are passed over with a warning;
    raises ``ModelError`` if that is all of them."""
    began, device = time.perf_counter(), query.device
    found = lookup.lookup(device, models_folder())
    if found is None:
        raise ModelError("the model's file is gone")
    model, path, wrong = found
    for sentence in wrong:
        warn_once(("predict", sentence), f"{sentence}; {path} is asked instead")
    program = lower.lower(query.sized, query.layouts())
    candidates = ranking.ranked(model, program, device, DEFAULT)
    taken = 1e3 * (time.perf_counter() - began)
    about = query.name, query.key.sizes, path, taken
    _log.debug("%s on %s: candidates are ranked by %s in %.1f ms", *about)
    return candidates
