"""The model that a search starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tcl.common.errors import ModelError
from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.selection.best_options import Query
from tcl.selection.predicted_options import models_folder
from tcl.tuner.space.program_space import ProgramSpace

if TYPE_CHECKING:
    from tcl.tuner.model import lookup, search_prior
else:
    lookup, search_prior = Lazy("tcl.tuner.model.lookup"), Lazy("tcl.tuner.model.search_prior")

_log = logger("tuning")


def model_to_start_from(
    query: Query, backend: Any, space: ProgramSpace, warn: Callable[[str], object]
) -> search_prior.SearchPrior | None:
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
        warn(f"{sentence}; {path} is asked instead")
    prior = search_prior.search_prior(
        model, backend.program(), query.device, space, lookup.contents_identity((path,)), path.name
    )
    if prior is None:
        _log.info("%s is unlike all that the model %s has learned from", query.name, path)
    return prior
