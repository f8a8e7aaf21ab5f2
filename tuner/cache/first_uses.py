"""What was done when a def came up for sizes that nobody had tuned, in the tuning cache's file.

An entry says that it was done, so that it is not done again, also where nothing worked.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from typing import Literal

from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.schema import put
from tcl.tuner.cache.table_rows import MESSAGE
from tcl.tuner.cache.tuning_cache import PATIENCE, TuningCache


@dataclass(frozen=True, slots=True)
class FirstUse:
    """What became of a key."""

    mode: str
    """Which choices there were."""
    winner: str | None
    """Options as JSON; None: nothing worked."""
    message: str = ""
    """Why not."""


@dataclass(frozen=True, slots=True)
class Adviser:
    """What chooses without measuring."""

    kind: Literal["model", "sizes"]
    """A model of measured candidates, or what is known of other sizes."""
    identity: str
    """Of all that the choice follows from."""

    def __str__(self) -> str:
        return f"{self.kind} {self.identity}"


def load(cache: TuningCache, key: CacheKey) -> tuple[FirstUse, ...]:
    """What searches did for a key, one entry for each mode, the latest first. Raises
    ``CacheError``."""
    query = (
        "SELECT mode, winner, message FROM first_uses WHERE digest = ? AND mode NOT LIKE 'model %' "
        "AND mode NOT LIKE 'sizes %' ORDER BY created DESC"
    )
    nothing: list[tuple[str, str | None, str]] = []
    found = cache.read(lambda db: db.execute(query, (key.digest,)).fetchall(), nothing, PATIENCE)
    return tuple(
        FirstUse(mode, winner, message)
        for mode, winner, message in found
        if isinstance(winner, str | None) and isinstance(message, str)
    )


def predicted(cache: TuningCache, key: CacheKey, by: Adviser) -> FirstUse | None:
    """What was chosen for a key without measuring: its ``winner`` is None where that left the
    default alone. None if this was not asked. Raises ``CacheError``."""
    query = "SELECT mode, winner, message FROM first_uses WHERE digest = ? AND mode = ?"
    nothing: list[tuple[str, str | None, str]] = []
    about = (key.digest, str(by))
    found = cache.read(lambda db: db.execute(query, about).fetchall(), nothing, PATIENCE)
    return FirstUse(*found[0]) if found and isinstance(found[0][1], str | None) else None


def store_predicted(
    cache: TuningCache, key: CacheKey, by: Adviser, winner: str | None, message: str
) -> None:
    """Keep what was chosen in the place of what others of its kind did. Raises ``CacheError``."""
    row = (key.digest, str(by), winner, message, time.time())

    def write(db: sqlite3.Connection) -> None:
        others = (key.digest, f"{by.kind} %")
        db.execute("DELETE FROM first_uses WHERE digest = ? AND mode LIKE ?", others)
        put(db, "first_uses", [row])

    cache.transaction(write)


def store(cache: TuningCache, key: CacheKey, entry: FirstUse, instead_of: str = "") -> None:
    """Keep an entry in the place of an earlier one of its mode, and of another mode's. Raises
    ``CacheError``."""
    row = (key.digest, entry.mode, entry.winner, entry.message[:MESSAGE], time.time())

    def write(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM first_uses WHERE digest = ? AND mode = ?", (row[0], instead_of))
        put(db, "first_uses", [row])

    cache.transaction(write)
