"""How a command ends: the signals that end it, its exit code, and what it has written.

The standard streams are usable from its start, and written before its end. What is written there
cannot control a terminal.

What is still in a stream when Python itself ends can only be complained about: "Exception
ignored", and the exit code 120. So everything is written, and reported, while there is a command
that can say so.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn, TextIO, cast

import click

from tcl.common.terminal import Shown, escaped

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


@contextlib.contextmanager
def written() -> Iterator[None]:
    """Within, the standard streams can be used; at the end, what was printed has been written.

    Where it could not be, the command ends with exit code 1 and one sentence on standard error. A
    reader that had enough (``tcl show ... | head -1``) needs no sentence.
    """
    _open_closed_ones()
    for stream in (sys.stdout, sys.stderr):  # a terminal of little means must not cost a run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    streams = sys.stdout, sys.stderr
    try:
        sys.stdout = cast(TextIO, Shown(sys.stdout))
        sys.stderr = cast(TextIO, Shown(sys.stderr, messages=True))
        try:
            yield
        except SystemExit as end:
            if end.code in (0, None):  # else it failed, and has said why
                sys.stdout.flush()
            raise
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            with contextlib.suppress(OSError):
                click.echo(f"error: {unusable(error)}", err=True)
        sys.exit(1)
    finally:
        sys.stdout, sys.stderr = streams
        _drop_what_is_left()


def write_over(text: str) -> None:
    """Write a text over the line that stands at the end of a terminal."""
    terminal = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    terminal.write(f"\r\x1b[K{escaped(text)}")
    terminal.flush()


def unusable(error: OSError) -> str:
    """What could not be read or written, and why."""
    if error.errno is None:
        return str(error)
    what = error.filename or "the output, or a temporary file,"
    return f"{what} cannot be used: {error.strerror}"


def _open_closed_ones() -> None:
    """A stream that the caller closed (``>&-``) is one that cannot be used. Left closed, its
    number would go to the next file that is opened, such as the cache."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _drop_what_is_left() -> None:
    """Python writes what is left in a stream once more when it ends: let that succeed."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
