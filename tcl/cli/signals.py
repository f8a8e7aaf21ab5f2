"""Ctrl+C and SIGTERM in a command: what ends it, and the exit codes that tell of it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes."""

ENDING = (signal.SIGINT, signal.SIGTERM)
"""What asks a command to end."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: it ends a command as Ctrl+C does, after saving, but has its own exit code."""


def exit_code(stopped: BaseException | str | int) -> int:
    """For what ended a command: the exception, the signal's name, or its number."""
    if stopped in ("SIGTERM", signal.SIGTERM) or isinstance(stopped, Terminated):
        return TERMINATED
    return INTERRUPTED


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """Signals that ask a command to end are exceptions, if they are not ignored."""
    with handlers_kept():
        if threading.current_thread() is threading.main_thread():
            for number, handler in zip(
                ENDING, (signal.default_int_handler, _terminate), strict=True
            ):
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, handler)
        yield


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def dying() -> None:
    """They end the process at once, as the system does it, where they are not ignored."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Their handlers are afterwards what they were before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = handlers()
    try:
        yield
    finally:
        restore_handlers(before)


def handlers() -> list[Any]:
    """The handlers now."""
    return [signal.getsignal(number) for number in ENDING]


def restore_handlers(before: list[Any]) -> None:
    """Set ``handlers`` back."""
    for number, handler in zip(ENDING, before, strict=True):
        if handler is not None:  # None: not Python's, so that nothing here has changed it
            signal.signal(number, handler)


def count_presses(presses: list[int]) -> None:
    """From now on they do nothing but add their numbers to ``presses``."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: presses.append(number))
