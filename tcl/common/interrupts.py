"""Signals that wait until a piece of work is whole.

Python runs a signal's handler between any two steps of the main thread, and what it raises, as
``KeyboardInterrupt``, ends whatever runs there. Most code bears that. Some does not: what frees
memory of a library by hand may free it twice, and an exception inside of a comparison that C code
asked for may be dropped, its result with it. And a handler may raise an ``OSError``, which is what
``TimeoutError`` is: whoever passes over what the system refuses would pass over that, too.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1")
]
"""Those whose handlers are likely to raise something."""

_Handler = Callable[[int, FrameType | None], object]


def of_system(error: OSError) -> bool:
    """Whether the system refused something, which it says by a number; else a signal's handler
    raised the error, as ``TimeoutError`` is raised by those of alarms."""
    return error.errno is not None


@contextmanager
def system_errors_passed_over() -> Iterator[None]:
    """What the system refuses within ends it, without an error (``of_system``)."""
    try:
        yield
    except OSError as error:
        if not of_system(error):
            raise


def interruptible() -> bool:
    """Whether a signal's handler can end what this thread does: handlers run in the main thread
    alone. Ctrl+C may be ignored, as in a script's background jobs, and an alarm be heard."""
    return threading.current_thread() is threading.main_thread() and any(
        callable(signal.getsignal(number)) for number in _SIGNALS
    )


@contextmanager
def deferred() -> Iterator[Sequence[signal.Signals]]:
    """Handlers of signals that come within are called right after it, each once. Within, there is
    the list of those that came so far.

    Only the main thread runs handlers: in other threads there is nothing to do. Keep what stands
    within short: for as long Ctrl+C seems to do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield ()
        return
    came: list[signal.Signals] = []
    before: dict[int, _Handler] = {}
    within = True

    def note(number: int, frame: FrameType | None) -> None:
        if within:
            came.append(signal.Signals(number))
        else:  # a handler that was set back raised, so that this one was not
            before[number](number, frame)

    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, note)
        yield came
    finally:
        stopped: BaseException | None = None
        left = dict(before)
        while left:  # whatever a handler raises that was set back before the others
            try:
                for number in list(left):
                    signal.signal(number, left[number])
                    del left[number]
            except BaseException as error:
                stopped = error
        within = False
        # In one step, so that the first one's exception does not keep the others from being sent.
        list(map(_thread.interrupt_main, dict.fromkeys(came)))
        if stopped is not None:
            raise stopped
