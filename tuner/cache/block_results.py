"""Launch shapes of kernels that users wrote, in the tuning cache's file.

They have a table of their own: a def's results and these never meet.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from tcl.common.errors import CacheError
from tcl.tuner.cache.schema import put
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
    def key_digest(self) -> str:
        """SHA-256 of all ingredients, in hex."""
        text = json.dumps([_VERSION, asdict(self)], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load(cache: TuningCache, key: BlockKey) -> str | None:
    """The result that is kept for a key, as it was stored; None if there is none. Raises
    ``CacheError``."""
    query = "SELECT result FROM block_results WHERE digest = ?"
    row = cache.read(lambda db: db.execute(query, (key.key_digest,)).fetchone(), None, PATIENCE)
    return row[0] if row and isinstance(row[0], str) else None


def store(cache: TuningCache, key: BlockKey, result: str) -> None:
    """Keep a result, JSON, in the place of an earlier one. Raises ``CacheError``."""
    launch = json.dumps([key.global_size, key.arguments, key.search])
    source = hashlib.sha256(key.source.encode()).hexdigest()
    row = (key.key_digest, key.kernel, source, launch, key.device, result, time.time())
    cache.transaction(lambda db: put(db, "block_results", [row]))


@dataclass(frozen=True, slots=True)
class StoredShape:
    """What there is to list of a result."""

    kernel: str
    global_size: tuple[int, ...]
    device: str
    result: str
    """As it was stored."""
    when: float


def stored_shapes(cache: TuningCache) -> tuple[StoredShape, ...]:
    """All results of a cache, by device, the last ones first. Raises ``CacheError``."""
    query = (
        "SELECT kernel, launch, device, result, created FROM block_results "
        "ORDER BY device, created DESC"
    )
    found: list[Any] = cache.read(lambda db: db.execute(query).fetchall(), [])
    try:
        return tuple(
            StoredShape(
                str(kernel), tuple(json.loads(launch)[0]), str(device), str(result), float(when)
            )
            for kernel, launch, device, result, when in found
        )
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise CacheError(
            f"the tuning cache {cache.path} cannot be used: a launch shape in it cannot be read: "
            f"{error}"
        ) from None
