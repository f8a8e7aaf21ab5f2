"""What takes long and several tests need: done once by all processes that share the tests."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FOLDER: Path | None = None
"""Where results are, for the time of the tests; ``conftest`` knows."""


def once(work: Callable[[], T], *described: object) -> T:
    """What ``work`` gives, which follows from what it is ``described`` by."""
    if FOLDER is None:
        return work()
    path = FOLDER / f"once-{hashlib.sha256(repr(described).encode()).hexdigest()}"
    if path.exists():
        found: T = pickle.loads(path.read_bytes())
        return found
    result = work()
    new = path.with_suffix(f".{os.getpid()}")
    new.write_bytes(pickle.dumps(result))
    new.replace(path)  # whole, whoever looks at it meanwhile
    return result
