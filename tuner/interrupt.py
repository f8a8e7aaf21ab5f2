"""Ctrl+C once, Ctrl+C twice, SIGTERM, a closed terminal: counted while a search runs, acted
upon by its loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

FINISH = 1
"""Nothing new starts, what is in flight finishes."""
KILL = 2
"""What is in flight is killed."""

_MAY_BE_IGNORED = {signal.SIGHUP} if hasattr(signal, "SIGHUP") else set()
"""``nohup`` sets it so, and it has to stay so."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *_MAY_BE_IGNORED)


class Interrupts:
    """A context in which signals raise ``level`` instead of an exception.

    Outside of the main thread Python allows no signal handlers; there ``request`` alone counts.
    The previous handlers are back when the context ends.
    """

    def __init__(self) -> None:
        self.level = 0
        self.reason = ""
        self._previous: dict[signal.Signals, Callable[..., Any] | int | None] = {}

    def request(self, level: int, reason: str) -> None:
        """Raise the level to at least ``level``."""
        if level > self.level:
            self.level, self.reason = level, reason

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if number not in _MAY_BE_IGNORED or signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            # None: it was not set by Python, and cannot be set again from it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # Handlers run between two bytecodes of the main thread, whatever locks it holds, so this
        # one only counts.
        if number == signal.SIGINT:
            self.request(min(self.level + 1, KILL), "SIGINT")
        else:
            self.request(FINISH, signal.Signals(number).name)
