"""Launch shapes of kernels that users wrote, as notes in the tuning cache's file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from tcl.common.errors import CacheError
from tcl.tuner.cache.file import ELSE
from tcl.tuner.cache.tuning_cache import TuningCache

KIND = "launch shape"
_VERSION = 1
"""Of how they are measured: those of another one are not used."""


@dataclass(frozen=True, slots=True)
class BlockKey:
    """What the best launch shape of a kernel depends on."""

    kernel: str
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


@dataclass(frozen=True, slots=True)
class StoredShape:
    kernel: str
    global_size: tuple[int, ...]
    device: str
    result: str
    when: float


def load(cache: TuningCache, key: BlockKey) -> str | None:
    """The result that is kept for a key, as it was stored; None if there is none. Raises
    ``CacheError``."""
    found = [note.value.get("result") for note in cache.notes(KIND, about=key.key_digest)]
    return found[0] if found and isinstance(found[0], str) else None


def store(cache: TuningCache, key: BlockKey, result: str) -> None:
    """Keep a result, JSON, in the place of an earlier one. Raises ``CacheError``."""
    value = {"kernel": key.kernel, "global_size": key.global_size, "device": key.device}
    cache.keep(KIND, key.key_digest, "", {**value, "result": result})


def stored_shapes(cache: TuningCache) -> tuple[StoredShape, ...]:
    """All results of a cache, by device, the last ones first. Raises ``CacheError``."""
    try:
        found = [
            StoredShape(
                str(note.value["kernel"]),
                tuple(note.value["global_size"]),
                str(note.value["device"]),
                str(note.value["result"]),
                note.updated,
            )
            for note in cache.notes(KIND)
        ]
    except (TypeError, LookupError) as error:
        raise CacheError(
            f"the tuning cache {cache.path} cannot be used: a {KIND} in it cannot be read: "
            f"{error}; {ELSE}"
        ) from None
    return tuple(sorted(found, key=lambda shape: (shape.device, -shape.when)))
