"""Launch shapes of kernels that users wrote, in the tuning cache's file.

They have a table of their own: a def's results and these never meet.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tcl.common.errors import CacheError
from tcl.tuner.cache.tuning_cache import PATIENCE, TuningCache

_VERSION = 1
"""Of how they are measured: those of another one are not used."""


@dataclass(frozen=True, slots=True)
class BlockKey:
    """What the best launch shape of a kernel depends on."""

    kernel: str
    """Its name."""
    source: str
    """Its text, or what else tells it from others."""
    global_size: tuple[int, ...]
    arguments: tuple[str, ...]
    """Types and shapes."""
    search: str
    """What was to be tried, as text."""
    device: str

    @property
    def digest(self) -> str:
        """SHA-256 of all ingredients, in hex."""
        text = json.dumps([_VERSION, asdict(self)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


_COLUMNS = "digest, kernel, source_hash, launch, device, result, created"


def load(cache: TuningCache, key: BlockKey) -> str | None:
    """The result that is kept for a key, as it was stored; None if there is none. Raises
    ``CacheError``."""
    query = "SELECT result FROM block_results WHERE digest = ?"
    row = cache.read(lambda db: db.execute(query, (key.digest,)).fetchone(), None, PATIENCE)
    return row[0] if row and isinstance(row[0], str) else None


def store(cache: TuningCache, key: BlockKey, result: str) -> None:
    """Keep a result, JSON, in the place of an earlier one. Raises ``CacheError``."""
    launch = json.dumps([key.global_size, key.arguments, key.search])
    source = hashlib.sha256(key.source.encode()).hexdigest()
    row = (key.digest, key.kernel, source, launch, key.device, result, time.time())
    cache.transaction(lambda db: insert(db, [row]))


@dataclass(frozen=True, slots=True)
class Kept:
    """What there is to list of a result."""

    kernel: str
    global_size: tuple[int, ...]
    device: str
    result: str
    """As it was stored."""
    when: float


def kept(cache: TuningCache) -> tuple[Kept, ...]:
    """All results of a cache, by device, the last ones first. Raises ``CacheError``."""
    query = (
        "SELECT kernel, launch, device, result, created FROM block_results "
        "ORDER BY device, created DESC"
    )
    found: list[Any] = cache.read(lambda db: db.execute(query).fetchall(), [])
    try:
        return tuple(
            Kept(str(kernel), tuple(json.loads(launch)[0]), str(device), str(result), float(when))
            for kernel, launch, device, result, when in found
        )
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise CacheError(
            f"the tuning cache {cache.path} cannot be used: a launch shape in it cannot be read: "
            f"{error}"
        ) from None


def rows(db: sqlite3.Connection) -> list[tuple[object, ...]]:
    """All that a file knows."""
    return db.execute(f"SELECT {_COLUMNS} FROM block_results").fetchall()


def insert(db: sqlite3.Connection, found: Iterable[tuple[object, ...]]) -> None:
    """Add rows; of two for one key the later one stays."""
    db.executemany(
        f"INSERT INTO block_results ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET result = excluded.result, created = excluded.created "
        "WHERE excluded.created > block_results.created",
        found,
    )


def older(db: sqlite3.Connection, moment: float) -> int:
    """How many were measured before this moment."""
    query = "SELECT count(*) FROM block_results WHERE created < ?"
    return int(db.execute(query, (moment,)).fetchone()[0])


def forget(db: sqlite3.Connection, moment: float) -> None:
    """Remove what was measured before this moment."""
    db.execute("DELETE FROM block_results WHERE created < ?", (moment,))
