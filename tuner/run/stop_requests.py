"""Signals that end a search: counted while it runs, acted upon by its loop.

A library takes no signal from the program that calls it. So a search counts Ctrl+C alone, once and
twice, and that where the program leaves it to Python, for which it would be an exception in the
middle of the search. A command, which is the whole program, has a search count SIGTERM and a closed
terminal as well; a search that nobody asked for counts nothing. Whatever is not counted has its way
at once: the program's handler is called, or the system ends the process.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, Self

FINISH = 1
"""Nothing new starts, what is in flight finishes."""
KILL = 2
"""What is in flight is killed."""

TIME_LIMIT = "time limit"
"""The reason for which a search ends that took as long as it might."""

_MAY_BE_IGNORED = {signal.SIGHUP}
"""``nohup`` sets it so, and it has to stay so."""
COMMAND = (signal.SIGINT, signal.SIGTERM, *_MAY_BE_IGNORED)
"""What asks a command to end."""
_counted: ContextVar[tuple[Sequence[signal.Signals], Sequence[int]] | None]
_counted = ContextVar("counted", default=None)
"""Signals that searches count, whatever their handlers are, and those that came before; None: see
above."""


@contextmanager
def searches_count(*numbers: signal.Signals, before: Sequence[int] = ()) -> Iterator[None]:
    """A context in which searches count these signals, whatever the program does with them, and
    those that the program has noted when a search begins: ``before``."""
    token = _counted.set((numbers, before))
    try:
        yield
    finally:
        _counted.reset(token)


class Interrupts:
    """A context in which the signals that a search counts raise ``level``.

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
            pythons = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            numbers, before = _counted.get() or ([signal.SIGINT] * pythons, ())
            for number in numbers:
                if number not in _MAY_BE_IGNORED or signal.getsignal(number) != signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
            for came in before:
                self._handle(came, None)
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


class Watch:
    """The level of interruption of one search, asked all the time: signals, ``stop`` and the
    ``limit`` in seconds from now on. ``told`` is called with level and reason when it rises.

    The limit ends nothing before ``may_end``: a search that has no candidate with a time yet would
    leave its user with nothing.
    """

    def __init__(
        self, interrupts: Interrupts, limit: float | None, told: Callable[[int, str], object]
    ) -> None:
        self._interrupts = interrupts
        self._limit = limit
        self._told = told
        self._started = time.monotonic()
        self._noticed = 0
        self._limited = False

    def may_end(self) -> None:
        """From now on the search ends by its limit, too, if that has not passed already."""
        self._limited = True

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.monotonic() - self._started

    def late(self, least: float = 0.0) -> bool:
        """Whether the limit has passed, even if it may not end anything yet, and ``least``
        seconds."""
        return self._limit is not None and self.seconds >= max(self._limit, least)

    @property
    def in_time(self) -> bool:
        """Whether nothing but the time limit has ended the search."""
        return self() < FINISH or self._interrupts.reason == TIME_LIMIT

    def __call__(self) -> int:
        if self._limited and self.late():
            self._interrupts.request(FINISH, TIME_LIMIT)
        level = self._interrupts.level
        if level > self._noticed:
            self._noticed = level
            self._told(level, self._interrupts.reason)
        return level
