"""Connections to SQLite that end what they do in time, and whose errors can be read."""

from __future__ import annotations

import contextlib
import math
import signal
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

_STEPS = 1000
"""Of SQLite's machine, between two looks at whether a query has to end: some tens of microseconds.
"""


class Watched(sqlite3.Connection):
    """A connection whose queries end at a time, or when a signal came."""

    until = math.inf
    """When they end, by ``time.monotonic``."""
    came: Sequence[signal.Signals] = ()
    """Signals that came meanwhile ..."""
    heeds = -math.inf
    """... which end a query from this time on."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._raised: list[BaseException] = []
        # In a generator, so that no step of Python's stands outside of its ``try``: the sqlite3
        # module drops what a signal's handler raises there.
        looks = self._looks()
        next(looks)
        self.set_progress_handler(looks.__next__, _STEPS)

    def _looks(self) -> Generator[bool, None, None]:
        """Whether SQLite is to end what it does."""
        while True:
            try:
                while True:
                    now = time.monotonic()
                    yield now > self.until or (bool(self.came) and now > self.heeds)
            except GeneratorExit:
                return
            except BaseException as error:
                self._raised.append(error)
                yield True

    def execute(self, *given: Any) -> sqlite3.Cursor:
        with self._readable_errors():
            return super().execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        with self._readable_errors():
            return super().executemany(*given)

    @contextlib.contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """What handlers of signals raise is raised; an error that quotes bytes of a damaged file,
        which Python so cannot read, is damage."""
        self._raised.clear()
        try:
            yield
        except UnicodeDecodeError:
            damage = sqlite3.DatabaseError("a name in it is not a text")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from None
        except sqlite3.Error:
            if self._raised:
                raise self._raised.pop() from None
            raise
