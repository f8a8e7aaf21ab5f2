"""Threads that do the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any


def at_once(work: Callable[..., object], arguments: Iterable[Any]) -> None:
    """``work`` on each argument, in a thread for each. Returns when all have ended."""
    threads = [threading.Thread(target=work, args=(each,)) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
