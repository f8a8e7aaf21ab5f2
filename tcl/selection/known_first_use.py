"""What an earlier search on first use has found: a module of its own, as who finds it here has no
need of all that searches load."""

from __future__ import annotations

from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.common.warn import warn_once
from tcl.selection.best_options import DEFAULT, Query, best_known
from tcl.selection.suggested_options import Chosen
from tcl.selection.tune_modes import TuneMode
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.tuning_cache import TuningCache

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
        f"nothing of mode {mode} works for {query.name} on {query.key.sizes}, so the default is "
        f"used: {message}",
    )
    return DEFAULT
