"""What was done when a def came up for sizes that nobody had tuned, as notes in the tuning cache.

A note says that it was done, so that it is not done again, also where nothing worked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.notes import Note
from tcl.tuner.cache.table_rows import MESSAGE
from tcl.tuner.cache.tuning_cache import TuningCache

KIND = "first use"


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


def load(cache: TuningCache, key: CacheKey) -> tuple[FirstUse, ...]:
    """What searches did for a key, one entry for each mode, the latest first. Raises
    ``CacheError``."""
    found = sorted(cache.notes(KIND, about=key.digest), key=lambda note: -note.updated)
    return _first_uses(found)


def predicted(cache: TuningCache, key: CacheKey, by: Adviser) -> FirstUse | None:
    """What was chosen for a key without measuring: its ``winner`` is None where that left the
    default alone. None if this was not asked. Raises ``CacheError``."""
    found = _first_uses(cache.notes(by.kind, about=key.digest, name=by.identity))
    return found[0] if found else None


def store_predicted(
    cache: TuningCache, key: CacheKey, by: Adviser, winner: str | None, message: str
) -> None:
    """Keep what was chosen in the place of what others of its kind did. Raises ``CacheError``."""
    value = {"winner": winner, "message": message}
    cache.keep(by.kind, key.digest, by.identity, value, instead_of=None)


def store(cache: TuningCache, key: CacheKey, entry: FirstUse, instead_of: str = "") -> None:
    """Keep an entry in the place of an earlier one of its mode, and of another mode's. Raises
    ``CacheError``."""
    value = {"winner": entry.winner, "message": entry.message[:MESSAGE]}
    cache.keep(KIND, key.digest, entry.mode, value, instead_of=instead_of)


def _first_uses(found: Iterable[Note]) -> tuple[FirstUse, ...]:
    parts = ((n.name, n.value.get("winner"), n.value.get("message")) for n in found)
    return tuple(
        FirstUse(mode, winner, message)
        for mode, winner, message in parts
        if isinstance(winner, str | None) and isinstance(message, str)
    )
