"""What a model of measured candidates chooses for a def that nobody has tuned.

A candidate that is taken has passed every check with which passes refuse options, and is compiled;
it is not compared with the reference before it is used, as the heuristic default is not, and no
options that a user gives: what options can say changes how a kernel computes, never what, which is
tested for random options of all kinds. Compiling the reference and calling it would take as long as
the kernel itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcl.common.errors import ModelError
from tcl.common.folder import cache_folder
from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.common.warn import warn_once
from tcl.selection.best_options import Query, best_known
from tcl.selection.near_sizes import of_near_sizes
from tcl.selection.remembered import Remembered, remember, remembered
from tcl.selection.suggested_options import DEFAULT, Chosen, Suggested
from tcl.selection.tune_modes import TuneMode
from tcl.tuner.cache.first_uses import Adviser

if TYPE_CHECKING:
    from tcl.codegen.loopir import lower
    from tcl.tuner.model import lookup, ranking
    from tcl.tuner.space.program_space import ProgramSpace
else:
    lower, lookup = Lazy("tcl.codegen.loopir.lower"), Lazy("tcl.tuner.model.lookup")
    ranking = Lazy("tcl.tuner.model.ranking")

_log, _search_log = logger("executors"), logger("tuning")
_TRIES = 3
"""Candidates that are compiled before the default is taken."""


def best_or_predicted(
    query: Query, mode: TuneMode, *, nearest: bool = False, relax: Collection[str] = ()
) -> Chosen:
    """The best options that the user's cache has, else, if the mode is ``predict``, what it has for
    near sizes where that is worth it, else what a model chooses, else the heuristic default. For
    the others see ``best_known``."""
    known = best_known(query, nearest=nearest, relax=relax)
    if known is not DEFAULT or mode.name != "predict":
        return known
    return of_near_sizes(query, lambda: predicted(query, asked=mode.asked))


def predicted(query: Query, *, asked: bool) -> Chosen:
    """What the best model there is chooses, or has chosen earlier; the default where that is the
    better choice, or there is no model, with a warning if one was ``asked`` for."""
    found = tuple(lookup.files(query.device, models_folder()))
    if not found:
        if asked:
            why = "there is no model; train one with `tcl model train`"
            warn_once(
                ("predict", query.name, why),
                f"{query.name} uses the default options, because nothing can be predicted: {why}",
            )
        return DEFAULT
    model = Adviser("model", lookup.contents_identity(found))
    known = remembered(query, model)
    if known is None:
        return _asked_now(query, model)
    if known.winner is None:
        return DEFAULT
    entries, ask = _entries(query, (known.winner,)), partial(_asked_now, query, model)
    return Remembered(query.name, "", entries, query=query, by=model, instead=ask)


def models_folder() -> Path | None:
    """Where the user's own models lie."""
    folder = cache_folder()
    return folder / "models" if folder is not None else None


def _entries(query: Query, options: Sequence[str]) -> tuple[Suggested, ...]:
    key = query.key
    pairs = enumerate(options, 1)
    return tuple(Suggested(text, key.digest, key.sizes, rank) for rank, text in pairs)


def _asked_now(query: Query, model: Adviser) -> Chosen:
    """The most promising candidates; the default where that is the better choice, which is
    remembered."""
    try:
        ranked = rank_candidates(query)
    except ModelError as error:
        warn_once(("predict", str(error)), f"nothing is predicted: {error}")
        return DEFAULT
    preferred = list(islice(ranked.preferred(), _TRIES)) if ranked is not None else []
    if ranked is not None and preferred:
        best = ranked.expected_ratio(preferred[0])
        about = query.name, query.key.sizes, len(ranked), best
        _log.debug("%s on %s: of %d candidates the best promises %.2f of the time", *about)
        texts = [ranked.options(place).to_json() for place in preferred]
        entries = _entries(query, texts)
        return Remembered(query.name, "", entries, query=query, by=model, now=True)
    why = "there is nothing to choose"
    if ranked is not None:
        why = f"unknown {ranked.unseen}" if ranked.unseen else "no candidate promises a gain of 3 %"
    _log.debug("%s on %s: the default stands: %s", query.name, query.key.sizes, why)
    remember(query, model, None, why)
    return DEFAULT


def rank_candidates(query: Query) -> ranking.Ranking | None:
    """What the best model for the query's device expects of candidates around the default; None
    where there is nothing to choose. Files that cannot be read are passed over with a warning;
    raises ``ModelError`` if that is all of them."""
    began, device = time.perf_counter(), query.device
    found = lookup.lookup(device, models_folder())
    if found is None:
        raise ModelError("the file of the model no longer exists")
    model, path, wrong = found
    for sentence in wrong:
        warn_once(("predict", sentence), f"{sentence}; {path} is used instead")
    program = lower.lower(query.sized, query.layouts())
    candidates = ranking.ranked(model, program, device, DEFAULT)
    taken = 1e3 * (time.perf_counter() - began)
    about = query.name, query.key.sizes, path, taken
    _log.debug("%s on %s: candidates are ranked by %s in %.1f ms", *about)
    return candidates


def model_to_start_from(
    query: Query, backend: Any, space: ProgramSpace, warn: Callable[[str], object]
) -> ranking.SearchPrior | None:
    """The best model for the query's device, as a search of ``space`` asks it; None where there is
    none, where it has not seen anything like this def or device, and for kernels of varying sizes,
    which models do not know. ``warn`` is told of files that cannot be read."""
    if query.classes:
        return None
    try:
        found = lookup.lookup(query.device, models_folder())
    except ModelError as error:
        warn(f"the search starts from no model: {error}")
        return None
    if found is None:
        return None
    model, path, wrong = found
    for sentence in wrong:
        warn(f"{sentence}; {path} is used instead")
    prior = ranking.search_prior(
        model, backend.program(), query.device, space, lookup.contents_identity((path,)), path.name
    )
    if prior is None:
        _search_log.info("%s is unlike all that the model %s has learned from", query.name, path)
    return prior
