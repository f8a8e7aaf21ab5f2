"""What was done when a def came up for sizes that nobody had tuned, in the tuning cache's file.

An entry says that it was done, so that it is not done again, also where nothing worked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import TuningCache


@dataclass(frozen=True, slots=True)
class FirstUse:
    """What became of a key."""

    mode: str
    """Which choices there were."""
    winner: str | None
    """Options as JSON; None: nothing worked."""
    message: str = ""
    """Why not."""


def load(cache: TuningCache, key: CacheKey) -> tuple[FirstUse, ...]:
    """The entries of a key, one for each mode, the latest first. Raises ``CacheError``."""
    query = "SELECT mode, winner, message FROM first_uses WHERE digest = ? ORDER BY created DESC"
    nothing: list[tuple[str, str | None, str]] = []
    found = cache.read(lambda db: db.execute(query, (key.digest,)).fetchall(), nothing)
    return tuple(
        FirstUse(mode, winner, message)
        for mode, winner, message in found
        if isinstance(winner, str | None)
    )


def store(cache: TuningCache, key: CacheKey, entry: FirstUse) -> None:
    """Keep an entry in the place of an earlier one of its mode. Raises ``CacheError``."""
    row = (key.digest, entry.mode, entry.winner, entry.message, time.time())
    cache.transaction(
        lambda db: db.execute("INSERT OR REPLACE INTO first_uses VALUES (?, ?, ?, ?, ?)", row)
    )
