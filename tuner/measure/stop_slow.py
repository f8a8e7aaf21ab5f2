"""Ending a call that takes too long, from within its process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlowError(Exception):
    """A call was ended because it took too long."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """A block that ends with ``TooSlowError`` if it takes longer; None: as long as it takes.

    Kernels of the CPU hear of that between pieces of their work (see
    ``tcl.codegen.cpu.run.launch.Launcher.attentive``). Only the main thread can be ended so: in
    others the block takes as long as it takes.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"it was ended after {seconds:.2g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
